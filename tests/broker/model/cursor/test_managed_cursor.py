"""A cursor over several ledgers, compared with a list of entries that are acknowledged or not."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.records import CursorProperties, SubscriptionProperties
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.proto.message_id import words_of
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, Publisher, append, cluster_of


def not_ready() -> None:
    raise AssertionError("everything is in memory")


class Naive:
    """A naive model of a cursor: all entries, and the set of those that are acknowledged."""

    def __init__(self) -> None:
        self.positions: list[Position] = []
        self.acked: set[Position] = set()
        self.remaining: dict[Position, int] = {}  # for each batch, its unacknowledged messages as bits
        self.read = 0  # the index of the next entry to read

    @property
    def mark(self) -> int:
        """Return how many entries before the first unacknowledged one are acknowledged."""
        for index, position in enumerate(self.positions):
            if position not in self.acked:
                return index
        return len(self.positions)

    @property
    def backlog(self) -> list[Position]:
        return [position for position in self.positions if position not in self.acked]

    def ack(self, *positions: Position) -> None:
        for position in positions:
            self.acked.add(position)
            self.remaining.pop(position, None)
        self.read = max(self.read, self.mark)

    def unread(self) -> list[Position]:
        return [position for position in self.positions[self.read :] if position not in self.acked]


class Both:
    """A cursor and its model, which take the same steps."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.store = HeldStorage()
        self.naive = Naive()
        self.config = config
        self.log: TopicLog
        self.cluster: Cluster
        self.start(first=True)

    def start(self, *, first: bool = False) -> None:
        self.cluster = cluster_of(self.store, **self.config)
        self.log = TopicLog(NAME, self.cluster)
        if first:
            self.cursor = self.log.open_cursor("a/b %", self.log.ledger.first_position())
            self.cursor.save()
        else:
            self.cursor = self.log.cursors["a/b %"]
            self.naive.read = self.naive.mark

    def append(self, count: int) -> None:
        publisher = Publisher()
        append(self.log.ledger, self.cluster, *[b"x"] * count, publisher=publisher)
        self.naive.positions += publisher.kept

    def pick(self, index: int) -> Position | None:
        positions = self.naive.positions
        return positions[index % len(positions)] if positions else None

    def step(self, verb: str, index: int, number: int) -> None:
        naive, cursor, ledger = self.naive, self.cursor, self.log.ledger
        position = self.pick(index)
        if verb == "append":
            self.append(number % 4)
        elif verb == "new ledger":
            ledger.reopen()
        elif verb == "restart":
            cursor.save_soon()
            cursor.close()
            self.cluster.turn.finish()
            self.start()
        elif verb == "crash":
            cursor.save()
            self.cluster.turn.finish()
            self.start()
        elif verb == "unload":
            self.log.reopen()
            naive.read = naive.mark
        elif verb == "read":
            self.check_read(number % 5 + 1)
        elif verb == "rewind":
            cursor.rewind()
            naive.read = naive.mark
        elif verb == "ack of nothing":
            beyond = Position(position.ledger_id if position else 0, 1000 + number)
            assert not cursor.ack(beyond)
            assert not cursor.ack_batch(beyond, [1])
        elif position is None:
            return
        elif verb == "ack":
            assert cursor.ack(position) is (position not in naive.acked)
            naive.ack(position)
        elif verb == "ack many":
            self.check_ack_many(index, number)
        elif verb == "cumulative":
            before = naive.positions[: naive.positions.index(position) + 1]
            assert cursor.ack_cumulative(position) is not set(before).issubset(naive.positions[: naive.mark])
            naive.ack(*before)
        elif verb == "batch":
            self.check_batch(position, number)
        elif verb == "reset":
            cursor.reset(position)
            self.moved_to(naive.positions.index(position))
        elif verb == "reset to the end":
            cursor.reset(LATEST)
            self.moved_to(len(naive.positions))
        elif verb == "reset to the start":
            cursor.reset(EARLIEST)
            self.moved_to(0)

    def check_ack_many(self, index: int, number: int) -> None:
        """Acknowledge every n-th entry in any order, some again, and some that do not exist."""
        cursor, naive = self.cursor, self.naive
        positions = naive.positions[index % len(naive.positions) :: number % 3 + 1]
        absent = [Position(ledger_id, entry_id) for ledger_id in (-5, 0, 999) for entry_id in (-1, 1000, 2**64 - 1)]
        consumed = cursor.consumed + len({*positions} - naive.acked)
        cursor.ack_all([*positions[:: -1 if number % 2 else 1], *absent, *positions])
        naive.ack(*positions)
        assert cursor.consumed == consumed

    def check_batch(self, position: Position, bits: int) -> None:
        naive = self.naive
        if position in naive.acked:
            assert not self.cursor.ack_batch(position, words_of(bits))
            return
        left = naive.remaining.get(position, bits) & bits
        assert self.cursor.ack_batch(position, words_of(bits)) is (left == 0)
        if left:
            naive.remaining[position] = left
        else:
            naive.ack(position)

    def check_read(self, limit: int) -> None:
        naive, expected = self.naive, self.naive.unread()
        found = self.cursor.read(limit, lambda: None)
        for _ in naive.positions:  # after a restart, the store loads one block for each read, at once
            if found is None:
                found = self.cursor.read(limit, lambda: None)
        assert found is not None
        got = [position for position, _ in found]
        assert got == expected[: len(got)]
        assert len(got) <= limit
        assert got or not expected
        if got:
            naive.read = naive.positions.index(got[-1]) + 1
        else:
            naive.read = len(naive.positions)

    def moved_to(self, index: int) -> None:
        naive = self.naive
        naive.acked = set(naive.positions[:index])
        naive.remaining.clear()
        naive.read = index

    def check(self) -> None:
        naive, cursor, ledger = self.naive, self.cursor, self.log.ledger
        assert cursor.backlog() == len(naive.backlog)
        assert [p for p in naive.positions if cursor.is_acked(p)] == [p for p in naive.positions if p in naive.acked]
        if naive.mark:
            assert cursor.mark_delete == naive.positions[naive.mark - 1]
        else:
            assert ledger.count_after(cursor.mark_delete) == len(naive.positions)
        assert {p: cursor.batch_acks.remaining(p) for p in naive.remaining} == {
            p: bits.bit_count() for p, bits in naive.remaining.items()
        }
        assert len(cursor.batch_acks) == len(naive.remaining)
        assert len(cursor.individual_acks) == len(naive.acked) - naive.mark  # none before the mark-delete position
        if naive.unread():
            assert cursor.has_more()


