"""A compact set of positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from struct import iter_unpack, unpack, unpack_from

from pyroaring import BitMap

from pulsarium.broker.model.ledger.position import Position, position_of

MANY = 8  # entries from which a bitmap of them costs less than each of them
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
                yield position_of((ledger_id, entry_id))

    def add(self, position: Position) -> None:
        entries = self._ledgers.get(position.ledger_id)
        if entries is None:
            entries = self._ledgers[position.ledger_id] = BitMap()
        entries.add(position.entry_id)

    def update(self, positions: Iterable[Position]) -> None:
        """Add many positions. Neighbors in one ledger cost little more than one position."""
        for ledger_id, run in groupby(positions, key=itemgetter(0)):
            self._ledgers.setdefault(ledger_id, BitMap()).update(map(itemgetter(1), run))

    def add_new(self, ledger_id: int, entry_ids: Iterable[int]) -> BitMap:
        """Add entries of a ledger, and return those that are new."""
        new, entries = BitMap(entry_ids), self._ledgers.get(ledger_id)
        if entries is not None:
            new -= entries
            entries |= new
        elif new:
            self._ledgers[ledger_id] = new.copy()
        return new

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

    def words(self, ledger_id: int, last: int) -> tuple[int, ...]:
        """Return signed 64-bit words, lowest first, with a bit for each entry of a ledger up to `last`."""
        entries = self._ledgers[ledger_id]
        if last < entries.max():
            entries = entries & BitMap(range(last + 1))
        count = last // 64 + 1
        return unpack(f"<{count}q", _dense(entries)[: 8 * count])

    def clear(self) -> None:
        self._ledgers.clear()


# Roaring's portable format, little-endian: u32 cookie and number of containers; for each container u16 key and u16
# cardinality - 1; u32 offset of each container; the containers. A container has the low 16 bits of 2**16 numbers. The
# other cookie has the number - 1 in its high half, bits for the containers with runs, and no offsets of less than four.
_WITH_RUNS = 12347
_MOST_LISTED = 4096  # numbers of a container that lists them; more are one bit each
_CONTAINER_BYTES = 1 << 13  # of these bits


def _dense(entries: BitMap) -> bytearray:
    """Return a bit for each number up to the highest, lowest first.

    A bitmap has most of many numbers in this form, so no step is needed for each of them.
    """
    data = entries.serialize()
    cookie, count = unpack_from("<II", data)
    with_runs, position = bytes(-(-count // 8)), 8
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        with_runs = data[4 : 4 - (-count // 8)]
        position = 4 + len(with_runs)
    heads = list(iter_unpack("<HH", data[position : position + 4 * count]))
    position += 4 * count if cookie & 0xFFFF == _WITH_RUNS and count < 4 else 8 * count
    dense = bytearray((heads[-1][0] + 1) * _CONTAINER_BYTES)
    for index, (key, more) in enumerate(heads):
        base = key * _CONTAINER_BYTES
        if with_runs[index >> 3] >> (index & 7) & 1:
            (runs,) = unpack_from("<H", data, position)
            stop = position + 2 + 4 * runs
            dense[base : base + _CONTAINER_BYTES] = _bits_of_runs(data[position + 2 : stop])
        elif more < _MOST_LISTED:
            stop = position + 2 * (more + 1)
            for number in unpack_from(f"<{more + 1}H", data, position):
                dense[base + (number >> 3)] |= 1 << (number & 7)
        else:
            stop = position + _CONTAINER_BYTES
            dense[base : base + _CONTAINER_BYTES] = data[position:stop]
        position = stop
    return dense


def _bits_of_runs(data: bytes) -> bytes:
    """Return the bits of a container with runs. A run from f to l is the number 2**(l + 1) - 2**f."""
    begins, ends = bytearray(_CONTAINER_BYTES), bytearray(_CONTAINER_BYTES + 1)
    for first, more in iter_unpack("<HH", data):
        begins[first >> 3] |= 1 << (first & 7)
        ends[(first + more + 1) >> 3] |= 1 << ((first + more + 1) & 7)
    bits = int.from_bytes(ends, "little") - int.from_bytes(begins, "little")
    return bits.to_bytes(_CONTAINER_BYTES, "little")
