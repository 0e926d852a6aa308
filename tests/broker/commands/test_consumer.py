"""FLOW, ACK, REDELIVER_UNACKNOWLEDGED_MESSAGES, CONSUMER_STATS, and what they make the broker deliver."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import PULSAR_4_2, Config
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Earliest,
    Exclusive,
    Failover,
    Individual,
    Message,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    serving,
)

LOOSE = "non-persistent://public/default/t"
INT_MAX = 2**31 - 1


def cursor_of(bed: Bed, name: str = "sub") -> ManagedCursor:
    topic = bed.broker.topics.find(TopicName.parse(TOPIC))
    assert isinstance(topic, PersistentTopic)
    return topic.subscriptions[name].cursor


def numbers(messages: list[Message]) -> list[int]:
    return [message.position.entry_id for message in messages]


async def publish(wire: Wire, count: int) -> list[Position]:
    """So many messages whose payloads are their numbers."""
    return await wire.publish(*[plain(b"%d" % i) for i in range(count)])


@pytest.fixture
async def sender(bed: Bed) -> Wire:
    wire = await bed.connect()
    await wire.producer()
    return wire


# FLOW


@pytest.mark.req("B-05")
@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_permits_add_up(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await publish(sender, 10)
    for permits in (1, 2, 3):
        await wire.flow(permits)
        await wire.messages(permits)
        await wire.quiet()
    await wire.flow(2)
    await wire.flow(3)
    assert numbers(await wire.messages(4)) == [6, 7, 8, 9]
    await publish(sender, 3)
    await wire.messages(1)
    await wire.quiet()


@pytest.mark.req("B-05")
@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_a_batch_may_drive_the_permits_below_zero(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow(1)
    await sender.publish(*[batch_of(*[b"x"] * 10)] * 3)
    await wire.messages(1)
    await wire.flow(9)
    await wire.quiet()  # 0: not yet
    await wire.flow(1)
    await wire.messages(1)
    await wire.quiet()


@pytest.mark.req("B-05")
async def test_a_batch_of_none_costs_nothing(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(1)
    await sender.publish(*[plain(b"", num_messages_in_batch=0)] * 3, plain(b"last"), plain(b"too much"))
    assert (await wire.payloads(4))[3] == b"last"
    await wire.quiet()


@pytest.mark.parametrize("permits", [0, 2**31, 2**32 - 1])
async def test_permits_that_are_none_close(wire: Wire, permits: int) -> None:
    await wire.subscribe()
    await wire.flow(permits)
    assert await wire.closed() == []


async def test_permits_for_nobody_are_lost(wire: Wire, sender: Wire) -> None:
    await wire.flow(10, consumer_id=7)
    await wire.subscribe(consumer_id=7)
    await publish(sender, 1)
    await wire.quiet()


async def test_permits_wrap_around(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(INT_MAX)
    await publish(sender, 1)
    await wire.messages(1)
    await wire.flow(INT_MAX)
    await wire.alive()
    (consumer,) = bed.broker.topics.find(TopicName.parse(TOPIC)).subscriptions["sub"].consumers
    assert consumer.permits == -3
    await publish(sender, 1)
    await wire.quiet()


# what is delivered


@pytest.mark.req("W-02", "B-01")
async def test_entries_arrive_as_they_were_sent(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow()
    entries = [
        plain(b"checked"),
        plain(b"unchecked", checksum=False),
        batch_of(b"a", b"b", partition_key="k"),
        plain(b"", null_value=True, properties=[{"key": "k", "value": "v"}]),
    ]
    await sender.publish(*entries)
    messages = await wire.messages(4)
    assert [message.entry for message in messages] == entries
    assert all(message.command.message_id.partition == -1 for message in messages)
    assert not any(message.command.HasField("redelivery_count") for message in messages)
    assert not any(message.command.HasField("consumer_epoch") for message in messages)


@pytest.mark.req("B-36")
async def test_messages_of_partitions_name_them(bed: Bed, wire: Wire, sender: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(f"{TOPIC}-parts"), 3)
    await sender.producer(f"{TOPIC}-parts-partition-2", 1)
    await wire.subscribe(f"{TOPIC}-parts-partition-2")
    await wire.flow()
    await sender.publish(plain(b"x"), producer_id=1)
    assert (await wire.message()).command.message_id.partition == 2


async def test_unreadable_metadata_reaches_nobody_and_holds_nobody_up(bed: Bed, wire: Wire, sender: Wire) -> None:
    for type, name in ((Exclusive, "ex"), (Shared, "sh")):
        await wire.subscribe(name=name, type=type, consumer_id=type)
        await wire.flow(consumer_id=type)
    await sender.publish(b"\0\0\0\3xyzgarbage", plain(b"", marker_type=21), plain(b"good"))
    assert await wire.payloads(2) == [b"good", b"good"]
    assert [cursor_of(bed, name).backlog() for name in ("ex", "sh")] == [1, 1]


@pytest.mark.req("W-03")
async def test_stamps_of_the_broker_go_only_to_those_who_can_take_them(autojump_clock: object) -> None:
    interceptors = (
        "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",
        "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
    )
    config = Config(brokerEntryMetadataInterceptors=interceptors, exposingBrokerEntryMetadataToClientEnabled=True)
    async with serving(config) as bed:
        wire = await bed.connect()
        await wire.producer()
        entry = plain(b"x")
        await wire.publish(entry, batch_of(b"a", b"b"), num_messages=2)
        flag = "supports_broker_entry_metadata"
        for number, (version, flags, stamped) in enumerate(
            [(18, [flag], True), (21, [flag], True), (17, [flag], False), (21, [], False)]
        ):
            reader = await bed.connect(version, flags)
            await reader.subscribe(name=f"s{number}", initialPosition=Earliest)
            await reader.flow()
            first, second = await reader.messages(2)
            assert first.entry.endswith(entry)
            assert (first.entry == entry) is not stamped
            if stamped:
                size = int.from_bytes(first.entry[2:6], "big")
                stamp = pb.BrokerEntryMetadata.FromString(first.entry[6 : 6 + size])
                assert stamp.index == 1  # two messages were announced
                assert stamp.broker_timestamp == bed.broker.clock.now_ms()
                stamp = pb.BrokerEntryMetadata.FromString(second.entry[6 : 6 + size])
                assert stamp.index == 3


@pytest.mark.req("W-03")
async def test_stamps_stay_inside_unless_they_are_exposed(autojump_clock: object) -> None:
    interceptors = ("org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",)
    async with serving(Config(brokerEntryMetadataInterceptors=interceptors)) as bed:
        wire = await bed.connect(21, ["supports_broker_entry_metadata"])
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        entry = plain(b"x")
        await wire.publish(entry)
        assert (await wire.message()).entry == entry


@pytest.mark.req("W-04")
@pytest.mark.parametrize("version", [10, 11])
async def test_old_clients_get_no_checksums(bed: Bed, sender: Wire, version: int) -> None:
    old = await bed.connect(version)
    await old.subscribe()
    await old.flow()
    await sender.publish(plain(b"x"))
    assert (await old.message()).entry == plain(b"x", checksum=version >= 11)


@pytest.mark.req("W-04")
async def test_a_batch_closes_a_client_that_cannot_take_one_and_goes_to_the_next(bed: Bed, sender: Wire) -> None:
    old, new = await bed.connect(3), await bed.connect(4)
    for consumer in (old, new):
        await consumer.subscribe(type=Shared)
        await consumer.flow()
    await sender.publish(batch_of(b"a", b"b"))
    received = await old.closed()
    assert [r.command.type for r in received] == []
    message = await new.message()
    assert message.position.entry_id == 0
    assert message.redelivery_count == 0
    await sender.publish(plain(b"c"))
    assert await new.payloads(1) == [b"c"]


@pytest.mark.req("W-04")
async def test_a_batch_of_one_is_taken_by_all(bed: Bed, sender: Wire) -> None:
    old = await bed.connect(3)
    await old.subscribe()
    await old.flow()
    await sender.publish(batch_of(b"a"))
    await old.messages(1)
    await old.alive()


# ACK


@pytest.mark.req("B-15")
@pytest.mark.parametrize("type", [Exclusive, Shared, Failover])
async def test_single_acks_leave_holes(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow()
    positions = await publish(sender, 6)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.messages(6)
    cursor = cursor_of(bed)
    await wire.ack(positions[1], positions[3])
    assert (cursor.mark_delete.entry_id, cursor.backlog()) == (-1, 4)
    await wire.ack(positions[0])
    assert (cursor.mark_delete, cursor.backlog()) == (positions[1], 3)
    await wire.ack(positions[0], positions[1])  # again
    await wire.ack(positions[5], positions[4], positions[2])
    assert (cursor.mark_delete, cursor.backlog()) == (positions[5], 0)


@pytest.mark.req("B-16")
@pytest.mark.parametrize(("type", "taken"), [(Exclusive, True), (Failover, True), (Shared, False)])
async def test_acks_of_all_so_far(bed: Bed, wire: Wire, sender: Wire, type: int, taken: bool) -> None:
    await wire.subscribe(type=type)
    await wire.flow()
    positions = await publish(sender, 5)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.messages(5)
    cursor = cursor_of(bed)
    await wire.ack(positions[4])
    await wire.ack(positions[2], type=Cumulative)  # answered as success either way
    assert cursor.backlog() == (1 if taken else 4)
    await wire.ack(positions[1], type=Cumulative)  # backwards
    assert cursor.backlog() == (1 if taken else 4)
    await wire.ack(positions[3], type=Cumulative)
    assert cursor.backlog() == (0 if taken else 4)


async def test_acks_without_a_request_id_are_not_answered(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await publish(sender, 1)
    await wire.send(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(position)])
    await wire.alive()
    assert cursor_of(bed).backlog() == 0


@pytest.mark.parametrize("version", [0, 16, 17, 21])
async def test_acks_with_one_are_whatever_the_version(bed: Bed, version: int) -> None:
    wire = await bed.connect(version)
    await wire.subscribe()
    response = await wire.ask(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[{"ledgerId": 0, "entryId": 0}])
    assert response.consumer_id == 0
    assert not response.HasField("error")


async def test_acks_for_unknown_consumers_are_not_answered(wire: Wire) -> None:
    await wire.write(wire.numbered(Type.ACK, consumer_id=7, ack_type=Individual, message_id=[]))
    await wire.alive()


ODD = [2**64 - 1, 2**64 - 2, 2**63, 2**33, 2**32, 2**32 - 1, 99]


@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_ids_that_make_no_sense_change_nothing(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow()
    await publish(sender, 2)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    for connection, kind in ((sender, Type.CLOSE_PRODUCER), (wire, Type.CLOSE_CONSUMER)):
        while (await connection.next()).command.type != kind:
            pass
    await sender.producer()
    await wire.subscribe(type=type)
    await wire.flow(1_000_000)
    positions = await publish(sender, 3)
    first, second = (await wire.messages(5))[0].position.ledger_id, positions[0].ledger_id
    await wire.ack(positions[1])
    cursor = cursor_of(bed)
    for ledger_id in (first, second, first + 1000, 2**64 - 1, 2**63 - 1):
        for entry_id in ODD:
            ids = [{"ledgerId": ledger_id, "entryId": entry_id}]
            for fields in ({}, {"ack_set": [1]}):
                odd = {"message_id": [ids[0] | fields], "consumer_id": 0}
                await wire.ask(Type.ACK, ack_type=Individual, **odd)
                assert (cursor.mark_delete, cursor.backlog(), len(cursor.batch_acks)) == (Position(first, -1), 4, 0)
            await wire.send(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, consumer_id=0, message_ids=ids)
            if type == Exclusive:
                await wire.messages(4)
            await wire.alive()
    for entry_id in ODD[3:]:  # the others are negative there
        await wire.ack(Position(second, entry_id), type=Cumulative)
        await wire.ack(Position(first + 1000, entry_id), type=Cumulative)
        assert cursor.backlog() == 4
    await wire.ack(type=Cumulative)
    await wire.ack(*positions, type=Cumulative)
    assert cursor.backlog() == 4
    await wire.ack(Position(first, 2**40), type=Cumulative)  # beyond the end of an earlier ledger: all of that one
    assert cursor.backlog() == (2 if type == Exclusive else 4)
    await wire.ack(Position(first, 2**50), type=Cumulative)
    assert cursor.backlog() == (2 if type == Exclusive else 4)


async def test_transactional_acks_are_refused(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await publish(sender, 1)
    fields: dict[str, Any] = {"consumer_id": 0, "ack_type": Individual, "message_id": [message_id(position)]}
    response = await wire.ask(Type.ACK, txnid_most_bits=0, txnid_least_bits=1, **fields)
    assert (response.error, response.message) == (pb.NotAllowedError, "Server don't support transaction ack!")
    assert cursor_of(bed).backlog() == 1


async def test_acks_before_delivery_count(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.subscribe(name="shared", type=Shared, consumer_id=1)
    positions = await publish(sender, 4)
    for consumer_id in (0, 1):
        await wire.ack(positions[0], positions[2], consumer_id=consumer_id)
        await wire.flow(consumer_id=consumer_id)
        assert numbers(await wire.messages(2)) == [1, 3]
    await wire.quiet()


async def test_acks_between_a_redelivery_and_its_dispatch_count(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow(3)
    positions = await publish(sender, 3)
    await wire.messages(3)
    await wire.redeliver()  # no permits are left
    await wire.ack(positions[0], positions[1])
    await wire.flow()
    assert numbers(await wire.messages(1)) == [2]
    await wire.quiet()


@pytest.mark.req("B-13")
async def test_the_answer_to_an_ack_waits_for_its_commit(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        (position,) = await wire.publish(plain(b"x"))
        store.holding = True
        ids = [message_id(position)]
        await wire.write(wire.numbered(Type.ACK, consumer_id=0, ack_type=Individual, message_id=ids))
        await wire.quiet()
        store.fail()
        response = await wire.expect(Type.ACK_RESPONSE)
        assert response.error == pb.PersistenceError
        await wire.write(wire.numbered(Type.ACK, consumer_id=0, ack_type=Individual, message_id=ids))
        await wire.quiet()
        store.release()
        assert not (await wire.expect(Type.ACK_RESPONSE)).HasField("error")


@pytest.mark.req("B-13", "B-15")
async def test_acks_outlive_the_broker(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        for name in ("waited for", "not waited for"):
            await wire.subscribe(name=name, consumer_id=len(name))
        positions = await publish(wire, 5)
        await wire.ack(positions[0], positions[3], consumer_id=len("waited for"))
        ids = [message_id(positions[i]) for i in (0, 3)]
        await wire.send(Type.ACK, consumer_id=len("not waited for"), ack_type=Individual, message_id=ids)
        await wire.quiet(0.9)  # within a second
        kept = dict(store.metadata)
    store.metadata = kept  # what a kill would leave
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        for consumer_id, name in enumerate(("waited for", "not waited for")):
            await wire.subscribe(name=name, consumer_id=consumer_id)
            await wire.flow(consumer_id=consumer_id)
            assert [message.position for message in await wire.messages(3)] == [positions[i] for i in (1, 2, 4)]


@pytest.mark.req("B-13")
@pytest.mark.parametrize(("rate", "most"), [(None, 40), (0.0, 40), (1.0, 4), (2.0, 7)])
async def test_cursors_are_written_at_a_rate(autojump_clock: object, rate: float | None, most: int) -> None:
    """managedLedgerDefaultMarkDeleteRateLimit"""
    store = HeldStorage()
    async with serving(Config(managedLedgerDefaultMarkDeleteRateLimit=rate), storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        saved = cursor_of(bed).saves
        for position in await publish(wire, 100):
            await wire.send(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(position)])
            await wire.quiet(0.03)
        assert most / 2 <= cursor_of(bed).saves - saved <= most


async def test_properties_of_a_cumulative_ack_are_kept(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    positions = await publish(sender, 2)
    await wire.ack(positions[0], properties=[{"key": "a", "value": 1}])
    assert cursor_of(bed).properties == {}
    await wire.ack(positions[1], type=Cumulative, properties=[{"key": "a", "value": 1}, {"key": "b", "value": 2}])
    assert cursor_of(bed).properties == {"a": 1, "b": 2}


# parts of batches (PIP-54)


@pytest.mark.req("B-05")
@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_what_remains_of_a_batch_comes_again_and_costs_so_much(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow(10)
    (position,) = await sender.publish(batch_of(*[b"%d" % i for i in range(10)]))
    assert (await wire.message()).command.ack_set == []
    await wire.ack(message_id=[message_id(position, ack_set=[0b11])])
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(type=type)
    await wire.flow(5)
    message = await wire.message()
    assert (message.position, message.command.ack_set) == (position, [0b11])
    await publish(sender, 4)
    assert len(await wire.messages(3)) == 3
    await wire.quiet()


@pytest.mark.req("B-16")
async def test_cumulative_acks_may_end_inside_a_batch(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    positions = await sender.publish(plain(b"a"), batch_of(b"b", b"c", b"d"), plain(b"e"))
    await wire.ack(type=Cumulative, message_id=[message_id(positions[1], ack_set=[0b100])])
    await wire.flow()
    messages = await wire.messages(2)
    assert [message.position for message in messages] == positions[1:]
    assert messages[0].command.ack_set == [0b100]
    await wire.ack(type=Cumulative, message_id=[message_id(positions[1], ack_set=[0])])  # changes nothing, as in Pulsar
    assert cursor_of(bed).mark_delete == positions[0]
    await wire.ack(message_id=[message_id(positions[1], ack_set=[0])])  # this does
    assert cursor_of(bed).mark_delete == positions[1]


async def test_parts_of_batches_may_be_nothing(autojump_clock: object) -> None:
    async with serving(Config(acknowledgmentAtBatchIndexLevelEnabled=False)) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        (position,) = await wire.publish(batch_of(b"a", b"b"))
        for type in (Individual, Cumulative):
            for ack_set in ([1], [0]):
                await wire.ack(type=type, message_id=[message_id(position, ack_set=ack_set)])
        await wire.flow()
        assert (await wire.message()).command.ack_set == []
        await wire.ack(message_id=[message_id(position, batch_index=1)])  # without a set: all of it
        assert cursor_of(bed).backlog() == 0


# REDELIVER_UNACKNOWLEDGED_MESSAGES


@pytest.mark.req("B-18", "B-19", "B-20")
async def test_redelivery_on_shared(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(100)
    positions = await publish(sender, 6)
    await wire.messages(6)
    await wire.ack(positions[0])

    async def again(count: int) -> list[tuple[int, int]]:
        messages = await wire.messages(count)
        await wire.quiet()
        return [(message.position.entry_id, message.redelivery_count) for message in messages]

    await wire.redeliver([positions[3], positions[1]])
    assert await again(2) == [(1, 1), (3, 1)]  # in the order of their positions
    await wire.redeliver([positions[0]])  # acknowledged
    await wire.redeliver([Position(999, 0)])  # unknown
    await wire.redeliver([positions[1]], consumer_id=99)  # from nobody
    assert await again(0) == []
    await wire.redeliver([positions[1], positions[1]])  # counts once
    assert await again(1) == [(1, 2)]
    await wire.redeliver()
    assert await again(5) == [(1, 3), (2, 1), (3, 2), (4, 1), (5, 1)]
    other = await bed.connect()
    await other.subscribe(type=Shared)
    await other.flow(100)
    await other.redeliver(positions)  # what another holds
    messages = await other.messages(5) if await _first_is(other) else await wire.messages(5)
    assert [(m.position.entry_id, m.redelivery_count) for m in messages] == [(1, 4), (2, 2), (3, 3), (4, 2), (5, 2)]


async def _first_is(wire: Wire) -> bool:
    """Whether something comes here soon."""
    try:
        first = await wire.next(0.1)
    except Exception:  # it goes to the other one
        return False
    wire.inbox.appendleft(first)
    return True


@pytest.mark.req("B-18")
async def test_replays_come_before_new_messages(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow(2)
    await publish(sender, 4)
    first = await wire.messages(2)
    await wire.redeliver([message.position for message in first])
    await wire.flow(4)
    assert numbers(await wire.messages(4)) == [0, 1, 2, 3]


@pytest.mark.req("B-18", "B-19")
async def test_what_a_consumer_leaves_behind_counts_no_redelivery(bed: Bed, wire: Wire, sender: Wire) -> None:
    other = await bed.connect()
    await wire.subscribe(type=Shared)
    await wire.flow(100)
    await publish(sender, 4)
    messages = await wire.messages(4)
    await wire.redeliver([messages[1].position])
    await wire.message()
    await other.subscribe(type=Shared)
    await other.flow(100)
    await wire.aclose()
    again = await other.messages(4)
    assert [(m.position.entry_id, m.redelivery_count) for m in again] == [(0, 0), (1, 1), (2, 0), (3, 0)]
    await other.ask(Type.CLOSE_CONSUMER, consumer_id=0)  # the last one: the counts are forgotten
    await other.subscribe(type=Shared)
    await other.flow(100)
    assert [m.redelivery_count for m in await other.messages(4)] == [0, 0, 0, 0]


@pytest.mark.req("B-18", "B-19", "C-09")
@pytest.mark.parametrize("type", [Exclusive, Failover])
async def test_redelivery_in_order(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow(100)
    positions = await publish(sender, 5)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.messages(5)
    await wire.ack(positions[2])
    for ids in ([positions[4]], []):  # ids are ignored
        await wire.redeliver(ids)
        again = await wire.messages(4)
        assert numbers(again) == [0, 1, 3, 4]
        assert [m.redelivery_count for m in again] == [0, 0, 0, 0]
        assert not any(m.command.HasField("consumer_epoch") for m in again)
        await wire.quiet()
    for epoch, stamped in ((1, 1), (0, 1), (5, 5), (5, 5), (4, 5)):
        await wire.redeliver(consumer_epoch=epoch)
        assert {m.command.consumer_epoch for m in await wire.messages(4)} == {stamped}
    await sender.publish(plain(b"new"))
    assert (await wire.message()).command.consumer_epoch == 5


@pytest.mark.req("C-09")
@pytest.mark.parametrize(("type", "epoch"), [(Exclusive, 0), (Exclusive, 3), (Shared, 3)])
async def test_an_epoch_given_at_the_start(wire: Wire, sender: Wire, type: int, epoch: int) -> None:
    await wire.subscribe(type=type, consumer_epoch=epoch)
    await wire.flow()
    await publish(sender, 1)
    command = (await wire.message()).command
    assert command.HasField("consumer_epoch") is (type == Exclusive)
    assert command.consumer_epoch == (epoch if type == Exclusive else 0)
    if type == Shared:
        await wire.redeliver(consumer_epoch=9)
        assert not (await wire.message()).command.HasField("consumer_epoch")


@pytest.mark.req("B-03")
async def test_a_standby_cannot_rewind(bed: Bed, wire: Wire, sender: Wire) -> None:
    other = await bed.connect()
    for number, consumer in enumerate((wire, other)):
        await consumer.subscribe(type=Failover, priority_level=number)
        await consumer.flow()
    assert not (await other.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    assert (await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    assert not (await other.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    await publish(sender, 2)
    await wire.messages(2)
    await other.redeliver()
    await other.quiet()
    await wire.quiet()


# CONSUMER_STATS


async def test_stats_of_a_consumer(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared, consumer_name="me")
    await wire.flow(10)
    await publish(sender, 4)
    positions = [message.position for message in await wire.messages(4)]
    await wire.ack(positions[0])
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=0)
    assert stats.consumerName == "me"
    assert stats.availablePermits == 6
    assert stats.unackedMessages == 3
    assert stats.msgBacklog == 3
    assert stats.type == "Shared"
    assert stats.address.startswith("/test:")
    assert not stats.blockedConsumerOnUnackedMsgs
    assert stats.connectedSince.endswith("Z")
    assert not stats.HasField("error_code")


async def test_stats_of_an_exclusive_or_loose_consumer(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.subscribe(topic=LOOSE, consumer_id=1)
    await publish(sender, 2)
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=0)
    assert (stats.type, stats.msgBacklog, stats.unackedMessages) == ("Exclusive", 2, 0)
    assert (await wire.ask(Type.CONSUMER_STATS, consumer_id=1)).msgBacklog == 0


async def test_stats_of_an_unknown_consumer(wire: Wire) -> None:
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=7)
    assert stats.error_code == pb.ConsumerNotFound
    await wire.alive()


async def test_stats_of_an_unknown_consumer_as_the_release_answers(autojump_clock: object) -> None:
    async with serving(profile=PULSAR_4_2) as bed:
        wire = await bed.connect()
        await wire.write(wire.numbered(Type.CONSUMER_STATS, consumer_id=7))
        assert await wire.closed() == []


# non-persistent topics


@pytest.mark.req("B-37")
async def test_messages_without_permits_are_dropped(wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE)
    assert await sender.publish(plain(b"nobody"), producer_id=1) == [Position(0, 0)]
    await wire.flow(2)
    await sender.publish(*[plain(b"%d" % i) for i in range(4)], producer_id=1)
    messages = await wire.messages(2)
    assert [message.payload for message in messages] == [b"0", b"1"]
    assert {message.position for message in messages} == {Position(0, 0)}
    await wire.quiet()


@pytest.mark.req("B-37")
async def test_a_loose_batch_may_drive_the_permits_below_zero(wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE, type=Shared)
    await wire.flow(1)
    await sender.publish(batch_of(b"a", b"b", b"c"), plain(b"dropped"), producer_id=1)
    await wire.messages(1)
    await wire.flow(3)
    await sender.publish(plain(b"d"), plain(b"e"), producer_id=1)
    assert await wire.payloads(1) == [b"d"]
    await wire.quiet()


@pytest.mark.req("B-37")
async def test_loose_acks_and_redeliveries_mean_nothing(wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE)
    await wire.flow()
    await sender.publish(plain(b"a"), producer_id=1)
    message = await wire.message()
    await wire.ack(message.position)
    await wire.redeliver()
    await wire.quiet()


@pytest.mark.req("B-37")
async def test_loose_messages_go_round(bed: Bed, wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    other = await bed.connect()
    for consumer in (wire, other):
        await consumer.subscribe(LOOSE, type=Shared)
        await consumer.flow()
    await sender.publish(*[plain(b"%d" % i) for i in range(10)], producer_id=1)
    received = await wire.payloads(5) + await other.payloads(5)
    assert sorted(received) == [b"%d" % i for i in range(10)]


@pytest.mark.req("B-37", "B-03")
async def test_a_loose_failover_consumer_is_active_at_once(bed: Bed, wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE, type=Failover, consumer_name="a")
    await wire.flow()
    await sender.publish(plain(b"x"), producer_id=1)
    assert await wire.payloads(1) == [b"x"]
    other = await bed.connect()
    await other.subscribe(LOOSE, type=Failover, consumer_name="b", priority_level=1)
    assert not (await other.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    await wire.quiet(2)
