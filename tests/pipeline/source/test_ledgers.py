"""Ledgers of a topic, and the entries, sizes and losses of a range."""

from __future__ import annotations

import pytest

from pulsarium.pipeline.source.ledgers import Ledger, Ledgers, Run, count, entry_at, runs_within, size, within_bytes
from pulsarium.pipeline.source.places import FIRST, Position

THREE = Ledgers([Ledger(3, 10, 1000), Ledger(5, 4, 800), Ledger(9, 6, 60)], {"s": Position(5, 0)})


def test_ledgers_are_made_from_internal_stats() -> None:
    found = Ledgers.of(
        {
            "currentLedgerEntries": 7,
            "currentLedgerSize": 70,
            "ledgers": [{"ledgerId": 5, "entries": 0, "size": 0}, {"ledgerId": 3, "entries": 10, "size": 1000}],
            "cursors": {"s": {"markDeletePosition": "3:4"}, "t": {"markDeletePosition": "5:-1"}, "odd": {}},
        }
    )
    assert found == Ledgers([Ledger(3, 10, 1000), Ledger(5, 7, 70)], {"s": Position(3, 5), "t": Position(5, 0)})


@pytest.mark.parametrize(
    ("start", "end", "runs"),
    [
        (FIRST, Position(9, 6), [(3, 0, 10), (5, 0, 4), (9, 0, 6)]),
        (Position(3, 4), Position(3, 6), [(3, 4, 6)]),
        (Position(3, 4), Position(3, 6, 2), [(3, 4, 7)]),
        (Position(3, 10), Position(9, 2), [(5, 0, 4), (9, 0, 2)]),
        (Position(5, 4), Position(9, 8), [(9, 0, 8)]),  # entries came after the stats
        (Position(9, 6), Position(9, 6), []),
    ],
)
def test_a_read_is_cut_into_runs_of_ledgers(start: Position, end: Position, runs: list[tuple[int, int, int]]) -> None:
    found = THREE.runs(start, end)
    assert [(run.ledger, run.start, run.end) for run in found] == runs


def test_sizes_and_counts() -> None:
    runs = THREE.runs(Position(3, 8), Position(9, 6))
    assert count(runs) == 2 + 4 + 6
    assert size(runs) == pytest.approx(200 + 800 + 60)


def test_entries_by_number() -> None:
    runs = THREE.runs(Position(3, 8), Position(9, 6))
    found = [entry_at(runs, number) for number in range(14)]
    assert found[:3] == [Position(3, 8), Position(3, 9), Position(5, 0)]
    assert found[6] == Position(9, 0)
    assert found[12:] == [Position(9, 6), Position(9, 6)]


@pytest.mark.parametrize(
    ("most", "end"), [(1, (3, 1)), (250, (3, 2)), (1000, (5, 0)), (1500, (5, 2)), (1800, (9, 0)), (9999, (9, 6))]
)
def test_runs_end_within_as_many_bytes(most: int, end: tuple[int, int]) -> None:
    assert within_bytes(THREE.runs(FIRST, Position(9, 6)), most) == Position(*end)


def test_without_asking_the_entries_of_one_ledger_are_known() -> None:
    assert runs_within(Position(3, 2), Position(3, 9)) == [Run(3, 2, 9, 0.0)]
    assert runs_within(Position(3, 2), Position(4, 9)) == []
    assert runs_within(FIRST, Position(0, 9)) == []


def test_the_entry_before() -> None:
    assert THREE.before(Position(5, 2)) == Position(5, 1)
    assert THREE.before(Position(5, 2), held=1) == Position(5, 0)
    # 5:0 is held back, and all of ledger 3 is acknowledged
    assert THREE.before(Position(5, 1), held=1) == Position(3, 9)
    assert THREE.before(Position(5, 0)) == Position(3, 9)
    assert THREE.before(Position(3, 0)) is None
    assert THREE.before(FIRST) is None


@pytest.mark.parametrize(
    ("start", "lost"), [(FIRST, False), (Position(3, 0), False), (Position(9, 6), False), (Position(2, 5), True)]
)
def test_the_first_lost_position_is_found(start: Position, lost: bool) -> None:
    assert THREE.lost_from(start) == (Position(3, 0) if lost else None)


def test_a_ledger_that_nothing_was_read_of() -> None:
    """A deleted ledger is no loss for a subscription that stands at its first entry, because it may have been empty."""
    assert THREE.lost_from(Position(2, 0)) == Position(3, 0)
    for mark, lost in (
        (Position(2, 0), False),
        (Position(3, 0), False),
        (Position(2, 4), True),
        (Position(5, 1), True),
    ):
        marked = Ledgers(THREE.all, {"s": mark})
        assert (marked.lost_from(Position(2, 0), "s") is not None) is lost
        assert marked.lost_from(Position(2, 1), "s") == Position(3, 0)
