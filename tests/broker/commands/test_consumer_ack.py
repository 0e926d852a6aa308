"""ACK: individual, cumulative, and of batch indexes; its answers, and its storage."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_4_2, PULSAR_5_0
from pulsarium.broker.model.ledger.position import Position
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
    Shared,
    Type,
    Wire,
    batch_of,
    entry_ids,
    message_id,
    plain,
    serving,
)


@pytest.mark.req("B-15")
@pytest.mark.parametrize("type", [Exclusive, Shared, Failover])
async def test_single_acks_leave_holes(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow()
    positions = await sender.publish_numbered(6)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.messages(6)
    cursor = bed.subscription().cursor
    await wire.ack(positions[1], positions[3])
    assert (cursor.mark_delete.entry_id, cursor.backlog()) == (-1, 4)
    await wire.ack(positions[0])
    assert (cursor.mark_delete, cursor.backlog()) == (positions[1], 3)
    await wire.ack(positions[0], positions[1])  # a second time
    await wire.ack(positions[5], positions[4], positions[2])
    assert (cursor.mark_delete, cursor.backlog()) == (positions[5], 0)


@pytest.mark.req("B-16")
@pytest.mark.parametrize(("type", "taken"), [(Exclusive, True), (Failover, True), (Shared, False)])
async def test_acks_of_all_so_far(bed: Bed, wire: Wire, sender: Wire, type: int, taken: bool) -> None:
    await wire.subscribe(type=type)
    await wire.flow()
    positions = await sender.publish_numbered(5)
    if type == Failover:
        await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.messages(5)
    cursor = bed.subscription().cursor
    await wire.ack(positions[4])
    await wire.ack(positions[2], type=Cumulative)  # answered as success either way
    assert cursor.backlog() == (1 if taken else 4)
    await wire.ack(positions[1], type=Cumulative)  # backwards
    assert cursor.backlog() == (1 if taken else 4)
    await wire.ack(positions[3], type=Cumulative)
    assert cursor.backlog() == (0 if taken else 4)


async def test_acks_without_a_request_id_are_not_answered(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await sender.publish_numbered(1)
    await wire.send(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(position)])
    await wire.alive()
    assert bed.subscription().cursor.backlog() == 0


@pytest.mark.parametrize("version", [0, 16, 17, 21])
async def test_acks_with_a_request_id_are_answered_whatever_the_version(bed: Bed, version: int) -> None:
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
    await sender.publish_numbered(2)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    for connection, kind in ((sender, Type.CLOSE_PRODUCER), (wire, Type.CLOSE_CONSUMER)):
        while (await connection.next()).command.type != kind:
            pass
    await sender.producer()
    await wire.subscribe(type=type)
    await wire.flow(1_000_000)
    positions = await sender.publish_numbered(3)
    first, second = (await wire.messages(5))[0].position.ledger_id, positions[0].ledger_id
    await wire.ack(positions[1])
    cursor = bed.subscription().cursor
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
    for entry_id in ODD[3:]:  # as signed numbers, the first three are negative
        await wire.ack(Position(second, entry_id), type=Cumulative)
        await wire.ack(Position(first + 1000, entry_id), type=Cumulative)
        assert cursor.backlog() == 4
    await wire.ack(type=Cumulative)
    await wire.ack(*positions, type=Cumulative)
    assert cursor.backlog() == 4
    await wire.ack(Position(first, 2**40), type=Cumulative)  # behind an earlier ledger: acknowledges all of it
    assert cursor.backlog() == (2 if type == Exclusive else 4)
    await wire.ack(Position(first, 2**50), type=Cumulative)
    assert cursor.backlog() == (2 if type == Exclusive else 4)


async def test_transactional_acks_are_refused(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    (position,) = await sender.publish_numbered(1)
    fields: dict[str, Any] = {"consumer_id": 0, "ack_type": Individual, "message_id": [message_id(position)]}
    response = await wire.ask(Type.ACK, txnid_most_bits=0, txnid_least_bits=1, **fields)
    assert (response.error, response.message) == (pb.NotAllowedError, "Server don't support transaction ack!")
    assert bed.subscription().cursor.backlog() == 1


async def test_acks_before_delivery_count(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.subscribe(name="shared", type=Shared, consumer_id=1)
    positions = await sender.publish_numbered(4)
    for consumer_id in (0, 1):
        await wire.ack(positions[0], positions[2], consumer_id=consumer_id)
        await wire.flow(consumer_id=consumer_id)
        assert entry_ids(await wire.messages(2)) == [1, 3]
    await wire.quiet()


async def test_acks_between_a_redelivery_and_its_dispatch_count(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.flow(3)
    positions = await sender.publish_numbered(3)
    await wire.messages(3)
    await wire.redeliver()  # no permits are left
    await wire.ack(positions[0], positions[1])
    await wire.flow()
    assert entry_ids(await wire.messages(1)) == [2]
    await wire.quiet()


@pytest.mark.req("B-13")
async def test_the_answer_to_an_ack_waits_for_its_commit(store: HeldStorage, wire: Wire) -> None:
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
        positions = await wire.publish_numbered(5)
        await wire.ack(positions[0], positions[3], consumer_id=len("waited for"))
        ids = [message_id(positions[i]) for i in (0, 3)]
        await wire.send(Type.ACK, consumer_id=len("not waited for"), ack_type=Individual, message_id=ids)
        await wire.quiet(0.9)  # within a second
        kept = dict(store.metadata)
    store.metadata = kept  # what a kill leaves
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        for consumer_id, name in enumerate(("waited for", "not waited for")):
            await wire.subscribe(name=name, consumer_id=consumer_id)
            await wire.flow(consumer_id=consumer_id)
            assert [message.position for message in await wire.messages(3)] == [positions[i] for i in (1, 2, 4)]


@pytest.mark.req("B-13")
@pytest.mark.parametrize(("rate", "most"), [(None, 40), (0.0, 40), (1.0, 4), (2.0, 7)])
async def test_cursors_are_written_at_a_rate(autojump_clock: object, rate: float | None, most: int) -> None:
    """The rate is managedLedgerDefaultMarkDeleteRateLimit, in writes a second."""
    store = HeldStorage()
    async with serving(Config(managedLedgerDefaultMarkDeleteRateLimit=rate), storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        saved = bed.subscription().cursor.saves
        for position in await wire.publish_numbered(100):
            await wire.send(Type.ACK, consumer_id=0, ack_type=Individual, message_id=[message_id(position)])
            await wire.quiet(0.03)
        assert most / 2 <= bed.subscription().cursor.saves - saved <= most


@pytest.mark.parametrize(("type", "several"), [(Shared, False), (Exclusive, True)])
async def test_an_ignored_cumulative_ack_keeps_no_properties(
    bed: Bed, wire: Wire, sender: Wire, type: int, several: bool
) -> None:
    positions = await sender.publish(plain(b"x"), plain(b"y"))
    await wire.subscribe(type=type, initialPosition=Earliest)
    acked = positions if several else positions[:1]
    await wire.ack(*acked, type=Cumulative, properties=[{"key": "a", "value": 1}])
    assert (bed.subscription().cursor.properties, bed.subscription().cursor.backlog()) == ({}, 2)


async def test_a_message_that_its_client_could_not_read_is_acknowledged_and_logged(
    bed: Bed, wire: Wire, sender: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    positions = await sender.publish(plain(b"x"))
    await wire.subscribe(initialPosition=Earliest)
    await wire.ack(*positions, validation_error=pb.CommandAck.ChecksumMismatch)
    assert bed.subscription().cursor.backlog() == 0
    assert "ChecksumMismatch" in caplog.text


async def test_properties_of_a_cumulative_ack_are_kept(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    positions = await sender.publish_numbered(2)
    await wire.ack(positions[0], properties=[{"key": "a", "value": 1}])
    assert bed.subscription().cursor.properties == {}
    await wire.ack(positions[1], type=Cumulative, properties=[{"key": "a", "value": 1}, {"key": "b", "value": 2}])
    assert bed.subscription().cursor.properties == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (pb.KeyLongValue(key="a", value=2**63), {"a": -(2**63)}),  # uint64 on the wire, a signed long in the cursor
        (pb.KeyLongValue(key="a", value=2**64 - 1), {"a": -1}),
        (pb.KeyLongValue.FromString(b"\x0a\x02\xffa\x10\x01"), {"\ufffda": 1}),
    ],
)
async def test_whatever_properties_an_ack_has_can_be_kept(
    autojump_clock: object, given: pb.KeyLongValue, kept: dict[str, int]
) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        positions = await wire.publish_numbered(2)
        await wire.ack(positions[0], type=Cumulative, properties=[given])
        assert bed.subscription().cursor.properties == kept
    async with serving(storage=store) as bed:
        assert bed.subscription().cursor.properties == kept
        assert bed.subscription().cursor.mark_delete == positions[0]


@pytest.mark.req("B-05")
@pytest.mark.parametrize("type", [Exclusive, Shared])
async def test_the_rest_of_a_batch_is_redelivered_and_costs_its_own_permits(
    wire: Wire, sender: Wire, type: int
) -> None:
    await wire.subscribe(type=type)
    await wire.flow(10)
    (position,) = await sender.publish(batch_of(*[b"%d" % i for i in range(10)]))
    assert (await wire.message()).command.ack_set == []
    await wire.ack(message_id=[message_id(position, ack_set=[0b11])])
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(type=type)
    await wire.flow(5)
    message = await wire.message()
    assert (message.position, list(message.command.ack_set)) == (position, [0b11])
    await sender.publish_numbered(4)
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
    await wire.ack(type=Cumulative, message_id=[message_id(positions[1], ack_set=[0])])
    assert bed.subscription().cursor.mark_delete == positions[1]


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_4_2_a_cumulative_ack_without_bits_leaves_the_batch(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    positions = await sender.publish(plain(b"a"), batch_of(b"b", b"c"))
    await wire.ack(type=Cumulative, message_id=[message_id(positions[1], ack_set=[0])])
    assert bed.subscription().cursor.mark_delete == positions[0]
    await wire.ack(message_id=[message_id(positions[1], ack_set=[0])])  # an individual one acknowledges the batch
    assert bed.subscription().cursor.mark_delete == positions[1]


@pytest.mark.serving(profile=PULSAR_5_0)
async def test_in_5_0_an_acknowledgement_that_cannot_be_is_an_error(wire: Wire, sender: Wire) -> None:
    async def told(position: Position, ack_type: int = Cumulative) -> pb.CommandAckResponse:
        answer = await wire.ask(Type.ACK, consumer_id=0, ack_type=ack_type, message_id=[message_id(position)])
        assert isinstance(answer, pb.CommandAckResponse)
        return answer

    await wire.subscribe()
    first, last = await sender.publish(plain(b"a"), plain(b"b"))
    assert not (await told(last)).HasField("error")
    backwards = await told(first)
    assert backwards.error == pb.UnknownError
    assert f"Current mark-delete: {last} -- attempted mark delete: {first}" in backwards.message
    behind = Position(last.ledger_id, last.entry_id + 1)
    for refused in (await told(behind), await told(behind, Individual)):
        assert refused.error == pb.UnknownError
        assert refused.message.endswith(": Invalid mark deleted position")
    assert not (await told(last)).HasField("error")


@pytest.mark.serving(Config(acknowledgmentAtBatchIndexLevelEnabled=False))
async def test_parts_of_batches_may_be_nothing(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    (position,) = await wire.publish(batch_of(b"a", b"b"))
    for ack_type in (Individual, Cumulative):
        for ack_set in ([1], [0]):
            await wire.ack(type=ack_type, message_id=[message_id(position, ack_set=ack_set)])
    await wire.flow()
    assert (await wire.message()).command.ack_set == []
    await wire.ack(message_id=[message_id(position, batch_index=1)])  # without an ack set: the whole batch
    assert bed.subscription().cursor.backlog() == 0
