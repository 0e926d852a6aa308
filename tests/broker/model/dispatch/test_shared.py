"""Shared: the choice of the consumer of each entry."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.subscription.reasons import Reason
from tests.broker.model.dispatch.sharing import reason
from tests.broker.wire import Bed, Earliest, Shared, Type, Wire, batch_of, plain


async def consumers(bed: Bed, *levels: int, permits: int = 1000) -> list[Wire]:
    """Connect a consumer for each of these priority levels, each on a connection of its own."""
    made = []
    for level in levels:
        wire = await bed.connect()
        await wire.subscribe(type=Shared, priority_level=level, initialPosition=Earliest)
        if permits:
            await wire.flow(permits)
        made.append(wire)
    return made


async def got(*wires: Wire) -> list[list[int]]:
    """Return the entry ids that each consumer has received by now."""
    return [[r.command.message.message_id.entryId for r in await wire.rest(0.01)] for wire in wires]


@pytest.mark.req("B-04")
async def test_twenty_in_a_row_and_then_the_next(bed: Bed, sender: Wire) -> None:
    wires = await consumers(bed, 0, 0, 0)
    await sender.publish(*[plain(b"x")] * 130)
    received = await got(*wires)
    runs = [range(start, min(start + 20, 130)) for start in range(0, 130, 20)]
    for wire, entries in enumerate(received):
        assert entries == [entry for run in runs[wire::3] for entry in run]


@pytest.mark.req("B-04")
async def test_consumers_take_turns_with_single_messages(bed: Bed, sender: Wire) -> None:
    wires = await consumers(bed, 0, 0, 0)
    for _ in range(9):
        await sender.publish(plain(b"x"))
    received = await got(*wires)
    assert received == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


@pytest.mark.req("B-04")
@pytest.mark.serving(Config(dispatcherMaxRoundRobinBatchSize=3))
async def test_the_length_of_a_round_robin_run_is_configured(bed: Bed) -> None:
    wires = await consumers(bed, 0, 0)
    sender = await bed.connect()
    await sender.producer()
    await sender.publish(*[plain(b"x")] * 8)
    assert await got(*wires) == [[0, 1, 2, 6, 7], [3, 4, 5]]


@pytest.mark.req("B-04")
async def test_a_consumer_without_permits_is_passed_over(bed: Bed, sender: Wire) -> None:
    idle, few, many = await consumers(bed, 0, 0, 0, permits=0)
    await few.flow(5)
    await many.flow(100)
    await sender.publish(*[plain(b"x")] * 40)
    nothing, five, rest = await got(idle, few, many)
    assert (nothing, len(five), len(rest)) == ([], 5, 35)
    assert sorted(five + rest) == list(range(40))


@pytest.mark.req("B-04", "B-05")
async def test_a_batch_is_never_split(bed: Bed, sender: Wire) -> None:
    wires = await consumers(bed, 0, 0, permits=4)
    await sender.publish(*[batch_of(b"a", b"b", b"c")] * 6)
    received = await got(*wires)
    assert [len(entries) for entries in received] == [2, 2]  # of 4 permits, 1 is left after one batch, and -2 after two
    assert sorted(received[0] + received[1]) == [0, 1, 2, 3]


@pytest.mark.req("B-04")
async def test_a_higher_level_is_served_first(bed: Bed, sender: Wire) -> None:
    low, first, second = await consumers(bed, 1, 0, 0, permits=0)
    await low.flow(1000)
    await first.flow(30)
    await second.flow(30)
    await sender.publish(*[plain(b"x")] * 100)
    received = await got(low, first, second)
    assert received[0] == list(range(60, 100))
    assert [len(entries) for entries in received] == [40, 30, 30]
    await second.flow(10)
    await sender.publish(*[plain(b"x")] * 20)
    assert [len(entries) for entries in await got(low, first, second)] == [10, 0, 10]


@pytest.mark.req("B-18")
async def test_messages_of_a_closed_consumer_go_to_the_others_in_order(bed: Bed, sender: Wire) -> None:
    leaving, staying = await consumers(bed, 0, 0, permits=0)
    await leaving.flow(20)
    await sender.publish(*[plain(b"x")] * 10)
    await leaving.messages(10)
    await staying.flow(1000)
    await leaving.aclose()
    await sender.publish(plain(b"new"))
    assert await got(staying) == [list(range(11))]


@pytest.mark.req("B-18", "B-19")
async def test_redeliveries_are_given_to_whoever_has_permits(bed: Bed, sender: Wire) -> None:
    first, second = await consumers(bed, 0, 0, permits=0)
    await first.flow(4)
    await sender.publish(*[plain(b"x")] * 4)
    positions = [message.position for message in await first.messages(4)]
    await second.flow(2)
    await first.redeliver([positions[3], positions[1], positions[2]])
    counted = [(m.position.entry_id, m.redelivery_count) for m in await second.messages(2)]
    assert counted == [(1, 1), (2, 1)]
    await second.quiet()
    await first.flow(1)
    assert (await first.message()).position == positions[3]


@pytest.mark.req("B-18")
async def test_an_ack_takes_back_a_redelivery(bed: Bed, sender: Wire) -> None:
    first, second = await consumers(bed, 0, 0, permits=0)
    await first.flow(2)
    await sender.publish(*[plain(b"x")] * 2)
    positions = [message.position for message in await first.messages(2)]
    await first.redeliver()
    await second.ack(positions[0])  # any consumer may acknowledge
    await second.flow(10)
    assert [m.position for m in await second.messages(1)] == [positions[1]]
    await second.quiet()


async def test_unacked_messages_are_the_owners(bed: Bed, sender: Wire) -> None:
    first, second = await consumers(bed, 0, 0, permits=0)
    await first.flow(10)
    await sender.publish(plain(b"x"), batch_of(b"a", b"b", b"c"), plain(b"y"))
    positions = [message.position for message in await first.messages(3)]

    async def unacked() -> tuple[int, int]:
        stats = [await wire.ask(Type.CONSUMER_STATS, consumer_id=0) for wire in (first, second)]
        return stats[0].unackedMessages, stats[1].unackedMessages

    assert await unacked() == (5, 0)
    await second.ack(positions[0])
    assert await unacked() == (4, 0)
    fields = {"ledgerId": positions[1].ledger_id, "entryId": positions[1].entry_id, "ack_set": [0b101]}
    await second.ack(message_id=[fields])
    assert await unacked() == (3, 0)
    await first.redeliver([positions[1]])
    assert await unacked() == (3, 0)  # the first consumer has permits, and receives two messages of the batch again
    await first.ack(positions[1])
    assert await unacked() == (1, 0)
    await first.aclose()
    await second.flow(1)
    await second.messages(1)
    stats = await second.ask(Type.CONSUMER_STATS, consumer_id=0)
    assert (stats.unackedMessages, stats.msgBacklog) == (1, 1)


async def test_shared_says_why_nothing_more_is_delivered(bed: Bed, sender: Wire) -> None:
    (wire,) = await consumers(bed, 0, permits=0)
    await sender.publish(plain(b"x"))
    assert reason(bed) is Reason.NO_PERMITS
    await wire.flow(1)
    await wire.messages(1)
    assert reason(bed) is Reason.CAUGHT_UP
    await wire.aclose()
    other = await bed.connect()
    await other.alive()
    assert reason(bed) is Reason.NO_CONSUMER
