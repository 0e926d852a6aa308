"""Binary search for an entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.ledger import EntryCache, Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import Visible, newest_matching, newest_position, read_through
from pulsarium.broker.storage.interface import DamagedEntriesError
from tests.broker.held import HeldStorage


def ledgers_of(counts: list[int]) -> list[Ledger]:
    cache = EntryCache(HeldStorage(), 1 << 20)
    ledgers = [Ledger(3 * number, cache, 0) for number in range(len(counts))]
    for ledger, count in zip(ledgers, counts, strict=True):
        for _ in range(count):
            ledger.append(b"x")
        ledger.confirmed = count
    return ledgers


@given(st.lists(st.integers(0, 4), max_size=6))
def test_entries_are_numbered_over_all_ledgers(counts: list[int]) -> None:
    entries = Visible(ledgers_of(counts))
    expected = [Position(3 * ledger, entry) for ledger, count in enumerate(counts) for entry in range(count)]
    assert len(entries) == len(expected)
    assert [entries[number] for number in range(len(entries))] == expected


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(-1, 20), st.integers(-1, 6))
def test_a_position_has_the_number_of_its_entry_or_of_the_next_one(counts: list[int], ledger: int, entry: int) -> None:
    entries = Visible(ledgers_of(counts))
    before = [number for number in range(len(entries)) if entries[number] < Position(ledger, entry)]
    assert entries.number_of(Position(ledger, entry)) == len(before)


def test_entries_that_are_not_confirmed_are_not_visible() -> None:
    first, second = ledgers_of([3, 2])
    first.confirmed, second.confirmed = 1, 2
    assert [Visible([first, second])[number] for number in range(3)] == [(0, 0), (3, 0), (3, 1)]


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_newest_matching_entry_is_found_by_halving(count: int, matching: int) -> None:
    ledgers = ledgers_of([count])
    looked: list[int] = []

    def look(position: Position) -> bytes:
        looked.append(position.entry_id)
        return b"%d" % position.entry_id

    found = read_through(newest_matching(Visible(ledgers), lambda entry: int(entry) < matching), look)
    assert found == min(matching, count) - 1
    assert len(looked) <= 3 + count.bit_length()


def test_nothing_matches_once_the_first_does_not() -> None:
    ledgers = ledgers_of([3])
    values = {0: b"no", 1: b"yes", 2: b"yes"}
    reading = newest_position(ledgers, lambda entry: entry == b"yes")
    assert read_through(reading, lambda position: values[position.entry_id]) is None


def test_the_last_is_looked_at_before_what_is_between() -> None:
    """Pulsar looks in this order too, which matters when publish times are not in order."""
    ledgers = ledgers_of([3])
    values = {0: b"yes", 1: b"no", 2: b"yes"}
    reading = newest_position(ledgers, lambda entry: entry == b"yes")
    assert read_through(reading, lambda position: values[position.entry_id]) == Position(0, 2)


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 40))
def test_damaged_entries_are_skipped_by_a_search(damaged: list[bool], matching: int) -> None:
    ledgers = ledgers_of([len(damaged)])
    looked: list[int] = []

    def look(position: Position) -> bytes:
        number = position.entry_id
        if damaged[number]:
            assert number not in looked  # a damaged row is read only once
            looked.append(number)
            raise DamagedEntriesError("damaged", 0, number, number)
        return b"%d" % number

    reading = newest_matching(Visible(ledgers), lambda entry: int(entry) < matching, skips_damaged=True)
    readable = [number for number, each in enumerate(damaged) if not each]
    assert read_through(reading, look) == max((number for number in readable if number < matching), default=-1)


def test_damaged_entries_end_the_search_of_everybody_else() -> None:
    def look(position: Position) -> bytes:
        raise DamagedEntriesError("damaged", 0, 0, 0)

    with pytest.raises(DamagedEntriesError):
        read_through(newest_matching(Visible(ledgers_of([3])), lambda entry: True), look)
