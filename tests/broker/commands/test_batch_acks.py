"""Acknowledgements of single messages of a batch (PIP-54), in frames."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PIP, PROFILES, PULSAR_4_2, Config, Profile
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import (
    TOPIC,
    Bed,
    Cumulative,
    Exclusive,
    Message,
    Shared,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    serving,
)

TYPES = pytest.mark.parametrize("type", [Exclusive, Shared])
OFF = Config(acknowledgmentAtBatchIndexLevelEnabled=False)


def consumers_of(bed: Bed) -> list[Consumer]:
    return list(bed.subscription().consumers)


def batch(size: int) -> bytes:
    """Build a batch whose payloads are the batch indexes."""
    return batch_of(*[b"%d" % i for i in range(size)])


def set_without(size: int, *acked: int) -> list[int]:
    """Return the ack set that acknowledges these batch indexes: a bit for each of the others."""
    bits = (1 << size) - 1
    for index in acked:
        bits &= ~(1 << index)
    words = [bits >> shift & (2**64 - 1) for shift in range(0, size, 64)]
    while words and not words[-1]:
        words.pop()
    return [word - 2**64 if word >= 2**63 else word for word in words] or [0]


async def ack_set(wire: Wire, position: Position, words: list[int], **fields: int) -> None:
    await wire.ack(message_id=[message_id(position, ack_set=words)], **fields)


async def again(wire: Wire, type: int) -> None:
    """Close the consumer, and subscribe again."""
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(type=type)
    await wire.flow()


def remaining(message: Message) -> list[int]:
    return list(message.command.ack_set)


@pytest.mark.req("S54-01", "S54-02")
def test_the_numbers_of_the_fields() -> None:
    for message, number in ((pb.CommandMessage, 4), (pb.MessageIdData, 5)):
        field = message.DESCRIPTOR.fields_by_name["ack_set"]
        assert (field.number, field.is_repeated, field.type) == (number, True, field.TYPE_INT64)


@pytest.mark.req("S54-07")
def test_on_unless_it_is_switched_off() -> None:
    assert Config().acknowledgmentAtBatchIndexLevelEnabled is True


@pytest.mark.req("S54-28")
@pytest.mark.parametrize("profile", PROFILES.values())
async def test_in_every_profile(autojump_clock: object, profile: Profile) -> None:
    """Pulsar acknowledges batch indexes since 2.6.0, so the stock profile does too."""
    async with serving(profile=profile) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        (position,) = await wire.publish(batch(5))
        await ack_set(wire, position, [28])
        await wire.flow()
        assert remaining(await wire.message()) == [28]


@pytest.mark.req("S54-08", "S54-11", "S54-12")
@TYPES
@pytest.mark.parametrize(
    ("size", "acked", "words"),
    [
        (10, [3], [1015]),
        (5, [0, 1], [28]),
        pytest.param(70, range(64), [0, 63], marks=pytest.mark.req("S54-09")),
        pytest.param(65, [64], [-1], marks=pytest.mark.req("S54-09")),
        (64, [63], [2**63 - 1]),
    ],
)
async def test_only_the_unacknowledged_messages_of_a_batch_are_redelivered(
    wire: Wire, sender: Wire, type: int, size: int, acked: list[int], words: list[int]
) -> None:
    await wire.subscribe(type=type)
    await wire.flow()
    (position,) = await sender.publish(batch(size))
    first = await wire.message()
    assert remaining(first) == []  # an empty ack set means that nothing is acknowledged
    assert not any(number == 4 for number in tags(first.command))
    for index in acked:
        await ack_set(wire, position, set_without(size, index))
    await again(wire, type)
    message = await wire.message()
    assert (message.position, remaining(message)) == (position, words)
    assert message.entry == first.entry  # the whole batch, whatever remains


def tags(command: pb.CommandMessage) -> list[int]:
    return [field.number for field, _ in command.ListFields()]


@pytest.mark.req("S54-14")
@TYPES
async def test_a_late_ack_brings_nothing_back(wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    (position,) = await sender.publish(batch(5))
    for index in (0, 1, 0):
        await ack_set(wire, position, set_without(5, index))
    await ack_set(wire, position, [31, -1])
    await wire.flow()
    assert remaining(await wire.message()) == [28]


@pytest.mark.req("S54-10", "S54-15")
@TYPES
async def test_all_of_it_one_after_the_other(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    await wire.flow()
    (position,) = await sender.publish(batch(5))
    await wire.message()
    cursor = bed.subscription().cursor
    for left, index in zip((4, 3, 2, 1), (4, 0, 2, 3), strict=True):
        await ack_set(wire, position, set_without(5, index))
        assert (cursor.backlog(), cursor.batch_acks.remaining(position)) == (1, left)
        assert cursor.mark_delete < position
    await ack_set(wire, position, set_without(5, 1))
    assert (cursor.backlog(), len(cursor.batch_acks), cursor.mark_delete) == (0, 0, position)
    await again(wire, type)
    await wire.quiet()


@pytest.mark.req("S54-10")
@TYPES
@pytest.mark.parametrize("fields", [{}, {"batch_index": 1}, {"ack_set": [0]}, {"ack_set": [0, 0]}])
async def test_an_ack_without_a_set_or_with_an_empty_set_is_of_the_whole_batch(
    bed: Bed, wire: Wire, sender: Wire, type: int, fields: dict[str, object]
) -> None:
    await wire.subscribe(type=type)
    (position,) = await sender.publish(batch(5))
    await ack_set(wire, position, [28])
    await wire.ack(message_id=[message_id(position, **fields)])
    assert (bed.subscription().cursor.mark_delete, len(bed.subscription().cursor.batch_acks)) == (position, 0)


@pytest.mark.req("S54-16")
@TYPES
async def test_acknowledged_messages_of_a_batch_cost_no_permits(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    (position,) = await sender.publish(batch(10))
    await ack_set(wire, position, set_without(10, 0, 1, 2, 3))
    await wire.flow(10)
    await wire.message()
    assert [consumer.permits for consumer in consumers_of(bed)] == [4]
    await sender.publish(*[plain(b"x")] * 6)
    await wire.messages(4)
    await wire.quiet()


@pytest.mark.req("S54-17")
@TYPES
async def test_partial_acks_never_stall_a_consumer(wire: Wire, sender: Wire, type: int) -> None:
    """The consumer sends a permit for each message that it sees."""
    await wire.subscribe(type=type)
    for _ in range(20):
        (position,) = await sender.publish(batch(10))
        await ack_set(wire, position, set_without(10, *range(4)))
    await wire.flow(10)
    for _ in range(20):
        message = await wire.message()
        await ack_set(wire, message.position, [0])
        await wire.flow(6)
    await wire.quiet()


@pytest.mark.req("S54-18")
async def test_unacked_messages_are_messages(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow()
    (position,) = await sender.publish(batch(10))
    await wire.message()
    (consumer,) = consumers_of(bed)
    assert consumer.unacked == 10
    await ack_set(wire, position, set_without(10, 0, 1, 2, 3))
    assert consumer.unacked == 6
    await ack_set(wire, position, set_without(10, 0))
    assert consumer.unacked == 6
    await again(wire, Shared)
    await wire.message()
    (consumer,) = consumers_of(bed)
    assert consumer.unacked == 6
    await ack_set(wire, position, [0])
    assert consumer.unacked == 0


@pytest.mark.req("S54-19", "S423-64")
@TYPES
@pytest.mark.parametrize("clean", [True, False])
async def test_answered_batch_acks_outlive_the_broker(autojump_clock: object, type: int, clean: bool) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=type)
        (position, _) = await wire.publish(batch(5), batch(70))
        await ack_set(wire, position, [28])
        killed = dict(store.metadata)
    if not clean:
        store.metadata = killed
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.subscribe(type=type)
        await wire.flow()
        assert [remaining(message) for message in await wire.messages(2)] == [[28], []]


@pytest.mark.req("S54-19")
@TYPES
@pytest.mark.parametrize("how", ["unload", "restart"])
@pytest.mark.parametrize(("profile", "sets"), [(PIP, [[28], []]), (PULSAR_4_2, [[], []])])
async def test_a_topic_that_is_loaded_again_knows_parts_of_batches_but_in_pulsar_4_2(
    autojump_clock: object, type: int, how: str, profile: Profile, sets: list[list[int]]
) -> None:
    store = HeldStorage()
    async with serving(profile=profile, storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=type)
        (whole, part, *_) = await wire.publish(*[batch(5) for _ in range(3)])
        await wire.ack(whole)
        await ack_set(wire, part, [28])
        if how == "unload":
            bed.broker.topics.unload(TopicName.parse(TOPIC))
            other = await bed.connect()
            await other.subscribe(type=type)
            await other.flow()
            assert [remaining(message) for message in await other.messages(2)] == sets
    if how == "restart":
        async with serving(profile=profile, storage=store) as bed:
            wire = await bed.connect()
            await wire.subscribe(type=type)
            await wire.flow()
            assert [remaining(message) for message in await wire.messages(2)] == sets


@pytest.mark.req("S423-63")
@pytest.mark.parametrize(("profile", "again"), [(PIP, [1, 3, 5]), (PULSAR_4_2, [1, 3, 4, 5])])
async def test_an_unload_keeps_ranges_past_the_cap_but_in_pulsar_4_2(
    autojump_clock: object, profile: Profile, again: list[int]
) -> None:
    config = Config(managedLedgerMaxUnackedRangesToPersist=1)
    async with serving(config, profile=profile) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        positions = await wire.publish(*[plain(b"%d" % number) for number in range(6)])
        await wire.ack(positions[0], positions[2], positions[4])
        bed.broker.topics.unload(TopicName.parse(TOPIC))
        other = await bed.connect()
        await other.subscribe(type=Shared)
        await other.flow()
        assert [int(payload) for payload in await other.payloads(len(again))] == again


@pytest.mark.req("S54-19")
async def test_in_pulsar_4_2_parts_of_batches_outlive_an_unload_beside_too_many_ranges(autojump_clock: object) -> None:
    """A cursor with too many ranges keeps its ledger, which stores the batch indexes too."""
    config = Config(managedLedgerMaxUnackedRangesToPersistInMetadataStore=1)
    async with serving(config, profile=PULSAR_4_2) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe(type=Shared)
        positions = await wire.publish(*[batch(5) for _ in range(6)])
        await wire.ack(positions[1], positions[3])
        await ack_set(wire, positions[0], [28])
        bed.broker.topics.unload(TopicName.parse(TOPIC))
        other = await bed.connect()
        await other.subscribe(type=Shared)
        await other.flow()
        assert [remaining(message) for message in await other.messages(4)] == [[28], [], [], []]


@pytest.mark.req("S54-06", "S54-20")
@TYPES
@pytest.mark.serving(OFF)
async def test_without_batch_index_acks_a_partial_ack_acknowledges_nothing(bed: Bed, wire: Wire, type: int) -> None:
    """The broker answers a partial ack, but acknowledges nothing and redelivers the whole batch."""
    await wire.producer()
    await wire.subscribe(type=type)
    await wire.flow()
    (position,) = await wire.publish(batch(5))
    await wire.message()
    for words in ([16], [0]):
        await ack_set(wire, position, words)
        await again(wire, type)
        assert remaining(await wire.message()) == []
    assert (bed.subscription().cursor.backlog(), len(bed.subscription().cursor.batch_acks)) == (1, 0)
    assert consumers_of(bed)[0].permits == 995
    await wire.ack(position)
    assert bed.subscription().cursor.backlog() == 0


@pytest.mark.req("S54-21")
async def test_cumulative_inside_a_batch(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    positions = await sender.publish(plain(b"a"), batch(5), plain(b"b"))
    await ack_set(wire, positions[1], set_without(5, 0, 1, 2), type=Cumulative)
    assert (bed.subscription().cursor.mark_delete, bed.subscription().cursor.backlog()) == (positions[0], 2)
    await wire.flow()
    assert [remaining(message) for message in await wire.messages(2)] == [[24], []]
    await ack_set(wire, positions[1], [0], type=Cumulative)
    assert bed.subscription().cursor.mark_delete == positions[1]
    await ack_set(wire, positions[1], [24], type=Cumulative)  # backwards
    assert (bed.subscription().cursor.mark_delete, len(bed.subscription().cursor.batch_acks)) == (positions[1], 0)


@pytest.mark.req("S54-22")
async def test_a_nack_counts_the_entry(wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow()
    (position,) = await sender.publish(batch(5))
    await wire.message()
    await ack_set(wire, position, [28])
    await wire.redeliver([position])
    message = await wire.message()
    assert (remaining(message), message.redelivery_count) == ([28], 1)
    await wire.redeliver([position])
    message = await wire.message()
    assert (remaining(message), message.redelivery_count) == ([28], 2)


@pytest.mark.req("S54-26")
async def test_anybody_may_acknowledge_on_shared(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.flow()
    (position,) = await sender.publish(batch(5))
    await wire.message()
    other = await bed.connect()
    await other.subscribe(type=Shared)
    owner, _ = consumers_of(bed)
    await ack_set(other, position, set_without(5, 2))
    assert [consumer.unacked for consumer in consumers_of(bed)] == [4, 0]
    await ack_set(other, position, [0])
    assert (owner.unacked, bed.subscription().cursor.backlog()) == (0, 0)


@pytest.mark.req("S54-27")
async def test_a_client_that_knows_no_ack_sets_sees_all_again(wire: Wire, sender: Wire) -> None:
    """An old client receives the ack set, but does not read it. The entry is always whole."""
    await wire.subscribe(type=Shared)
    await wire.flow()
    (position,) = await sender.publish(batch(3))
    first = await wire.message()
    await ack_set(wire, position, set_without(3, 0, 1))
    await again(wire, Shared)
    message = await wire.message()
    assert message.payload == first.payload
    await wire.ack(position)  # such a client does so after it has seen all messages
    await again(wire, Shared)
    await wire.quiet()


@pytest.mark.req("B-17")
@TYPES
async def test_sets_are_not_compared_with_the_batch(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    """The broker keeps and returns sets that are longer than the batch, or whose entry is no batch, as Pulsar does."""
    await wire.subscribe(type=type)
    positions = await sender.publish(batch(5), plain(b"x"), batch(5))
    await ack_set(wire, positions[0], [21, 1])
    await ack_set(wire, positions[1], [6])
    await ack_set(wire, positions[2], [-1, -1, 0])
    assert bed.subscription().cursor.backlog() == 3
    await wire.flow()
    assert [remaining(message) for message in await wire.messages(3)] == [[21, 1], [6], [-1, -1]]
    for position in positions:
        await ack_set(wire, position, [0])
    assert (bed.subscription().cursor.mark_delete, len(bed.subscription().cursor.batch_acks)) == (positions[2], 0)


@pytest.mark.req("B-17")
@TYPES
async def test_sets_of_nothing_change_nothing(bed: Bed, wire: Wire, sender: Wire, type: int) -> None:
    await wire.subscribe(type=type)
    positions = await sender.publish(batch(5), batch(5))
    await wire.ack(positions[0])
    ledger_id = positions[0].ledger_id
    for position in (positions[0], Position(ledger_id, 3), Position(ledger_id, -1), Position(ledger_id + 1000, 9)):
        for words in ([1], [0]):
            for ack_type in (pb.CommandAck.Individual, Cumulative):
                await ack_set(wire, position, words, type=ack_type)
                cursor = bed.subscription().cursor
                assert (cursor.mark_delete, cursor.backlog(), len(cursor.batch_acks)) == (positions[0], 1, 0)
