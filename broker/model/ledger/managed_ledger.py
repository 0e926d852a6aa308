"""The managed ledger: a topic's entries, over all its ledgers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.ledger.cache import EntryCache
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.storage.interface import Storage
from pulsarium.broker.turn import Turn
from pulsarium.proto.generated import MLDataFormats_pb2 as ml


class Publication(Protocol):
    """What waits for an entry to be committed."""

    def persisted(self, ledger_id: int, entry_id: int, sequence_id: int, highest_sequence_id: int) -> None: ...

    def failed(self, error: Exception, sequence_id: int, highest_sequence_id: int) -> None: ...

    def forgotten(self) -> None:
        """The topic was deleted before the commit: nobody waits for the answer any more."""
        ...


Pending = tuple[Publication, int, int, int, int]  # publication, ledger, entry, sequence id, highest sequence id


class LedgerFencedError(Exception):
    """A commit failed; the managed ledger takes no more entries until its topic is loaded again."""


class Stores(Protocol):
    """What a managed ledger shares with the others of its broker."""

    config: Config
    clock: Clock
    turn: Turn
    storage: Storage
    cache: EntryCache

    def next_ledger_id(self) -> int: ...

    def recovered(self, path: str) -> bytes | None:
        """What the store held at `path` when the broker started."""
        ...

    def recovered_under(self, path: str) -> Sequence[tuple[str, bytes]]:
        """What it held in the folder `path`: names and values."""
        ...


class ManagedLedger:
    """Append-only entries at positions. Entries become visible when their commit comes back, in order."""

    def __init__(self, name: str, stores: Stores) -> None:
        self.name = name
        self.ledgers: dict[int, Ledger] = {}
        self.created_ms = stores.clock.now_ms()
        self.entries_added = 0
        self.last_confirmed = Position(-1, -1)
        self.fenced = False
        self.properties: dict[str, int] = {}
        self._stores = stores
        self._turn = stores.turn
        self.on_confirmed: Callable[[], None] = lambda: None  # the topic, once it is loaded
        self.on_fenced: Callable[[], None] = lambda: None
        self._pending: list[Pending] = []
        self._pending_turn = -1
        config = stores.config
        self._max_entries = config.managedLedgerMaxEntriesPerLedger
        self._max_bytes = config.managedLedgerMaxSizePerLedgerMbytes << 20
        self._min_rollover_ms = config.managedLedgerMinLedgerRolloverTimeMinutes * 60_000
        self._max_rollover_ms = config.managedLedgerMaxLedgerRolloverTimeMinutes * 60_000
        self._current: Ledger
        if not self._recover():
            self._open_ledger()

    # life

    @property
    def path(self) -> str:
        return f"/managed-ledgers/{self.name}"

    def _recover(self) -> bool:
        value = self._stores.recovered(self.path)
        if value is None:
            return False
        info = ml.ManagedLedgerInfo.FromString(value)
        for kept in info.ledgerInfo:
            ledger = Ledger(kept.ledgerId, self._stores.cache, kept.timestamp)
            ledger.adopt(self._stores.storage.stored_runs(kept.ledgerId))
            ledger.closed, ledger.rolled_ms = True, kept.timestamp
            if ledger.count:
                self.ledgers[ledger.id] = ledger
                self.last_confirmed = Position(ledger.id, ledger.count - 1)
        self.properties = {kept.key: int(kept.value) for kept in info.properties}
        self._open_ledger()
        return True

    def reopen(self) -> None:
        """The topic was unloaded and is loaded again: new entries go to a new ledger, as after a change of owner."""
        self.fenced = False
        if self._current.count:
            self._close_ledger()
            self._open_ledger()

    def _open_ledger(self) -> None:
        ledger = Ledger(self._stores.next_ledger_id(), self._stores.cache, self._stores.clock.now_ms())
        self._current = self.ledgers[ledger.id] = ledger
        if self.last_confirmed.ledger_id < 0:
            self.last_confirmed = Position(ledger.id, -1)
        self._store_info()

    def _store_info(self) -> None:
        """Persist point: which ledgers there are."""
        info = ml.ManagedLedgerInfo()
        for ledger in self.ledgers.values():
            kept = info.ledgerInfo.add(ledgerId=ledger.id)
            if ledger.closed:
                kept.entries, kept.size, kept.timestamp = ledger.count, ledger.size, ledger.rolled_ms
        for key, value in self.properties.items():
            info.properties.add(key=key, value=str(value))
        self._turn.store(self.path, info.SerializeToString())

    def set_property(self, key: str, value: int) -> None:
        """Keep a number with the ledger."""
        self.properties[key] = value
        self._store_info()

    def delete(self) -> None:
        """Forget every entry."""
        for ledger in self.ledgers.values():
            ledger.drop()
            self._turn.delete_ledger(ledger.id)
        self._turn.store(self.path, None)
        self.fenced = True

    # appending

    def append(self, entry: bytes, publication: Publication, sequence_id: int, highest_sequence_id: int) -> None:
        """Add an entry; `publication` hears when it is committed, or that it was not."""
        if self.fenced:
            raise LedgerFencedError(self.name)
        turn = self._turn
        if self._pending_turn != turn.number:
            self._pending_turn = turn.number
            pending: list[Pending] = []
            self._pending = pending
            turn.after_commit(lambda error: self._committed(pending, error))
            self._roll_over_when_due()
        ledger = self._current
        entry_id = ledger.append(entry)
        if self._stores.storage.keeps_entries:
            turn.store_entry(ledger.id, entry_id, entry)
        self._pending.append((publication, ledger.id, entry_id, sequence_id, highest_sequence_id))

    def _roll_over_when_due(self) -> None:
        """Start the next ledger when this one is full or old, but not while it is young; looked at once a turn."""
        ledger = self._current
        age = self._stores.clock.now_ms() - ledger.created_ms
        full = ledger.count >= self._max_entries or ledger.size >= self._max_bytes
        if (full and age >= self._min_rollover_ms) or (ledger.count and age >= self._max_rollover_ms):
            self._close_ledger()
            self._open_ledger()

    def _close_ledger(self) -> None:
        self._current.closed, self._current.rolled_ms = True, self._stores.clock.now_ms()

    def _committed(self, pending: list[Pending], error: Exception | None) -> None:
        if error is not None:
            self._fail(pending, error)
            return
        if self.fenced:
            for publication, *_ in pending:
                publication.forgotten()
            return
        for publication, ledger_id, entry_id, sequence_id, highest in pending:
            publication.persisted(ledger_id, entry_id, sequence_id, highest)
        _, ledger_id, entry_id, _, _ = pending[-1]
        for ledger in self._between(self.last_confirmed.ledger_id, ledger_id):
            ledger.confirmed = ledger.count
        self.ledgers[ledger_id].confirmed = entry_id + 1
        self.last_confirmed = Position(ledger_id, entry_id)
        self.entries_added += len(pending)
        self.on_confirmed()

    def _between(self, first_id: int, last_id: int) -> Iterator[Ledger]:
        if first_id != last_id:
            for ledger_id, ledger in self.ledgers.items():
                if first_id <= ledger_id < last_id:
                    yield ledger

    def _fail(self, pending: list[Pending], error: Exception) -> None:
        """A commit failed: take nothing more, give the entry ids back; the entries were never visible."""
        self.fenced = True
        for ledger in self.ledgers.values():
            ledger.drop_unconfirmed()
        for publication, _, _, sequence_id, highest in pending:
            publication.failed(error, sequence_id, highest)
        self.on_fenced()

    # positions

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return sum(ledger.size for ledger in self.ledgers.values())

    @property
    def count(self) -> int:
        """Number of visible entries."""
        return sum(ledger.confirmed for ledger in self.ledgers.values())

    def first_position(self) -> Position:
        """The place before the first entry."""
        for ledger in self.ledgers.values():
            if ledger.confirmed or ledger is self._current:
                return Position(ledger.id, -1)
        return Position(self._current.id, -1)

    def next(self, position: Position) -> Position:
        """The position after `position`: in the next ledger when its own has no more. May not be filled yet."""
        ledger = self.ledgers.get(position.ledger_id)
        entry_id = max(position.entry_id, -1) + 1
        if ledger is not None and (entry_id < ledger.confirmed or not self._has_later_entries(ledger)):
            return Position(ledger.id, entry_id)
        for later in self.ledgers.values():
            if later.id > position.ledger_id and (later.confirmed or later is self._current):
                return Position(later.id, 0)
        return Position(self._current.id, self._current.confirmed)

    def _has_later_entries(self, ledger: Ledger) -> bool:
        return ledger is not self._current and self.last_confirmed.ledger_id > ledger.id

    def previous(self, position: Position) -> Position:
        """The position before `position`: entry -1 at the start of everything."""
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
        """Whether an entry stands there."""
        ledger = self.ledgers.get(position.ledger_id)
        return ledger is not None and 0 <= position.entry_id < ledger.confirmed

    def clamp(self, position: Position) -> Position:
        """The nearest place to read from that exists: from the first entry to just after the last."""
        if position > self.last_confirmed:
            return self.next(self.last_confirmed)
        if position.entry_id < 0 or not self.is_valid(position):
            return self.next(max(position, self.first_position()))
        return position

    def count_after(self, position: Position, until: Position | None = None) -> int:
        """How many entries stand after `position`, up to and with `until` (the last confirmed)."""
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
        """Up to `limit` visible entries of one ledger, from `start` on; [] when there are none.

        None: they are not in memory; `ready()` is called when they are.
        """
        ledger = self.ledgers.get(start.ledger_id)
        if ledger is None or start.entry_id >= ledger.confirmed:
            return []
        block = ledger.block_of(start.entry_id)
        if block.entries is None:
            self._stores.cache.load(block, ready)
            return None
        offset = start.entry_id - block.first
        return block.entries[offset : offset + min(limit, ledger.confirmed - start.entry_id)]

    def read_now(self, position: Position) -> bytes:
        """One entry, from disk if need be. For single looks: the last message id, a search by time, a peek."""
        ledger = self.ledgers[position.ledger_id]
        block = ledger.block_of(position.entry_id)
        if block.entries is not None:
            return block.entries[position.entry_id - block.first]
        return self._stores.storage.read_now(ledger.id, position.entry_id, position.entry_id)[0]

    def find_last(self, matches: Callable[[bytes], bool]) -> Position | None:
        """The last entry for which `matches` holds, where it holds for a first part of the entries and not after."""
        found: Position | None = None
        for ledger in self.ledgers.values():
            low, high = 0, ledger.confirmed
            while low < high:
                middle = (low + high) // 2
                if matches(self.read_now(Position(ledger.id, middle))):
                    low = middle + 1
                else:
                    high = middle
            if low:
                found = Position(ledger.id, low - 1)
            if low < ledger.confirmed:
                break
        return found

    # trimming

    def trim(self, needed: Position) -> None:
        """Delete the closed ledgers before the one that holds `needed`."""
        gone = [ledger for ledger in self.ledgers.values() if ledger.closed and ledger.id < needed.ledger_id]
        for ledger in gone:
            del self.ledgers[ledger.id]
            ledger.drop()
            self._turn.delete_ledger(ledger.id)
        if gone:
            self._store_info()
