"""A set of positions, small however many there are."""

from __future__ import annotations

from collections.abc import Iterator

from pyroaring import BitMap

from pulsarium.broker.model.ledger.position import Position

LAST_ID = 2**32 - 1  # that a bitmap can hold, and a store; clients may name others


class PositionSet:
    """Positions in order, one roaring bitmap of entry ids for each ledger."""

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

    def add_range(self, ledger_id: int, first: int, stop: int) -> None:
        """Add entries first..stop-1 of a ledger."""
        if first < stop:
            self._ledgers.setdefault(ledger_id, BitMap()).add_range(first, stop)

    def discard(self, position: Position) -> None:
        entries = self._ledgers.get(position.ledger_id)
        if entries is not None and 0 <= position.entry_id <= LAST_ID:
            entries.discard(position.entry_id)
            if not entries:
                del self._ledgers[position.ledger_id]

    def first(self) -> Position | None:
        """The lowest position."""
        if not self._ledgers:
            return None
        ledger_id = min(self._ledgers)
        return Position(ledger_id, self._ledgers[ledger_id].min())

    def of(self, ledger_id: int) -> BitMap | None:
        """The entries of one ledger, or None when there are none."""
        return self._ledgers.get(ledger_id)

    def run_end(self, position: Position) -> int:
        """The last entry of the unbroken run that begins at `position`; the one before it when none does."""
        entries = self._ledgers.get(position.ledger_id)
        entry_id = position.entry_id
        if entries is not None:
            while entry_id in entries:
                entry_id += 1
        return entry_id - 1

    def remove_through(self, position: Position) -> None:
        """Drop every position up to and with `position`."""
        for ledger_id in [ledger_id for ledger_id in self._ledgers if ledger_id < position.ledger_id]:
            del self._ledgers[ledger_id]
        entries = self._ledgers.get(position.ledger_id)
        if entries is not None and position.entry_id >= 0:
            entries.remove_range(0, position.entry_id + 1)
            if not entries:
                del self._ledgers[position.ledger_id]

    def count_through(self, position: Position) -> int:
        """How many stand at or before `position`."""
        total = 0
        for ledger_id, entries in self._ledgers.items():
            if ledger_id < position.ledger_id:
                total += len(entries)
            elif ledger_id == position.ledger_id and position.entry_id >= 0:
                total += entries.rank(position.entry_id)
        return total

    def ranges(self) -> Iterator[tuple[Position, Position]]:
        """(the position before, the last position of) each unbroken run: the open-closed ranges that Pulsar writes."""
        for ledger_id in sorted(self._ledgers):
            entries = self._ledgers[ledger_id]
            start: int | None = entries.min()
            while start is not None:
                end = self.run_end(Position(ledger_id, start))
                yield Position(ledger_id, start - 1), Position(ledger_id, end)
                start = entries.next_set_bit(end + 1) if end < entries.max() else None

    def clear(self) -> None:
        self._ledgers.clear()
