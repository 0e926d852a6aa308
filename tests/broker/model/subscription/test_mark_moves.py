"""What is remembered of how a subscription went past entries."""

from __future__ import annotations

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.skip import KEPT_MOVES, MarkMove, MarkMoves, MovedBy


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


def test_a_seek_forgets_the_moves_before() -> None:
    moves = MarkMoves(at(3))
    moves.note(MovedBy.SKIPPED, at(3), at(9), 1)
    moves.sought(at(4), 2)
    assert moves.of(at(9)) is None
    found = moves.of(at(2))
    assert found is not None
    assert (found.by, found.through, found.ms) == (MovedBy.SEEK, at(4), 2)
    assert moves.start < at(0)


def test_only_so_many_moves_are_remembered() -> None:
    moves = MarkMoves(at(-1))
    for entry in range(KEPT_MOVES + 5):
        moves.note(MovedBy.EXPIRED, at(entry - 1), at(entry), 1)
    assert moves.forgotten == at(4)
    assert moves.of(at(4)) is None
    assert moves.of(at(5)) is not None
