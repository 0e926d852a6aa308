"""A compact set of positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from pyroaring import BitMap

from pulsarium.broker.model.ledger.position import Position

LAST_ID = 2**32 - 1  # the highest entry id of a bitmap and of a store; clients may send higher ones


class PositionSet:
    """Positions in order, in one roaring bitmap of entry ids for each ledger.

    A million positions take some hundred kilobytes. Operations for each message touch one bitmap. Counts and ranges
    work on whole bitmaps.
    """

    def __init__(self) -> None:
        self._ledgers: dict[int, BitMap] = {}

    def __bool__(self) -> bool:
        return bool(self._ledgers)

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._ledgers.values())

    def __contains__(self, position: Position) -> bool:
        entries = self._ledgers.get(position.ledger_id)
        return entries is not None and 0 <= position.entry_id <= LAST_ID and position.entry_id in entries

    def __iter__(self) -> Iterator[Position]:
        for ledger_id in sorted(self._ledgers):
            for entry_id in self._ledgers[ledger_id]:
                yield Position(ledger_id, entry_id)

    def add(self, position: Position) -> None:
        entries = self._ledgers.get(position.ledger_id)
        if entries is None:
            entries = self._ledgers[position.ledger_id] = BitMap()
        entries.add(position.entry_id)

    def update(self, positions: Iterable[Position]) -> None:
        """Add many positions. Neighbors in one ledger cost little more than one position."""
        for ledger_id, run in groupby(positions, key=itemgetter(0)):
            self._ledgers.setdefault(ledger_id, BitMap()).update(map(itemgetter(1), run))

    def add_range(self, ledger_id: int, first: int, stop: int) -> None:
        """Add the entries `first` to `stop` - 1 of a ledger."""
        if first < stop:
            self._ledgers.setdefault(ledger_id, BitMap()).add_range(first, stop)

    def discard(self, position: Position) -> None:
        entries = self._ledgers.get(position.ledger_id)
        if entries is not None and 0 <= position.entry_id <= LAST_ID:
            entries.discard(position.entry_id)
            if not entries:
                del self._ledgers[position.ledger_id]

    def first(self) -> Position | None:
        """Return the lowest position, or None of an empty set."""
        if not self._ledgers:
            return None
        ledger_id = min(self._ledgers)
        return Position(ledger_id, self._ledgers[ledger_id].min())

    def of(self, ledger_id: int) -> BitMap | None:
        """Return the entry ids of one ledger, or None without any."""
        return self._ledgers.get(ledger_id)

    def run_end(self, ledger_id: int, first: int) -> int:
        """Return the last entry of the unbroken run that begins at `first`, or `first` - 1 without a run."""
        entries = self._ledgers.get(ledger_id)
        if entries is None or first not in entries:
            return first - 1
        last, top = first, entries.max()
        reach = 1  # the step, which doubles while the run goes on, and halves afterwards
        while last + reach <= top and entries.contains_range(last, last + reach + 1):
            last += reach
            reach *= 2
        while reach := reach // 2:
            if last + reach <= top and entries.contains_range(last, last + reach + 1):
                last += reach
        return last

    def take_run(self, ledger_id: int, first: int) -> int:
        """Remove the unbroken run that begins at `first`. Return its last entry, or `first` - 1 without a run."""
        last = self.run_end(ledger_id, first)
        if last >= first:
            entries = self._ledgers[ledger_id]
            entries.remove_range(first, last + 1)
            if not entries:
                del self._ledgers[ledger_id]
        return last

    def remove_through(self, position: Position) -> None:
        """Remove all positions up to and including `position`."""
        for ledger_id in [ledger_id for ledger_id in self._ledgers if ledger_id < position.ledger_id]:
            del self._ledgers[ledger_id]
        entries = self._ledgers.get(position.ledger_id)
        if entries is not None and position.entry_id >= 0:
            entries.remove_range(0, position.entry_id + 1)
            if not entries:
                del self._ledgers[position.ledger_id]

    def count_through(self, position: Position) -> int:
        """Count the positions up to and including `position`."""
        total = 0
        for ledger_id, entries in self._ledgers.items():
            if ledger_id < position.ledger_id:
                total += len(entries)
            elif ledger_id == position.ledger_id and position.entry_id >= 0:
                total += entries.rank(position.entry_id)
        return total

    def count_without(self, others: PositionSet) -> int:
        """Count the positions that are not in `others`."""
        total = 0
        for ledger_id, entries in self._ledgers.items():
            gone = others.of(ledger_id)
            total += len(entries) - (0 if gone is None else entries.intersection_cardinality(gone))
        return total

    def count_ranges(self) -> int:
        """Count the unbroken runs."""
        return sum(
            len(entries) - entries.intersection_cardinality(entries.shift(1)) for entries in self._ledgers.values()
        )

    def ranges(self) -> Iterator[tuple[Position, Position]]:
        """Yield each unbroken run as (position before the run, last position), the open-closed ranges of Pulsar."""
        for ledger_id, firsts, lasts in self.runs():
            for first, last in zip(firsts, lasts, strict=True):
                yield Position(ledger_id, first - 1), Position(ledger_id, last)

    def runs(self) -> Iterator[tuple[int, BitMap, BitMap]]:
        """Yield the unbroken runs of each ledger as (ledger id, first entries, last entries)."""
        for ledger_id in sorted(self._ledgers):
            entries = self._ledgers[ledger_id]
            yield ledger_id, entries - entries.shift(1), entries - entries.shift(-1)

    def clear(self) -> None:
        self._ledgers.clear()