VERBS = [
    *["append"] * 2,
    "new ledger",
    "restart",
    "crash",
    "unload",
    *["read"] * 2,
    "rewind",
    *["ack"] * 4,
    *["ack many"] * 3,
    "ack of nothing",
    *["cumulative"] * 2,
    *["batch"] * 3,
    "reset",
    "reset to the end",
    "reset to the start",
]


@given(
    st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 30), st.integers(0, 15)), min_size=5, max_size=40),
    st.fixed_dictionaries(
        {
            "managedLedgerPersistIndividualAckAsLongArray": st.booleans(),
            "managedLedgerMaxUnackedRangesToPersistInMetadataStore": st.sampled_from([0, 2, 1000]),
            "managedCursorInfoCompressionType": st.sampled_from(["NONE", "LZ4"]),
            "managedCursorInfoCompressionThresholdInBytes": st.just(0),
        }
    ),
)
def test_a_cursor_behaves_as_a_plain_list(program: list[tuple[str, int, int]], config: dict[str, Any]) -> None:
    async def check() -> None:
        both = Both(config)
        both.append(4)
        for verb, index, number in program:
            both.step(verb, index, number)
            both.check()
        while both.naive.unread():  # all remaining entries can be read
            both.check_read(3)

    trio.run(check)


def ledger_of(cluster: Cluster, count: int) -> tuple[ManagedLedger, list[Position]]:
    ledger, publisher = ManagedLedger(NAME, cluster), Publisher()
    append(ledger, cluster, *[b"x"] * count, publisher=publisher)
    return ledger, publisher.kept


def cursor_on(ledger: ManagedLedger, cluster: Cluster, **options: Any) -> ManagedCursor:
    fields = {"durable": True, "start": ledger.first_position(), **options}
    return ManagedCursor(ledger, "sub", cluster, **fields)


async def test_a_cursor_begins_in_the_middle() -> None:
    cluster = cluster_of()
    ledger, positions = ledger_of(cluster, 5)
    cursor = cursor_on(ledger, cluster, start=positions[1])
    assert cursor.backlog() == 3
    assert [position for position, _ in cursor.read(10, not_ready) or ()] == positions[2:]


async def test_a_reset_into_a_batch_keeps_what_remains_of_it() -> None:
    cluster = cluster_of()
    ledger, positions = ledger_of(cluster, 3)
    cursor = cursor_on(ledger, cluster)
    cursor.reset(positions[1], [0b110])
    assert cursor.batch_acks.words(positions[1]) == [0b110]
    cursor.reset(Position(positions[0].ledger_id, 99), [0b110])  # that entry does not exist, so no batch remains
    assert len(cursor.batch_acks) == 0


@pytest.mark.req("B-14")
async def test_the_cursor_of_a_reader_is_not_stored(mock_clock: MockClock) -> None:
    store = HeldStorage()
    cluster = cluster_of(store)
    ledger, positions = ledger_of(cluster, 3)
    cursor = cursor_on(ledger, cluster, durable=False)
    paths = set(store.metadata)
    cursor.ack(positions[0])
    cursor.save()
    cursor.save_soon()
    cursor.delete()
    cluster.turn.finish()
    assert set(store.metadata) == paths


