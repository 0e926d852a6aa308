"""The compacted topic: the retained entries of a topic, in a ledger of their own. Write and read that ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pulsarium.broker.model.compaction.raw import RawReader, pack, position_of, unpack
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores

MOST_PLACES = 256  # readers whose next entry is remembered


class CompactedTopic(Protocol):
    """The retained entries of a topic up to its horizon, at their positions in the topic."""

    @property
    def horizon(self) -> Position | None:
        """Return the last position that compaction has read, or None before the first compaction."""
        ...

    def read(self, start: Position, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        """Return up to `limit` retained entries from `start` on, or [] without any.

        Return None while entries are being loaded; `ready()` is called afterwards.
        """
        ...

    def last_entry(self) -> tuple[Position, bytes] | None:
        """Return the last retained entry, or None without any."""
        ...


class CompactionOf(Protocol):
    """Compaction of a topic, as its subscriptions and the engines of compaction see it."""

    @property
    def compacted(self) -> CompactedTopic:
        """Return the compacted topic that readers see."""
        ...

    def raw_reader(self) -> RawReader:
        """Return the reader of the topic for engines without a reader of their own."""
        ...


class NothingCompacted:
    """The compacted topic before the first compaction."""

    horizon: Position | None = None

    def read(self, start: Position, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        return []

    def last_entry(self) -> tuple[Position, bytes] | None:
        return None


class CompactedLedger:
    """The retained entries up to the horizon, in the order of their positions."""

    def __init__(self, ledger: Ledger, horizon: Position) -> None:
        self.horizon: Position | None = horizon
        self.ledger = ledger
        # position -> entry of the compacted ledger, for the next read of a reader
        self._places: dict[Position, int] = {}
        self._last: tuple[Position, bytes] | None = None

    @classmethod
    def recovered(cls, ledger_id: int, horizon: Position, stores: Stores) -> CompactedLedger:
        """Return the compacted ledger that the store has."""
        ledger = Ledger(ledger_id, stores.cache, stores.clock.now_ms())
        ledger.adopt(stores.storage.stored_runs(ledger_id))
        return cls(ledger, horizon)

    def read(self, start: Position, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        first = self._place_of(start)
        entries = self.ledger.read(first, limit, ready)
        if not entries:
            return entries if entries is None else []
        found: list[tuple[Position, bytes]] = list(map(unpack, entries))
        ledger_id, entry_id = found[-1][0]
        self._remember(Position(ledger_id, entry_id + 1), first + len(found))
        return found

    def last_entry(self) -> tuple[Position, bytes] | None:
        if self._last is None and self.ledger.confirmed:
            self._last = unpack(self.ledger.read_now(self.ledger.confirmed - 1))
        return self._last

    def _place_of(self, start: Position) -> int:
        """Return the number of the first entry at or behind `start`."""
        place = self._places.get(start)
        if place is not None:
            return place
        low, high = 0, self.ledger.confirmed
        while low < high:
            middle = (low + high) // 2
            if position_of(self.ledger.read_now(middle)) < start:
                low = middle + 1
            else:
                high = middle
        self._remember(start, low)
        return low

    def _remember(self, start: Position, place: int) -> None:
        if len(self._places) >= MOST_PLACES:
            del self._places[next(iter(self._places))]
        self._places[start] = place


class CompactedWriter:
    """Write the entries of a new compacted ledger, in the order of their positions."""

    def __init__(self, ledger: Ledger, stores: Stores) -> None:
        self.ledger = ledger
        self.removed = 0  # messages that were not retained, counted by the engine (lastCompactionRemovedEventCount)
        self._stores = stores

    def write(self, position: Position, entry: bytes) -> None:
        """Write an entry with its position in the topic. Persist point: the entry, with the commit of this turn."""
        packed = pack(position, entry)
        entry_id = self.ledger.append(packed)
        if self._stores.storage.keeps_entries:
            self._stores.turn.store_entries(self.ledger.id, entry_id, [packed])

    @property
    def is_committed(self) -> bool:
        return self.ledger.confirmed == self.ledger.count

    def committed(self, count: int) -> None:
        """Note that the first `count` entries are committed."""
        self.ledger.confirmed = count


def read_compacted(
    compacted: CompactedTopic, cursor: ManagedCursor, limit: int, ready: Callable[[], None]
) -> list[tuple[Position, bytes]] | None:
    """Read entries as `ManagedCursor.read` does, from the compacted topic up to its horizon.

    Entries keep their positions, so the cursor moves as it would in the topic.
    """
    while (horizon := compacted.horizon) is not None and cursor.read_position <= horizon:
        entries = compacted.read(cursor.read_position, limit, ready)
        if entries is None:
            return None
        last = entries[-1][0] if entries else horizon
        cursor.read_position = Position(last.ledger_id, last.entry_id + 1)
        acked = cursor.individual_acks
        found = [each for each in entries if each[0] not in acked] if acked else entries
        if found:
            return found
    return cursor.read(limit, ready)


def is_compacted_away(compacted: CompactedTopic, position: Position) -> bool:
    """Return whether compaction has read an entry and not retained it.

    Return False while the answer is being loaded.
    """
    if compacted.horizon is None or position > compacted.horizon:
        return False
    found = compacted.read(position, 1, lambda: None)
    return found is not None and (not found or found[0][0] != position)
