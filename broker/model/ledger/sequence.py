"""The ledgers of a managed ledger in order. Compare positions, read entries, and search them by halving."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import accumulate, chain
from typing import Any, TypeVar

from pulsarium.broker.model.ledger.ledger import EntryCache, Ledger
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.ledger.transactions import TransactionEntries
from pulsarium.broker.storage.interface import DamagedEntriesError, Storage

T = TypeVar("T")
Reading = Generator[Position, bytes, T]
"""A search that yields positions, receives their entries or DamagedEntriesErrors, and returns its result."""


class Visible:
    """The visible entries of some ledgers at one moment, numbered from 0."""

    def __init__(self, ledgers: Iterable[Ledger]) -> None:
        filled = [(ledger.id, ledger.confirmed) for ledger in ledgers if ledger.confirmed]
        self._ids = [ledger_id for ledger_id, _ in filled]
        self._ends = list(accumulate(count for _, count in filled))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, number: int) -> Position:
        ledger = bisect_right(self._ends, number)
        return Position(self._ids[ledger], number - (self._ends[ledger - 1] if ledger else 0))

    def number_of(self, position: Position) -> int:
        """Return the number of the entry at a position, or of the next one."""
        ledger = bisect_left(self._ids, position.ledger_id)
        before = self._ends[ledger - 1] if ledger else 0
        if ledger == len(self._ids) or self._ids[ledger] != position.ledger_id:
            return before
        return min(before + max(position.entry_id, 0), self._ends[ledger])


def newest_matching(
    entries: Visible, matches: Callable[[bytes], bool | None], *, start: int = 0, skips_damaged: bool = False
) -> Reading[int]:
    """Return the number of the newest matching entry from `start` on, or -1.

    The search halves the entries, so the matching entries have to come first. An entry is skipped when `matches`
    returns None, or when it is damaged and `skips_damaged` is set (autoSkipNonRecoverableData).

    Entries are examined in the order of Pulsar's OpFindNewest, so the result equals Pulsar's in any order of entries.
    In place of a skipped entry the search takes the next readable one, and at the end the previous one.
    """
    passed = set[int]()

    def first_of(numbers: Iterable[int]) -> Reading[tuple[int, bool]]:
        """Return the first readable entry of `numbers`, and whether the entry matches."""
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
        return -1  # as in Pulsar, whatever follows
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
    """Return the position of the newest matching entry, or None."""
    entries = Visible(ledgers)
    number = yield from newest_matching(entries, matches, skips_damaged=skips_damaged)
    return entries[number] if number >= 0 else None


def read_through(reading: Reading[T], read: Callable[[Position], bytes]) -> T:
    """Run a reading to its end with a `read` that returns each entry at once, and return the result."""
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


class LedgerSequence:
    """The entries of all ledgers up to the last confirmed one. Subclasses append."""

    def __init__(self, cache: EntryCache, storage: Storage) -> None:
        self.ledgers: dict[int, Ledger] = {}
        self.last_confirmed = Position(-1, -1)
        self.transactions = TransactionEntries()
        self._current: Ledger  # the ledger that takes new entries
        self._cache = cache
        self._storage = storage

    # positions

    @property
    def size(self) -> int:
        """Return the bytes of all entries."""
        return sum(ledger.size for ledger in self.ledgers.values())

    @property
    def count(self) -> int:
        """Return the number of visible entries."""
        return sum(ledger.confirmed for ledger in self.ledgers.values())

    @property
    def last_appended(self) -> Position | None:
        """Return the position of the newest entry, which may be uncommitted, or None without entries."""
        for ledger in reversed(self.ledgers.values()):
            if ledger.count:
                return Position(ledger.id, ledger.count - 1)
        return None

    @property
    def max_read(self) -> Position:
        """Return the last position that consumers may read, before the first entry of an open transaction.

        Return EARLIEST when no readable entry precedes that transaction.
        """
        held = self.transactions.held_at
        if held is None or held > self.last_confirmed:
            return self.last_confirmed
        before = self.previous(held)
        return before if self.is_valid(before) else EARLIEST  # the entry before may be trimmed

    def first_position(self) -> Position:
        """Return the position before the first entry, which may be uncommitted."""
        for ledger in self.ledgers.values():
            if ledger.count or ledger is self._current:
                return Position(ledger.id, -1)
        return Position(self._current.id, -1)

    def next(self, position: Position) -> Position:
        """Return the position after `position`, in the next ledger when its own has no more entries.

        The entry may not exist yet.
        """
        ledger = self.ledgers.get(position.ledger_id)
        entry_id = max(position.entry_id, -1) + 1
        if ledger is not None and (entry_id < ledger.confirmed or not self._has_later_entries(ledger)):
            return Position(ledger.id, entry_id)
        for later in self.ledgers.values():
            if later.id > position.ledger_id and (later.count or later is self._current):
                return Position(later.id, 0)
        return Position(self._current.id, self._current.confirmed)

    def _has_later_entries(self, ledger: Ledger) -> bool:
        return ledger is not self._current and self.last_confirmed.ledger_id > ledger.id

    def previous(self, position: Position) -> Position:
        """Return the position before `position`. Before the first entry, return entry -1 of its ledger."""
        if position.entry_id > 0:
            return Position(position.ledger_id, position.entry_id - 1)
        before: Ledger | None = None
        for ledger in self.ledgers.values():
            if ledger.id >= position.ledger_id:
                break
            if ledger.confirmed:
                before = ledger
        if before is not None:
            return Position(before.id, before.confirmed - 1)
        return Position(position.ledger_id, -1)

    def is_valid(self, position: Position) -> bool:
        """Return whether a visible entry has this position."""
        ledger = self.ledgers.get(position.ledger_id)
        return ledger is not None and 0 <= position.entry_id < ledger.confirmed

    def clamp(self, position: Position) -> Position:
        """Return the nearest readable position, from the first entry to the position after the last entry."""
        if position > self.last_confirmed:
            return self.next(self.last_confirmed)
        if position.entry_id < 0 or not self.is_valid(position):
            return self.next(max(position, self.first_position()))
        return position

    def count_after(self, position: Position, until: Position | None = None) -> int:
        """Count the entries after `position`, up to and including `until`, by default the last confirmed position."""
        last = until or self.last_confirmed
        if last <= position:
            return 0
        if last.ledger_id == position.ledger_id:
            return last.entry_id - position.entry_id
        total = 0
        for ledger in self.ledgers.values():
            if ledger.id == position.ledger_id:
                total += ledger.confirmed - position.entry_id - 1
            elif position.ledger_id < ledger.id < last.ledger_id:
                total += ledger.confirmed
            elif ledger.id == last.ledger_id:
                total += last.entry_id + 1
        return total

    # reading

    def read(self, start: Position, limit: int, ready: Callable[[], None]) -> list[bytes] | None:
        """Return up to `limit` entries of one ledger that consumers may read, starting with `start`, or [] without any.

        Return None while the entries are being loaded; `ready()` is called afterwards.
        """
        held = self.transactions.held_at
        if held is not None and start.ledger_id >= held.ledger_id:
            limit = min(limit, held.entry_id - start.entry_id) if start < held else 0
            if limit == 0:
                return []
        ledger = self.ledgers.get(start.ledger_id)
        return ledger.read(start.entry_id, limit, ready) if ledger is not None else []

    def fetch(self, position: Position, done: Callable[[bytes | Exception], None]) -> None:
        """Fetch one entry without blocking.

        `done` receives the entry, or the error, maybe before this method returns.
        """
        self.ledgers[position.ledger_id].fetch(position.entry_id, done)

    def read_now(self, position: Position) -> bytes:
        """Return one entry, read from disk when it is not in memory.

        Reading blocks, so use this for single entries: the last message id, a search by time, a peek.
        """
        return self.ledgers[position.ledger_id].read_now(position.entry_id)

    def all_after(
        self, position: Position, damaged: Callable[[DamagedEntriesError], None] | None = None
    ) -> Iterator[bytes]:
        """Yield all visible entries after `position`, while a topic is loaded.

        Entries that are not in memory are read from disk.

        `damaged` receives the error of damaged entries. Unless it raises, the other entries follow.
        """
        position = self.next(position)
        while position <= self.last_confirmed:
            ledger = self.ledgers[position.ledger_id]
            block = ledger.block_of(position.entry_id)
            last = min(block.first + block.count, ledger.confirmed) - 1
            if block.entries is not None:
                yield from block.entries[position.entry_id - block.first : last - block.first + 1]
            else:
                try:
                    yield from self._storage.read_now(ledger.id, position.entry_id, last)
                except DamagedEntriesError as error:
                    if damaged is None:
                        raise
                    damaged(error)
                    if position.entry_id < error.first:
                        yield from self._storage.read_now(ledger.id, position.entry_id, error.first - 1)
                    last = error.last
            position = self.next(Position(ledger.id, last))

    def find_last(self, matches: Callable[[bytes], bool], *, skips_damaged: bool = False) -> Position | None:
        """Return the position of the newest entry for which `matches` is true.

        The matching entries have to come first.
        """
        reading = newest_position(self.ledgers.values(), matches, skips_damaged=skips_damaged)
        return read_through(reading, self.read_now)
