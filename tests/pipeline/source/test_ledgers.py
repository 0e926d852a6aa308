"""Ledgers of a topic, and the entries, sizes and losses of a range."""

from __future__ import annotations

import pytest

from pulsarium.pipeline.source.ledgers import (
    LedgerRange,
    Ledgers,
    SourceLedger,
    count,
    entry_at,
    runs_within,
    size,
    within_bytes,
)
from pulsarium.pipeline.source.places import FIRST, ReadPosition
from pulsarium.rest.stats import TopicInternalStats

THREE = Ledgers([SourceLedger(3, 10, 1000), SourceLedger(5, 4, 800), SourceLedger(9, 6, 60)])


def test_ledgers_are_made_from_internal_stats() -> None:
    found = Ledgers.of(
        {
            "currentLedgerEntries": 7,
            "currentLedgerSize": 70,
            "ledgers": [{"ledgerId": 5, "entries": 0, "size": 0}, {"ledgerId": 3, "entries": 10, "size": 1000}],
        }
    )
    assert found == Ledgers([SourceLedger(3, 10, 1000), SourceLedger(5, 7, 70)])


@pytest.mark.parametrize(
    ("more", "opened"),
    [
        ({"state": "LedgerOpened", "properties": {}}, "2026-11-30T12:00:00.123Z"),
        ({"state": "Terminated"}, ""),
        ({"state": "LedgerOpened", "properties": {"PULSAR.SHADOW_SOURCE": "persistent://public/default/t"}}, ""),
    ],
    ids=["a topic", "a terminated topic", "a shadow topic"],
)
def test_a_topic_that_opens_its_ledgers_tells_when(more: TopicInternalStats, opened: str) -> None:
    """A real broker tells the beginning of 1970 of a shadow topic that it has loaded again."""
    told: TopicInternalStats = {
        "lastLedgerCreatedTimestamp": "2026-11-30T12:00:00.123Z",
        "ledgers": [{"ledgerId": 5, "entries": 0, "size": 0}],
        **more,
    }
    assert Ledgers.of(told).opening_of(5) == opened


@pytest.mark.parametrize(
    ("start", "end", "runs"),
    [
        (FIRST, ReadPosition(9, 6), [(3, 0, 10), (5, 0, 4), (9, 0, 6)]),
        (ReadPosition(3, 4), ReadPosition(3, 6), [(3, 4, 6)]),
        (ReadPosition(3, 4), ReadPosition(3, 6, 2), [(3, 4, 7)]),
        (ReadPosition(3, 10), ReadPosition(9, 2), [(5, 0, 4), (9, 0, 2)]),
        (ReadPosition(5, 4), ReadPosition(9, 8), [(9, 0, 8)]),  # entries came after the stats
        (ReadPosition(9, 6), ReadPosition(9, 6), []),
    ],
)
def test_a_read_is_cut_into_runs_of_ledgers(
    start: ReadPosition, end: ReadPosition, runs: list[tuple[int, int, int]]
) -> None:
    found = THREE.runs(start, end)
    assert [(run.ledger, run.start, run.end) for run in found] == runs


def test_sizes_and_counts() -> None:
    runs = THREE.runs(ReadPosition(3, 8), ReadPosition(9, 6))
    assert count(runs) == 2 + 4 + 6
    assert size(runs) == pytest.approx(200 + 800 + 60)


def test_entries_by_number() -> None:
    runs = THREE.runs(ReadPosition(3, 8), ReadPosition(9, 6))
    found = [entry_at(runs, number) for number in range(14)]
    assert found[:3] == [ReadPosition(3, 8), ReadPosition(3, 9), ReadPosition(5, 0)]
    assert found[6] == ReadPosition(9, 0)
    assert found[12:] == [ReadPosition(9, 6), ReadPosition(9, 6)]


@pytest.mark.parametrize(
    ("most", "end"), [(1, (3, 1)), (250, (3, 2)), (1000, (5, 0)), (1500, (5, 2)), (1800, (9, 0)), (9999, (9, 6))]
)
def test_runs_end_within_as_many_bytes(most: int, end: tuple[int, int]) -> None:
    assert within_bytes(THREE.runs(FIRST, ReadPosition(9, 6)), most) == ReadPosition(*end)


def test_without_asking_the_entries_of_one_ledger_are_known() -> None:
    assert runs_within(ReadPosition(3, 2), ReadPosition(3, 9)) == [LedgerRange(3, 2, 9, 0.0)]
    assert runs_within(ReadPosition(3, 2), ReadPosition(4, 9)) == []
    assert runs_within(FIRST, ReadPosition(0, 9)) == []


def test_the_entry_before() -> None:
    assert THREE.before(ReadPosition(5, 2)) == ReadPosition(5, 1)
    assert THREE.before(ReadPosition(5, 2), held=1) == ReadPosition(5, 0)
    # 5:0 is held back, and all of ledger 3 is acknowledged
    assert THREE.before(ReadPosition(5, 1), held=1) == ReadPosition(3, 9)
    assert THREE.before(ReadPosition(5, 0)) == ReadPosition(3, 9)
    assert THREE.before(ReadPosition(3, 0)) is None
    assert THREE.before(FIRST) is None


@pytest.mark.parametrize(
    ("start", "lost"),
    [(FIRST, False), (ReadPosition(3, 0), False), (ReadPosition(9, 6), False), (ReadPosition(2, 5), True)],
)
def test_the_first_lost_position_is_found(start: ReadPosition, lost: bool) -> None:
    assert THREE.lost_from(start) == (ReadPosition(3, 0) if lost else None)
