"""A compacted ledger: what compaction left of a topic, in a ledger of its own."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.model.compaction.raw import pack, position_of, unpack
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores

MOST_PLACES = 256  # readers whose place is remembered


class NothingCompacted:
    """A topic that was not compacted."""

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
        self._places: dict[Position, int] = {}  # where readers go on: position -> entry of the compacted ledger
        self._last: tuple[Position, bytes] | None = None

    @classmethod
    def recovered(cls, ledger_id: int, horizon: Position, stores: Stores) -> CompactedLedger:
        """The one that the store has."""
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
        """The first entry that stands at `start` or behind it."""
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
    """Takes the entries of a new compacted ledger, in the order of their positions."""

    def __init__(self, ledger: Ledger, stores: Stores) -> None:
        self.ledger = ledger
        self.removed = 0  # messages that did not stay, as the engine counts them (lastCompactionRemovedEventCount)
        self._stores = stores

    def write(self, position: Position, entry: bytes) -> None:
        """Keep an entry, which stood there in the topic, with this turn's commit. Persist point: the entry."""
        packed = pack(position, entry)
        entry_id = self.ledger.append(packed)
        if self._stores.storage.keeps_entries:
            self._stores.turn.store_entry(self.ledger.id, entry_id, packed)

    @property
    def is_committed(self) -> bool:
        return self.ledger.confirmed == self.ledger.count

    def committed(self, count: int) -> None:
        """That many entries are kept."""
        self.ledger.confirmed = count
