"""Terminated topics: publishing is refused, and consumers are told when they reach the end of the topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.broker.config import PIP, PULSAR_4_2, Config, Profile
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.refusals import JAVA, refused_producer
from tests.broker.held import HeldStorage
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Earliest,
    Exclusive,
    Failover,
    Individual,
    KeyShared,
    Shared,
    Type,
    Wire,
    message_id,
    plain,
    serving,
)

TERMINATED = (pb.TopicTerminatedError, f"{JAVA}TopicTerminatedException: Topic was already terminated")


def terminate(bed: Bed) -> Position:
    return bed.topic().terminate()


async def end(wire: Wire, consumer_id: int = 0) -> None:
    """Assert that the next frame tells a consumer that it has reached the end of the topic."""
    assert (await wire.expect(Type.REACHED_END_OF_TOPIC)).consumer_id == consumer_id


@pytest.mark.req("B-33")
async def test_producers_are_closed_and_their_sends_dropped(bed: Bed, sender: Wire) -> None:
    (last,) = await sender.publish(plain(b"m"))
    assert terminate(bed) == last
    closed = await sender.expect(Type.CLOSE_PRODUCER)
    assert (closed.producer_id, closed.request_id) == (0, 2**64 - 1)
    await sender.write(sender.sends(plain(b"late")))
    await sender.quiet()
    assert await refused_producer(sender, 1) == TERMINATED
    assert terminate(bed) == last


@pytest.mark.req("B-33")
async def test_producers_that_wait_are_refused(bed: Bed, sender: Wire) -> None:
    waiting = await bed.connect()
    await waiting.write(
        waiting.numbered(Type.PRODUCER, topic=TOPIC, producer_id=3, producer_access_mode=pb.WaitForExclusive)
    )
    assert not (await waiting.expect(Type.PRODUCER_SUCCESS)).producer_ready
    terminate(bed)
    await sender.expect(Type.CLOSE_PRODUCER)
    refused = await waiting.expect(Type.ERROR)
    assert (refused.request_id, refused.error, refused.message) == (1, *TERMINATED)


@pytest.mark.req("B-33")
async def test_sends_while_it_is_being_terminated(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    store.holding = True
    await wire.write(wire.sends(plain(b"before")))
    await wire.quiet()
    last = terminate(bed)
    await wire.write(wire.sends(plain(b"after")))
    refused = await wire.expect(Type.SEND_ERROR)
    assert (refused.sequence_id, refused.error) == (1, pb.TopicTerminatedError)
    assert refused.message.endswith("ManagedLedgerTerminatedException: Managed ledger was already terminated")
    await wire.quiet()  # consumers are told only after the commit
    store.release()
    assert await wire.receipts(1) == [last]
    kinds = [received.command.type for received in await wire.rest()]
    assert sorted(kinds) == sorted([Type.MESSAGE, Type.CLOSE_PRODUCER])


@pytest.mark.req("B-33")
async def test_an_acknowledgement_before_the_termination_is_stored_tells_no_end(
    store: HeldStorage, bed: Bed, wire: Wire
) -> None:
    await wire.producer()
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    (first,) = await wire.publish(plain(b"first"))
    await wire.messages(1)
    store.holding = True
    await wire.write(wire.sends(plain(b"last")))
    await wire.quiet()
    last = terminate(bed)
    await wire.send(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(first)])
    await wire.quiet()
    store.release()
    kinds = [received.command.type for received in await wire.rest()]
    assert sorted(kinds) == sorted([Type.MESSAGE, Type.SEND_RECEIPT, Type.CLOSE_PRODUCER])
    await wire.ack(last)
    await end(wire)


@pytest.mark.req("B-33")
async def test_a_termination_that_cannot_be_kept_is_none(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    terminate(bed)
    await wire.quiet()
    store.fail()
    store.release()
    await wire.expect(Type.CLOSE_PRODUCER)  # the topic is loaded again, as after any failed commit of its ledger
    await wire.producer()
    await wire.publish(plain(b"still"))


@pytest.mark.req("B-33")
async def test_a_terminated_topic_stays_so_over_unload_and_restart(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        (last,) = await wire.publish(plain(b"m"))
        await wire.subscribe(initialPosition=Earliest)
        terminate(bed)
        await wire.expect(Type.CLOSE_PRODUCER)
        bed.broker.topics.unload(TopicName.parse(TOPIC))
        await wire.expect(Type.CLOSE_CONSUMER)
        assert await refused_producer(wire, 1) == TERMINATED
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        assert await refused_producer(wire) == TERMINATED
        assert terminate(bed) == last
        assert list(bed.topic().ledger.ledgers) == [last.ledger_id]
        await wire.subscribe()
        await wire.flow()
        assert (await wire.message()).position == last
        await wire.alive()
        await wire.ack(last)
        await end(wire)


@pytest.mark.req("B-33")
@pytest.mark.parametrize("messages", [0, 1])
async def test_terminating_an_empty_ledger_keeps_the_last_id(tmp_path: Path, messages: int) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(*[plain(b"m")] * messages)
        bed.broker.topics.unload(TopicName.parse(TOPIC))
        last = terminate(bed)
        assert last.entry_id == -1
    async with serving(data=tmp_path) as bed:
        assert terminate(bed) == last
        wire = await bed.connect()
        await wire.subscribe(initialPosition=Earliest)
        await wire.flow()
        if messages:
            await wire.message()
            await wire.alive()
        else:
            await end(wire)


@pytest.mark.req("B-33")
@pytest.mark.parametrize("type", [Exclusive, Shared, Failover, KeyShared])
async def test_a_consumer_that_comes_after_the_end_is_told_with_its_first_flow(
    bed: Bed, wire: Wire, sender: Wire, type: int
) -> None:
    await sender.publish(plain(b"m"))
    terminate(bed)
    await wire.subscribe(type=type)
    told = [received.command.type for received in await wire.rest(2)]
    assert told == ([Type.ACTIVE_CONSUMER_CHANGE] if type == Failover else [])
    await wire.flow()
    await end(wire)
    await wire.flow()
    await wire.quiet(2)


@pytest.mark.req("B-33")
@pytest.mark.parametrize("type", [Exclusive, Shared, KeyShared])
async def test_a_consumer_with_backlog_is_told_of_the_end_with_its_last_ack(
    bed: Bed, wire: Wire, sender: Wire, type: int
) -> None:
    positions = await sender.publish(plain(b"a"), plain(b"b"))
    await wire.subscribe(type=type, initialPosition=Earliest)
    terminate(bed)
    await wire.flow(2)
    await wire.messages(2)
    await wire.ack(positions[1])
    await wire.quiet()
    await wire.ack(positions[0])
    await end(wire)
    await wire.quiet()


@pytest.mark.req("B-33")
async def test_a_cumulative_ack_may_be_the_last(bed: Bed, wire: Wire, sender: Wire) -> None:
    positions = await sender.publish(plain(b"a"), plain(b"b"))
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.messages(2)
    terminate(bed)
    await wire.quiet()
    await wire.ack(positions[1], type=Cumulative)
    await end(wire)


@pytest.mark.req("B-33")
async def test_each_further_termination_tells_whoever_has_nothing_left(bed: Bed, wire: Wire, sender: Wire) -> None:
    (position,) = await sender.publish(plain(b"m"))
    await wire.subscribe(name="drained")  # this consumer sends no FLOW
    await wire.subscribe(name="behind", initialPosition=Earliest, consumer_id=1)
    for _ in range(2):
        terminate(bed)
        await end(wire)
        await wire.quiet()
    await wire.flow(consumer_id=1)
    await wire.messages(1)
    await wire.ack(position, consumer_id=1)
    await end(wire, 1)
    terminate(bed)
    await end(wire, 0)
    await end(wire, 1)


@pytest.mark.req("B-33")
async def test_all_consumers_of_a_subscription_are_told_once(bed: Bed, wire: Wire, sender: Wire) -> None:
    (position,) = await sender.publish(plain(b"m"))
    for consumer_id in range(2):
        await wire.subscribe(type=Shared, initialPosition=Earliest, consumer_id=consumer_id)
    await wire.flow()
    terminate(bed)
    await wire.messages(1)
    await wire.ack(position)
    assert {(await wire.expect(Type.REACHED_END_OF_TOPIC)).consumer_id for _ in range(2)} == {0, 1}
    await wire.subscribe(type=Shared, consumer_id=2)
    await wire.flow(consumer_id=2)
    await end(wire, 2)
    await wire.quiet()


@pytest.mark.req("B-33", "B-14")
async def test_readers_come_to_the_end_again_after_a_seek(bed: Bed, wire: Wire, sender: Wire) -> None:
    (position,) = await sender.publish(plain(b"m"))
    terminate(bed)
    await wire.subscribe(initialPosition=Earliest)
    for _ in range(2):
        await wire.flow()
        await wire.messages(1)
        await wire.ack(position)
        await end(wire)
        await wire.ask(Type.SEEK, consumer_id=0, message_id=message_id(Position(-1, -1)))
        await wire.expect(Type.CLOSE_CONSUMER)
        await wire.subscribe()


@pytest.mark.req("B-33", "W-10")
@pytest.mark.parametrize(
    ("profile", "version", "name", "told"),
    [
        (PIP, 21, "Pulsar-Java-v4.0.8", True),
        (PIP, 21, "Pulsar-CPP-v3.7.0", False),
        (PIP, 21, "Pulsar Go 0.16.0", False),
        (PULSAR_4_2, 21, "Pulsar-CPP-v3.7.0", True),
        (PULSAR_4_2, 9, "old", True),
        (PULSAR_4_2, 8, "older", False),
    ],
)
async def test_clients_that_cannot_bear_it_are_not_told(
    autojump_clock: object, profile: Profile, version: int, name: str, told: bool
) -> None:
    async with serving(Config(), profile=profile) as bed:
        wire = await bed.connect(version, client_version=name)
        await wire.subscribe()
        terminate(bed)
        if told:
            await end(wire)
        await wire.quiet()
        await wire.alive()


@pytest.mark.req("B-33")
async def test_the_last_ledger_stays_when_all_is_consumed(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        (last,) = await wire.publish(plain(b"m"))
        await wire.subscribe(initialPosition=Earliest)
        terminate(bed)
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.subscribe()
        await wire.flow()
        await wire.message()
        await wire.ack(last)
        await end(wire)
        found = await wire.ask(Type.GET_LAST_MESSAGE_ID, consumer_id=0)
        assert (found.last_message_id.ledgerId, found.last_message_id.entryId) == last
        await wire.subscribe(name="again", initialPosition=Earliest, consumer_id=1)
        await wire.flow(consumer_id=1)
        assert (await wire.message()).position == last


@pytest.mark.req("B-33")
@pytest.mark.parametrize("profile", [PIP, PULSAR_4_2])
async def test_an_empty_topic_that_ended_takes_new_subscriptions_but_at_the_earliest_in_pulsar_4_2(
    autojump_clock: object, profile: Profile
) -> None:
    async with serving(profile=profile) as bed:
        wire = await bed.connect()
        await wire.subscribe()
        terminate(bed)
        await wire.subscribe(name="before", consumer_id=1, initialPosition=Earliest)
        bed.broker.topics.unload(TopicName.parse(TOPIC))
        other = await bed.connect()
        await other.subscribe()
        await other.subscribe(name="latest", consumer_id=1)
        if profile is PIP:
            await other.subscribe(name="earliest", consumer_id=2, initialPosition=Earliest)
        else:
            fields = {"subscription": "earliest", "subType": Exclusive, "initialPosition": Earliest}
            refused = await other.refused(Type.SUBSCRIBE, topic=TOPIC, consumer_id=2, **fields)
            assert refused == (pb.UnknownError, "")
