"""Looking for an entry by halving. How entries are read is the caller's: at once, or awaited."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable
from itertools import accumulate
from typing import Any, TypeVar

from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position

T = TypeVar("T")
Reading = Generator[Position, bytes, T]  # yields where it wants an entry, and is sent that; returns what it found


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


def newest_matching(entries: Visible, matches: Callable[[bytes], bool]) -> Reading[int]:
    """The number of the last entry that matches, where a first part of them does and the rest does not; -1: none does.

    Looks where Pulsar looks (OpFindNewest): the answer is its own also where entries are in no such order.
    """
    low, high = 0, len(entries) - 1
    if high < 0 or not matches((yield entries[0])):
        return -1  # whatever comes behind it
    if matches((yield entries[high])):
        return high
    while low < high:
        middle = low + max((high - low) // 2, 1)
        if matches((yield entries[middle])):
            low = middle
        else:
            high = middle - 1
    return low


def newest_position(ledgers: Iterable[Ledger], matches: Callable[[bytes], bool]) -> Reading[Position | None]:
    """Where that entry stands; None: none matches."""
    entries = Visible(ledgers)
    number = yield from newest_matching(entries, matches)
    return entries[number] if number >= 0 else None


def read_through(reading: Reading[T], read: Callable[[Position], bytes]) -> T:
    """What a reading finds, each entry read at once."""
    try:
        wanted = next(reading)
        while True:
            wanted = reading.send(read(wanted))
    except StopIteration as end:
        found: Any = end.value
        return found  # type: ignore[no-any-return]
