"""Looking for an entry by halving. How entries are read is the caller's: at once, or awaited."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable
from itertools import accumulate, chain
from typing import Any, TypeVar

from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import DamagedEntriesError

T = TypeVar("T")
Reading = Generator[Position, bytes, T]
"""Yields where it wants an entry; is sent that, or thrown a DamagedEntriesError. Returns what it found."""


class Visible:
    """The visible entries of some ledgers as they are now, numbered from 0."""

    def __init__(self, ledgers: Iterable[Ledger]) -> None:
        filled = [(ledger.id, ledger.confirmed) for ledger in ledgers if ledger.confirmed]
        self._ids = [ledger_id for ledger_id, _ in filled]
        self._ends = list(accumulate(count for _, count in filled))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> Position:
        ledger = bisect_right(self._ends, number)
        return Position(self._ids[ledger], number - (self._ends[ledger - 1] if ledger else 0))


def newest_matching(
    entries: Visible, matches: Callable[[bytes], bool | None], *, start: int = 0, skips_damaged: bool = False
) -> Reading[int]:
    """Return the number of the last entry that matches, from `start` on, where a first part of them does and the rest
    does not; -1: none does. An entry of which `matches` cannot tell (None) is passed over, as a skipped damaged one is.

    Looks where Pulsar looks (OpFindNewest): the answer is its own also where entries are in no such order, and where
    damaged ones are skipped (autoSkipNonRecoverableData): for the nearest one behind, at the end for one before.
    """
    passed = set[int]()

    def first_of(numbers: Iterable[int]) -> Reading[tuple[int, bool]]:
        """The first of these entries that can be read, and whether it matches."""
        for number in numbers:
            if number in passed:
                continue
            try:
                entry = yield entries[number]
            except DamagedEntriesError:
                if not skips_damaged:
                    raise
                passed.add(number)
            else:
                found = matches(entry)
                if found is not None:
                    return number, found
                passed.add(number)
        return -1, False

    end = len(entries)
    newest, fits = yield from first_of(range(start, end))
    if not fits:
        return -1  # whatever comes behind it
    low = newest
    high, fits = yield from first_of(range(end - 1, low - 1, -1))
    if fits:
        return high
    while low < high:
        middle = low + max((high - low) // 2, 1)
        number, fits = yield from first_of(chain(range(middle, high + 1), range(middle - 1, low - 1, -1)))
        if fits:
            newest, low = number, middle
        else:
            high = middle - 1
    return newest


def newest_position(
    ledgers: Iterable[Ledger], matches: Callable[[bytes], bool], *, skips_damaged: bool = False
) -> Reading[Position | None]:
    """Where that entry stands; None: none matches."""
    entries = Visible(ledgers)
    number = yield from newest_matching(entries, matches, skips_damaged=skips_damaged)
    return entries[number] if number >= 0 else None


def read_through(reading: Reading[T], read: Callable[[Position], bytes]) -> T:
    """What a reading finds, each entry read at once."""
    try:
        wanted = next(reading)
        while True:
            try:
                entry = read(wanted)
            except DamagedEntriesError as error:
                wanted = reading.throw(error)
            else:
                wanted = reading.send(entry)
    except StopIteration as end:
        found: Any = end.value
        return found  # type: ignore[no-any-return]
