"""Skipping of entries by operators, and the remembered moves of the mark-delete position past entries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import NoSuchMessageError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.mark_moves import KEPT_MOVES, MarkMove, MarkMoves, MovedBy
from pulsarium.broker.model.subscription.skip import (
    LARGEST_BATCH,
    Skip,
    SkipEntry,
    ack_set_without,
    batch_size,
    nth_position,
)
from pulsarium.proto.message_id import bits_of
from tests.broker.conftest import run_without_waiting
from tests.broker.model.dispatch.clients import FakeClient, Stand
from tests.broker.model.stores import NAME, append, cluster_of, read_all
from tests.broker.wire import KeyShared, Shared, batch_of, plain

AT = Position(7, 3)


@pytest.mark.req("S423-84")
def test_an_entry_without_indexes_is_whole() -> None:
    for entry in (SkipEntry(7, 3), SkipEntry(7, 3, None), SkipEntry(7, 3, [])):
        assert (entry.position, entry.batch_indexes) == (AT, None)


@pytest.mark.req("S423-84")
def test_an_entry_keeps_a_copy_of_its_indexes() -> None:
    indexes = [2]
    entry = SkipEntry(7, 3, indexes)
    indexes.append(4)
    assert entry.batch_indexes == (2,)


@given(st.integers(1, 200), st.data())
def test_an_ack_set_has_a_bit_for_each_that_remains(size: int, data: st.DataObject) -> None:
    indexes = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size))
    bits = bits_of(ack_set_without(AT, indexes, size))
    assert {index for index in range(size) if bits >> index & 1} == set(range(size)) - set(indexes)
    assert bits >> size == 0


@pytest.mark.req("S423-15", "S423-17")
@pytest.mark.parametrize("size", [0, -1, 5, LARGEST_BATCH + 1])
def test_an_index_that_is_not_there(size: int) -> None:
    with pytest.raises(NoSuchMessageError):
        ack_set_without(AT, (5,), size)


@pytest.mark.req("S423-17")
@pytest.mark.parametrize(
    ("entry", "size"), [(plain(b"x"), 0), (batch_of(b"x"), 1), (batch_of(b"x", b"y"), 2), (b"", 0), (b"no metadata", 0)]
)
def test_the_size_of_a_batch(entry: bytes, size: int) -> None:
    assert batch_size(entry) == size


@pytest.mark.parametrize("type", [Shared, KeyShared])
async def test_consumers_do_not_owe_skipped_messages(type: int) -> None:
    stand, clients = Stand(), [FakeClient(), FakeClient()]
    consumers = [stand.join(client, type, permits=100) for client in clients]
    sent = stand.publish(*[plain(b"%d" % number, partition_key=str(number)) for number in range(9)])
    sent += stand.publish(*[batch_of(*[b"x"] * 3, partition_key=str(number)) for number in range(9)])
    stand.end_turn()
    assert all(consumer.pending for consumer in consumers)
    entries = [SkipEntry(*position) for position in sent[1:9]] + [SkipEntry(*position, [1]) for position in sent[10:]]
    skip = Skip(stand.subscription, entries)
    skip.check(dict.fromkeys(skip.partial, 3))
    assert stand.subscription.cursor.backlog() == 18
    skip.apply()
    stand.end_turn()
    owed = {position: messages for consumer in consumers for position, messages in consumer.pending.items()}
    assert owed == {sent[0]: 1, sent[9]: 3, **dict.fromkeys(sent[10:], 2)}
    assert [consumer.unacked for consumer in consumers] == [sum(consumer.pending.values()) for consumer in consumers]
    assert stand.subscription.cursor.backlog() == 10


@given(st.integers(0, 12), st.sets(st.integers(0, 11)), st.integers(-2, 14), st.booleans())
def test_the_nth_position_is_that_of_a_list(entries: int, acked: set[int], count: int, with_acked: bool) -> None:
    async def check() -> None:
        cursor, all_of_them = over_three_ledgers(entries)
        for number in acked:
            if number < entries:
                cursor.ack(all_of_them[number])
        behind = [each for each in all_of_them if each > cursor.mark_delete]
        left = behind if with_acked else [each for each in behind if not cursor.is_acked(each)]
        expected = left[min(count, len(left)) - 1] if left and count > 0 else None
        assert nth_position(cursor, count, with_acked=with_acked) == expected

    run: Any = run_without_waiting
    run(check)


def over_three_ledgers(entries: int) -> tuple[ManagedCursor, list[Position]]:
    cluster = cluster_of(managedLedgerMaxEntriesPerLedger=4, managedLedgerMinLedgerRolloverTimeMinutes=0)
    ledger = ManagedLedger(NAME, cluster)
    cursor = ManagedCursor(ledger, "c", cluster, durable=True, start=ledger.first_position())
    for number in range(entries):
        append(ledger, cluster, b"%d" % number)
    return cursor, [position for position, _ in read_all(ledger)]


async def test_an_empty_backlog_has_no_nth_position() -> None:
    cursor, _ = over_three_ledgers(0)
    assert nth_position(cursor, 1) is None


def at(entry: int) -> Position:
    return Position(7, entry)


def test_the_last_move_past_an_entry_is_known() -> None:
    moves = MarkMoves(at(-1))
    moves.note(MovedBy.CUMULATIVE, at(-1), at(3))
    moves.note(MovedBy.CUMULATIVE, at(4), at(5))
    moves.note(MovedBy.EXPIRED, at(5), at(5), 1)
    moves.note(MovedBy.SKIPPED, at(6), at(8), 2)
    cumulative, skipped = MarkMove(MovedBy.CUMULATIVE, at(-1), at(5), 0), MarkMove(MovedBy.SKIPPED, at(6), at(8), 2)
    assert [moves.of(at(entry)) for entry in (0, 5, 6, 7, 8, 9)] == [
        cumulative,
        cumulative,
        None,
        skipped,
        skipped,
        None,
    ]


def test_a_seek_to_the_past_forgets_the_moves_behind_its_target() -> None:
    moves = MarkMoves(at(3))
    moves.note(MovedBy.EXPIRED, at(3), at(5), 1)
    moves.note(MovedBy.SKIPPED, at(5), at(9), 2)
    moves.sought(at(9), at(4), 3)
    assert list(moves.known) == [MarkMove(MovedBy.EXPIRED, at(3), at(4), 1)]
    assert moves.start == at(3)
    moves.sought(at(4), at(2), 4)
    assert (list(moves.known), moves.start, moves.forgotten) == ([], at(2), at(2))


def test_a_seek_to_the_future_keeps_the_moves_before() -> None:
    moves = MarkMoves(at(-1))
    moves.note(MovedBy.EXPIRED, at(-1), at(3), 1)
    moves.sought(at(3), at(8), 2, some_acked=True)
    expired, sought = moves.of(at(3)), moves.of(at(4))
    assert (expired, sought) == (
        MarkMove(MovedBy.EXPIRED, at(-1), at(3), 1),
        MarkMove(MovedBy.SEEK, at(3), at(8), 2, some_acked=True),
    )


def test_only_so_many_moves_are_remembered() -> None:
    moves = MarkMoves(at(-1))
    for entry in range(KEPT_MOVES + 5):
        moves.note(MovedBy.EXPIRED, at(entry - 1), at(entry), 1)
    assert moves.forgotten == at(4)
    assert moves.of(at(4)) is None
    assert moves.of(at(5)) is not None
