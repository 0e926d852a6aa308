"""Consumers with read_compacted on a compacted topic."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto import entry
from tests.broker.compacted import Retained, compacted, compacted_batch, trim
from tests.broker.model.compaction.topics import compact
from tests.broker.wire import (
    Bed,
    Cumulative,
    Earliest,
    Failover,
    Latest,
    Type,
    Wire,
    batch_of,
    message_id,
    plain,
    position_of,
)


class Stage(NamedTuple):
    """A topic of ten entries. Compaction has kept 2, 5, and the second message of the batch at 6."""

    bed: Bed
    sender: Wire
    positions: list[Position]
    retained: Retained

    def at(self, *places: int) -> list[Position]:
        return [self.positions[place] for place in places]

    def subscription(self) -> Any:
        return self.bed.subscription()


HORIZON = 7
KEPT = (2, 5, 6)
NEWER = (8, 9)


@pytest.fixture
async def stage(bed: Bed) -> Stage:
    sender = await bed.connect()
    await sender.producer()
    entries = [batch_of(b"x", b"y") if i == 6 else plain(b"%d" % i) for i in range(10)]
    positions = await sender.publish(*entries)
    kept = {positions[2]: entries[2], positions[5]: entries[5], positions[6]: compacted_batch(None, b"y")}
    retained = Retained(positions[HORIZON], kept)
    compacted(bed.topic(), retained)
    return Stage(bed, sender, positions, retained)


async def subscribe(wire: Wire, permits: int = 1000, **fields: Any) -> None:
    await wire.subscribe(**{"read_compacted": True, "initialPosition": Earliest, **fields})
    if permits:
        await wire.flow(permits)


async def get(wire: Wire, positions: Sequence[Position]) -> None:
    """Expect messages at these positions, and no others."""
    assert [message.position for message in await wire.messages(len(positions))] == list(positions)
    await wire.quiet()


async def test_a_reader_gets_compacted_and_then_newer_entries(stage: Stage, wire: Wire) -> None:
    await subscribe(wire)
    messages = await wire.messages(5)
    assert [message.position for message in messages] == stage.at(*KEPT, *NEWER)
    assert messages[2].entry == compacted_batch(None, b"y")
    await wire.quiet()
    assert stage.subscription().reason is Reason.CAUGHT_UP
    await get(wire, await stage.sender.publish(plain(b"new")))


async def test_a_consumer_without_read_compacted_gets_all_messages(stage: Stage, wire: Wire) -> None:
    await subscribe(wire, read_compacted=False)
    await get(wire, stage.positions)


async def test_permits_and_the_limit_of_one_read(stage: Stage, wire: Wire) -> None:
    await subscribe(wire, 1)
    for place in (*KEPT[:2], 6, *NEWER):
        (message,) = await wire.messages(1)
        assert message.position == stage.positions[place]
        await wire.quiet()
        await wire.flow(2 if place == 5 else 1)  # the batch takes two permits, though one message is gone
        if place == 6:
            assert next(iter(stage.subscription().consumers)).permits == 0


async def test_a_compacted_topic_is_read_on_failover(stage: Stage, wire: Wire) -> None:
    await subscribe(wire, 0, type=Failover, consumer_name="a")
    await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)
    other = await stage.bed.connect()
    await subscribe(other, type=Failover, consumer_name="b", priority_level=1)
    await other.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await wire.rest(2)  # the broker sends ACTIVE_CONSUMER_CHANGE again
    await wire.flow()
    await get(wire, stage.at(*KEPT, *NEWER))
    await wire.ack(*stage.at(2))
    await wire.aclose()
    await other.expect(Type.ACTIVE_CONSUMER_CHANGE)
    await get(other, stage.at(5, 6, *NEWER))


async def test_acknowledged_entries_do_not_come_back(stage: Stage, wire: Wire) -> None:
    """Entries that compaction has removed stay in the backlog, as in Pulsar."""
    await subscribe(wire)
    await wire.messages(5)
    await wire.ack(*stage.at(5, 8))
    await wire.redeliver()
    await get(wire, stage.at(2, 6, 9))
    await wire.aclose()
    again = await stage.bed.connect()
    await subscribe(again)
    await get(again, stage.at(2, 6, 9))
    assert stage.subscription().cursor.backlog() == 8


async def test_entries_that_compaction_dropped_stay_in_the_backlog(stage: Stage, wire: Wire) -> None:
    await subscribe(wire)
    await wire.messages(5)
    await wire.ack(*stage.at(5))
    why = stage.subscription().why
    assert [why(position) for position in stage.at(3, 5, 7)] == [
        Reason.COMPACTED_AWAY,
        Reason.ACKNOWLEDGED,
        Reason.COMPACTED_AWAY,
    ]
    for position in stage.at(6, 8):
        assert why(position) not in (Reason.COMPACTED_AWAY, Reason.ACKNOWLEDGED)


async def test_everything_kept_is_acknowledged(stage: Stage, wire: Wire) -> None:
    await subscribe(wire)
    await wire.messages(5)
    await wire.ack(*stage.at(*KEPT))
    await wire.redeliver()
    await get(wire, stage.at(*NEWER))


async def test_a_cumulative_ack_covers_entries_that_were_compacted_out(stage: Stage, wire: Wire) -> None:
    await subscribe(wire)
    await wire.messages(5)
    await wire.ack(*stage.at(5), type=Cumulative)
    assert stage.subscription().cursor.mark_delete == stage.positions[5]
    assert stage.subscription().cursor.backlog() == 4
    await wire.redeliver()
    await get(wire, stage.at(6, *NEWER))
    await wire.ack(*stage.at(9), type=Cumulative)
    assert stage.subscription().cursor.backlog() == 0


@pytest.mark.req("S54-16")
async def test_part_of_a_compacted_batch_is_read(stage: Stage, wire: Wire) -> None:
    """Batch indexes are those of the producer: messages that were not kept still count."""
    await subscribe(wire)
    await wire.messages(5)
    ids = [message_id(stage.positions[6], ack_set=[0b10], batch_size=2)]
    await wire.ack(message_id=ids)
    await wire.redeliver()
    messages = await wire.messages(5)
    assert [message.position for message in messages] == stage.at(*KEPT, *NEWER)
    assert list(messages[2].command.ack_set) == [0b10]
    ids = [message_id(stage.positions[6], ack_set=[0b01], batch_size=2)]
    await wire.ack(message_id=ids)
    await wire.redeliver()
    await get(wire, stage.at(2, 5, *NEWER))


@pytest.mark.parametrize(
    ("target", "then"), [(0, (*KEPT, *NEWER)), (3, (5, 6, *NEWER)), (6, (6, 8, 9)), (7, NEWER), (9, (9,))]
)
async def test_a_seek_to_any_entry_continues_with_the_compacted_ones(
    stage: Stage, wire: Wire, target: int, then: tuple[int, ...]
) -> None:
    """The seek is inclusive. Its target may be an entry that was not kept."""
    await subscribe(wire)
    await wire.messages(5)
    await wire.write(wire.numbered(Type.SEEK, consumer_id=0, message_id=message_id(stage.positions[target])))
    await wire.expect(Type.CLOSE_CONSUMER)
    await wire.expect(Type.SUCCESS)
    await subscribe(wire)
    await get(wire, stage.at(*then))


@pytest.mark.parametrize(
    ("start", "then"), [(0, (*KEPT, *NEWER)), (2, (*KEPT, *NEWER)), (3, (5, 6, 8, 9)), (7, NEWER), (9, (9,))]
)
async def test_a_reader_from_an_id(stage: Stage, wire: Wire, start: int, then: tuple[int, ...]) -> None:
    await subscribe(wire, durable=False, start_message_id=message_id(stage.positions[start]))
    await get(wire, stage.at(*then))
    await wire.redeliver()
    await get(wire, stage.at(*then))


@pytest.mark.parametrize(("start", "then"), [(EARLIEST, (*KEPT, *NEWER)), (LATEST, ())])
async def test_a_reader_from_an_end(stage: Stage, wire: Wire, start: Position, then: tuple[int, ...]) -> None:
    await subscribe(wire, durable=False, start_message_id=message_id(start), initialPosition=Latest)
    await get(wire, stage.at(*then))
    await get(wire, await stage.sender.publish(plain(b"new")))


async def test_a_compacted_topic_that_kept_nothing_is_read(stage: Stage, wire: Wire) -> None:
    stage.retained.entries.clear()
    await subscribe(wire)
    await get(wire, stage.at(*NEWER))


async def test_nothing_is_newer(stage: Stage, wire: Wire) -> None:
    stage.retained.horizon = stage.positions[9]
    await subscribe(wire)
    await get(wire, stage.at(*KEPT))
    assert stage.subscription().reason is Reason.CAUGHT_UP
    await get(wire, await stage.sender.publish(plain(b"new")))


async def test_compaction_while_a_consumer_reads(stage: Stage, wire: Wire) -> None:
    """The consumer goes on from its position, with the entries that were kept behind it."""
    stage.retained.horizon = None
    await subscribe(wire, 3)
    await get(wire, stage.at(0, 1, 2))
    stage.retained.horizon = stage.positions[HORIZON]
    await wire.flow()
    await get(wire, stage.at(5, 6, *NEWER))


async def test_retained_entries_that_are_not_in_memory(stage: Stage, wire: Wire) -> None:
    stage.retained.loading = True
    await subscribe(wire)
    await wire.quiet()
    assert stage.subscription().reason is Reason.LOADING
    stage.retained.loaded()
    await get(wire, stage.at(*KEPT, *NEWER))


async def test_markers_are_passed_over(stage: Stage, wire: Wire) -> None:
    stage.retained.entries.insert(1, (stage.positions[3], plain(b"", marker_type=1)))
    await subscribe(wire)
    await get(wire, stage.at(*KEPT, *NEWER))


async def test_a_reader_gets_what_is_left_of_trimmed_ledgers(stage: Stage, wire: Wire) -> None:
    trim(stage.bed.topic())
    (newer,) = await stage.sender.publish(plain(b"new"))
    await subscribe(wire, durable=False, start_message_id=message_id(EARLIEST))
    await get(wire, [*stage.at(*KEPT), newer])
    await wire.redeliver()
    await get(wire, [*stage.at(*KEPT), newer])
    await wire.ack(newer, type=Cumulative)
    await wire.redeliver()
    await wire.quiet()


async def test_a_reader_whose_permits_end_between_trimmed_and_other_ledgers(stage: Stage, wire: Wire) -> None:
    topic = stage.bed.topic()
    trim(topic)
    (newer,) = await stage.sender.publish(plain(b"new"))
    stage.retained.horizon = newer
    stage.retained.entries.append((newer, plain(b"new")))
    await subscribe(wire, 4, durable=False, start_message_id=message_id(EARLIEST))
    await get(wire, stage.at(*KEPT))
    assert stage.subscription().cursor.read_position == newer
    await wire.flow(10)
    await get(wire, [newer])


async def test_a_reader_from_an_id_in_trimmed_ledgers(stage: Stage, wire: Wire) -> None:
    trim(stage.bed.topic())
    (newer,) = await stage.sender.publish(plain(b"new"))
    await subscribe(wire, durable=False, start_message_id=message_id(stage.positions[5]))
    await get(wire, [*stage.at(5, 6), newer])
    await wire.redeliver()
    await get(wire, [*stage.at(5, 6), newer])


async def test_a_reader_that_seeks_in_a_trimmed_topic(stage: Stage, wire: Wire) -> None:
    trim(stage.bed.topic())
    (newer,) = await stage.sender.publish(plain(b"new"))
    await subscribe(wire, durable=False, start_message_id=message_id(EARLIEST))
    await get(wire, [*stage.at(*KEPT), newer])
    for target, then in ((newer, [newer]), (EARLIEST, [*stage.at(*KEPT), newer])):
        await wire.write(wire.numbered(Type.SEEK, consumer_id=0, message_id=message_id(target)))
        await wire.expect(Type.CLOSE_CONSUMER)
        await wire.expect(Type.SUCCESS)
        await subscribe(wire, durable=False, start_message_id=message_id(target))  # as clients do
        await get(wire, then)


async def test_a_reader_at_the_end_of_a_trimmed_topic(stage: Stage, wire: Wire) -> None:
    """The reader does not begin again with the compacted entries, although the topic's only ledger is empty."""
    topic = stage.bed.topic()
    trim(topic)
    topic.ledger.last_confirmed = topic.ledger.first_position()  # as after a restart
    await subscribe(wire, durable=False, start_message_id=message_id(LATEST), initialPosition=Latest)
    await wire.quiet()
    other = await stage.bed.connect()
    await subscribe(other, name="other", durable=False, start_message_id=message_id(EARLIEST))
    await get(other, stage.at(*KEPT))
    await get(wire, await stage.sender.publish(plain(b"new")))


