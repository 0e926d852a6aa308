"""Deletion of ledgers by retention, compared with the rule for one ledger at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.ledger import (
    MEGABYTE,
    MINUTE_MS,
    EntryCache,
    Ledger,
    Retention,
    consumed,
    first_needed,
    not_retained,
)
from pulsarium.broker.model.ledger.position import Position
from tests.broker.held import HeldStorage

NOW = 100 * MINUTE_MS
CACHE = EntryCache(HeldStorage(), 1 << 20)


def ledger(ledger_id: int, megabytes: int = 1, closed_minutes_ago: int | None = 0, count: int = 3) -> Ledger:
    """Return a ledger without entries, which claims this size, age and count."""
    made = Ledger(ledger_id, CACHE, 0)
    made.size = megabytes * MEGABYTE
    made.count = made.confirmed = count
    made.closed = closed_minutes_ago is not None
    made.rolled_ms = NOW - (closed_minutes_ago or 0) * MINUTE_MS
    return made


def gone(ledgers: list[Ledger], minutes: int, megabytes: int, current: int = 0) -> list[int]:
    total = sum(each.size for each in ledgers) + current * MEGABYTE
    return [each.id for each in not_retained(ledgers, total, Retention(minutes, megabytes), NOW)]


ages = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=6).map(
    lambda found: sorted(found, key=lambda each: -each[1])
)


@pytest.mark.req("B-25")
@given(ages, st.integers(0, 5), st.sampled_from([-1, 0, 5, 30]), st.sampled_from([-1, 0, 3, 8]))
def test_retention_removes_exactly_the_ledgers_of_the_rule(
    found: list[tuple[int, int]], current: int, minutes: int, megabytes: int
) -> None:
    ledgers = [ledger(number, size, age) for number, (size, age) in enumerate(found)]
    expected = []
    for number, (_, age) in enumerate(found):
        behind = sum(size for size, _ in found[number + 1 :]) + current
        if not ((minutes >= 0 and age > minutes) or (megabytes >= 0 and behind >= megabytes)):
            break
        expected.append(number)
    assert gone(ledgers, minutes, megabytes, current) == expected


@pytest.mark.req("B-25")
def test_the_usual_settings_of_retention_keep_what_they_say() -> None:
    ledgers = [ledger(1, 4, 50), ledger(2, 4, 20), ledger(3, 4, 1)]
    assert gone(ledgers, 0, 0) == [1, 2, 3]  # no retention
    assert gone(ledgers, -1, -1) == []  # retention without limits
    assert gone(ledgers, 30, -1) == [1]
    assert gone(ledgers, -1, 8) == [1]  # 8 MB remain without ledger 1
    assert gone(ledgers, -1, 9) == []
    assert gone(ledgers, 10, 8) == [1, 2]  # the stricter limit counts


def test_a_cursor_at_the_end_of_a_closed_ledger_needs_the_next_one() -> None:
    ledgers = {each.id: each for each in (ledger(1), ledger(4), ledger(9, closed_minutes_ago=None))}
    assert first_needed(ledgers, Position(1, 1)) == 1
    assert first_needed(ledgers, Position(1, 2)) == 2
    assert first_needed(ledgers, Position(9, 2)) == 9
    assert first_needed(ledgers, Position(3, 7)) == 3  # ledger 3 does not exist
    assert [each.id for each in consumed(ledgers, Position(1, 2))] == [1]
    assert [each.id for each in consumed(ledgers, Position(4, -1))] == [1]


def test_without_a_durable_cursor_all_closed_ledgers_are_consumed_once_they_are_kept() -> None:
    ledgers = {each.id: each for each in (ledger(1), ledger(4), ledger(9, closed_minutes_ago=None))}
    assert [each.id for each in consumed(ledgers, None)] == [1, 4]
    ledgers[4].confirmed = 2  # the last entry waits for its commit
    assert [each.id for each in consumed(ledgers, None)] == [1]