@pytest.mark.req("B-13")
async def test_a_cursor_is_saved_soon_and_once(mock_clock: MockClock) -> None:
    store = HeldStorage()
    cluster = cluster_of(store)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.clock.run)
        ledger, positions = ledger_of(cluster, 3)
        cursor = cursor_on(ledger, cluster)
        for position in positions:
            cursor.ack(position)
            cursor.save_soon()
        await wait_all_tasks_blocked()
        assert cursor.path not in store.metadata
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        assert cursor.path in store.metadata
        assert cursor.saves == 1
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        assert cursor.saves == 1
        cursor.save_soon()
        cursor.close()  # saves at once, without the timer
        assert cursor.saves == 2
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        assert cursor.saves == 2
        cursor.save_soon()
        cursor.delete()
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        assert cursor.path not in store.metadata
        nursery.cancel_scope.cancel()


async def test_names_and_properties_of_cursors_are_recovered() -> None:
    store = HeldStorage()
    names = ["plain", "with/slash", "with %", "ü", "a" * 300, ".", ""]
    cluster = cluster_of(store)
    log = TopicLog(NAME, cluster)
    for name in names:
        cursor = log.open_cursor(name, log.ledger.first_position())
        cursor.properties = CursorProperties({"n": len(name)})
        cursor.cursor_properties = SubscriptionProperties({"name": name})
        cursor.save()
    cluster.turn.finish()
    again = cluster_of(store)
    recovered = TopicLog(NAME, again).cursors
    assert {name: (c.properties, c.cursor_properties) for name, c in recovered.items()} == {
        name: ({"n": len(name)}, {"name": name}) for name in names
    }


async def test_a_cursor_goes_on_behind_trimmed_ledgers() -> None:
    store = HeldStorage()
    cluster = cluster_of(store)
    ledger, positions = ledger_of(cluster, 3)
    cursor = cursor_on(ledger, cluster)
    ledger.reopen()
    append(ledger, cluster, b"y")
    ledger.trim(ledger.last_confirmed)
    assert cursor.backlog() == 1
    assert [entry for _, entry in cursor.read(10, not_ready) or ()] == [b"y"]
    assert not cursor.ack(positions[0])
    cursor.reset(positions[1])
    assert [entry for _, entry in cursor.read(10, not_ready) or ()] == [b"y"]
    cursor.ack(ledger.last_confirmed)
    assert cursor.backlog() == 0
    assert not cursor.has_more()


@pytest.mark.parametrize(("order", "marks"), [([2, 3, 4], [2, 3, 4]), ([4, 3, 2], [1, 1, 4]), ([3, 2, 4], [1, 3, 4])])
async def test_the_mark_moves_on_into_a_later_ledger(order: list[int], marks: list[int]) -> None:
    cluster = cluster_of()
    ledger, positions = ledger_of(cluster, 2)
    cursor, publisher = cursor_on(ledger, cluster), Publisher()
    cursor.ack_cumulative(positions[-1])
    ledger.reopen()
    append(ledger, cluster, b"x", b"y", b"z", publisher=publisher)
    positions += publisher.kept
    for acknowledged, mark in zip(order, marks, strict=True):
        cursor.ack(positions[acknowledged])
        assert cursor.mark_delete == positions[mark]
    assert len(cursor.individual_acks) == 0


async def test_a_cumulative_ack_may_name_what_is_before_the_first_entry_of_a_ledger() -> None:
    cluster = cluster_of()
    ledger, _ = ledger_of(cluster, 2)
    cursor, publisher = cursor_on(ledger, cluster), Publisher()
    ledger.reopen()
    append(ledger, cluster, b"x", b"y", publisher=publisher)
    later = ledger.last_confirmed.ledger_id
    assert cursor.ack_cumulative(Position(later, -1000))
    assert (cursor.mark_delete, cursor.backlog(), cursor.consumed) == (Position(later, -1), 2, 2)
    assert not cursor.ack_cumulative(Position(later, -1))
    for position in publisher.kept:
        cursor.ack(position)
    assert (cursor.mark_delete, cursor.backlog(), cursor.consumed) == (ledger.last_confirmed, 0, 4)


async def test_the_count_of_what_was_consumed_follows_a_reset() -> None:
    both = Both({})
    both.append(4)
    first, *_, last = both.naive.positions
    both.cursor.reset(LATEST)
    assert both.cursor.consumed == 4
    both.cursor.reset(last)
    assert both.cursor.consumed == 3
    both.cursor.reset(first)
    assert both.cursor.consumed == 0
    both.cursor.ack(last)
    assert both.cursor.consumed == 1
    both.cursor.reset(last)
    assert both.cursor.consumed == 3  # the individually acknowledged entries are forgotten