async def test_a_trimmed_topic_in_which_nothing_is_new(stage: Stage, wire: Wire) -> None:
    stage.retained.horizon = stage.positions[9]
    trim(stage.bed.topic())
    await subscribe(wire, 1, durable=False, start_message_id=message_id(EARLIEST))
    for place in KEPT:
        await get(wire, stage.at(place))
        await wire.flow(2 if place == 6 else 1)  # the batch takes two permits
    await wire.quiet()
    assert stage.subscription().reason is Reason.CAUGHT_UP
    await get(wire, await stage.sender.publish(plain(b"new")))


async def test_a_durable_subscription_of_a_trimmed_topic(stage: Stage, wire: Wire) -> None:
    """The subscription begins with the first ledger that still exists, as in Pulsar."""
    trim(stage.bed.topic())
    (newer,) = await stage.sender.publish(plain(b"new"))
    await subscribe(wire)
    await get(wire, [newer])


@pytest.mark.parametrize("seed", range(12))
async def test_a_table_is_complete_whenever_the_topic_is_compacted(bed: Bed, wire: Wire, seed: int) -> None:
    """A reader keeps the newest message of each key, across compactions, trimming and unloading."""
    chance = random.Random(seed)
    sender = await bed.connect()
    await sender.producer()
    await wire.subscribe(read_compacted=True, durable=False, start_message_id=message_id(EARLIEST))
    truth: dict[str, bytes] = {}
    table: dict[str, bytes] = {}
    places: list[Position] = []

    async def take() -> None:
        for base, data in await wire.rest(0.1):
            if base.type != Type.MESSAGE:
                continue
            places.append(position_of(base.message.message_id))
            key, value = entry.parse_metadata(data).partition_key, entry.payload_of(data)
            table[key] = value
            if not value:
                del table[key]

    for step in range(40):
        key, value = f"k{chance.randrange(6)}", chance.choice([b"", b"%d" % step])
        await sender.publish(plain(value, partition_key=key))
        truth.pop(key, None)
        truth |= {key: value} if value else {}
        if chance.random() < 0.4:
            await wire.flow(chance.randrange(1, 4))
            await take()
        if chance.random() < 0.2:
            await compact(bed.topic())
        if chance.random() < 0.1:
            bed.topic().ledger.reopen()  # begins a ledger: the compacted ones may be trimmed
            bed.topic().trim_soon()
    await wire.flow()
    await take()
    missing = {key for key in truth if table.get(key) != truth[key]}
    assert not missing
    assert places == sorted(set(places))
    await wire.subscribe(
        name="late", read_compacted=True, durable=False, start_message_id=message_id(EARLIEST), consumer_id=1
    )
    table.clear()
    await wire.flow(consumer_id=1)
    await take()
    assert table == truth
