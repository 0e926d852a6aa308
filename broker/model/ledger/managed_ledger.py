"""The managed ledger: a topic's entries, over all its ledgers, and who waits for those on their way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.ledger.info_compression import InfoCompression, unpack
from pulsarium.broker.model.ledger.ledger import NO_RETENTION, Ledger, Retention, consumed, not_retained
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.broker.model.ledger.stores import Stat, Stores
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.message_id import TxnId

if TYPE_CHECKING:
    from pulsarium.broker.model.ledger.shadow_ledger import ShadowLedger


class Pending:
    """An entry from its SEND until it is answered: what the SEND says of it, and who hears what became of it."""

    __slots__ = (
        "entry",
        "highest_sequence_id",
        "is_chunk",
        "messages",
        "position",
        "publication",
        "sequence_id",
        "txn",
    )

    position: Position  # once it is appended

    def __init__(
        self,
        publication: Publication,
        entry: bytes,
        sequence_id: int = 0,
        highest_sequence_id: int = 0,
        messages: int = 1,
        is_chunk: bool = False,
        txn: TxnId | None = None,
    ) -> None:
        self.publication = publication
        self.entry = entry  # b"" once a ledger has it
        self.sequence_id = sequence_id
        self.highest_sequence_id = highest_sequence_id
        self.messages = messages
        self.is_chunk = is_chunk
        self.txn = txn


class Publication(Protocol):
    """What waits for entries to be committed. Each call answers a run of its own entries, in order."""

    def persisted(self, entries: Sequence[Pending]) -> None: ...

    def failed(self, entries: Sequence[Pending], error: Exception) -> None: ...

    def forgotten(self, entries: Sequence[Pending]) -> None:
        """They are committed, but their topic is being deleted: nobody waits for the answers any more."""
        ...


class Unwatched:
    """Nobody waits for the single entry: whoever wrote it waits for the commit, or does not care."""

    def persisted(self, entries: Sequence[Pending]) -> None:
        """There is nobody to tell."""

    def forgotten(self, entries: Sequence[Pending]) -> None:
        """The same."""

    def failed(self, entries: Sequence[Pending], error: Exception) -> None:
        """The turn tells of it."""


class LedgerFencedError(Exception):
    """A commit failed; the managed ledger takes no more entries until its topic is loaded again."""


class LedgerTerminatedError(Exception):
    """The managed ledger was terminated: it takes no more entries, ever."""


def path_of(name: str) -> str:
    """Return where a managed ledger of this name is kept."""
    return f"/managed-ledgers/{name}"


def kept_info(name: str, stores: Stores) -> ml.ManagedLedgerInfo | None:
    """Return what the store held of a managed ledger when the broker started; handed out once."""
    value = stores.recovered(path_of(name))
    return None if value is None else ml.ManagedLedgerInfo.FromString(unpack(value))


class LedgerListener:
    """Hears what becomes of a managed ledger; this one does not care."""

    def confirmed(self) -> None:
        """New entries are visible, or consumers may read further."""

    def rolled(self) -> None:
        """A ledger was closed, and the next one begun."""

    def fenced(self) -> None:
        """A commit failed: no entry is taken until the managed ledger is opened again."""

    def going(self, last: Position) -> None:
        """The source of a shadow deletes its entries up to `last`, which are still there."""


NOBODY = LedgerListener()


class ManagedLedger(LedgerSequence):
    """Append-only entries at positions. Entries become visible when their commit comes back, in order."""

    def __init__(
        self, name: str, stores: Stores, kept: ml.ManagedLedgerInfo | None = None, listener: LedgerListener = NOBODY
    ) -> None:
        """Go on from `kept`, where somebody has looked at it already."""
        super().__init__(stores.cache, stores.storage)
        self.name = name
        self.created_ms = stores.clock.now_ms()
        self.stat = Stat(self.created_ms, self.created_ms, 0)  # Pulsar writes it first without a ledger
        self.entries_added = 0  # since the topic was loaded
        self.fenced = False
        self.terminated: Position | None = None  # where the last entry stands, once no more are taken (B-33)
        self.properties: dict[str, str] = {}
        self._stores = stores
        self._turn = stores.turn
        self.listener = listener
        self.shadows: list[ShadowLedger] = []  # those that show its entries
        self._pending: list[Pending] = []  # the entries of this turn
        self._pending_turn = -1
        self._unanswered: deque[list[Pending]] = deque()  # of this turn and of those before, in order
        self._undeleted: list[int] = []  # ledgers that were let go, and are still in the store: the commit failed
        config = stores.config
        self._max_entries = config.managedLedgerMaxEntriesPerLedger
        self._max_bytes = config.managedLedgerMaxSizePerLedgerMbytes << 20
        self._min_rollover_ms = config.managedLedgerMinLedgerRolloverTimeMinutes * 60_000
        self._max_rollover_ms = config.managedLedgerMaxLedgerRolloverTimeMinutes * 60_000
        self._compression = InfoCompression(
            config.managedLedgerInfoCompressionType, config.managedLedgerInfoCompressionThresholdInBytes
        )
        kept = kept or kept_info(name, stores)
        if kept is None:
            self._open_ledger()
        else:
            self._recover(kept)

    # life

    @property
    def path(self) -> str:
        return path_of(self.name)

    @property
    def owned(self) -> Iterable[Ledger]:
        """Return the ledgers that are kept with this managed ledger, and go with it."""
        return self.ledgers.values()

    def _recover(self, info: ml.ManagedLedgerInfo) -> None:
        if info.HasField("terminatedPosition"):
            self.terminated = Position(info.terminatedPosition.ledgerId, info.terminatedPosition.entryId)
        for kept in info.ledgerInfo:
            ledger = Ledger(kept.ledgerId, self._cache, kept.timestamp)
            ledger.adopt(self._storage.stored_runs(kept.ledgerId))
            if ledger.count < kept.entries:
                raise StorageError(f"ledger {ledger.id}: {ledger.count} of its {kept.entries} entries are stored")
            ledger.closed, ledger.rolled_ms = True, kept.timestamp or self._stores.clock.now_ms()
            if ledger.count:
                self.ledgers[ledger.id] = ledger
                self.last_confirmed = Position(ledger.id, ledger.count - 1)
        self.properties = {kept.key: kept.value for kept in info.properties}
        if self.terminated is not None and self.ledgers:
            self._current = self.ledgers[self.last_confirmed.ledger_id]
            self._current.closed = False  # the last stays, so that its position means something
        else:
            self._open_ledger()

    def reopen(self) -> None:
        """The topic was unloaded and is loaded again: new entries go to a new ledger, as after a change of owner."""
        self.entries_added = 0
        fenced, self.fenced = self.fenced, False
        if self._undeleted:
            undeleted, self._undeleted = self._undeleted, []
            self._delete_ledgers(undeleted)
        if self.terminated is None and (self._current.count or fenced):
            self._close_ledger()
            if fenced:  # nothing is in those that the failed commits began, perhaps not even their names are kept
                self.ledgers = {ledger.id: ledger for ledger in self.ledgers.values() if ledger.count}
            self._open_ledger()
        elif fenced:
            self._store_info()

    def _open_ledger(self) -> None:
        ledger = Ledger(self._stores.next_ledger_id(), self._cache, self._stores.clock.now_ms())
        self._current = self.ledgers[ledger.id] = ledger
        if self.last_confirmed.ledger_id < 0:
            self.last_confirmed = Position(ledger.id, -1)
        self._store_info()

    def _store_info(self) -> None:
        """Persist point: which ledgers there are. Entries of one that is not named are lost: no more without it."""
        info = ml.ManagedLedgerInfo()
        for ledger in self.owned:
            kept = info.ledgerInfo.add(ledgerId=ledger.id)
            if ledger.closed:
                kept.entries, kept.size, kept.timestamp = ledger.count, ledger.size, ledger.rolled_ms
        for key, value in self.properties.items():
            info.properties.add(key=key, value=value)
        if self.terminated is not None:
            info.terminatedPosition.ledgerId, info.terminatedPosition.entryId = self.terminated
        self._turn.store(self.path, self._compression.pack(info.SerializeToString()))
        self.stat.changed(self._stores.clock.now_ms())
        self._turn.after_commit(self._info_stored)

    def _info_stored(self, error: Exception | None) -> None:
        if error is not None:
            self._fail(error)

    def set_properties(self, changes: Mapping[str, str | None]) -> None:
        """Keep texts with the ledger, beside those that it has; None takes one away."""
        for key, value in changes.items():
            self.properties.pop(key, None)
            if value is not None:
                self.properties[key] = value
        self._store_info()

    def terminate(self) -> Position:
        """Take no more entries; where the last one stands, which may not be committed yet."""
        if self.terminated is None:
            self.terminated = Position(self._current.id, self._current.count - 1)
            self._turn.after_commit(self._terminated)
            self._store_info()
        return self.terminated

    def _terminated(self, error: Exception | None) -> None:
        if error is not None:
            self.terminated = None

    def delete(self) -> None:
        """Let the store forget every entry, and take no more: `forget` once that is kept, else `reopen`."""
        for ledger_id in (*(ledger.id for ledger in self.owned), *self._undeleted):
            self._turn.delete_ledger(ledger_id)
        self._turn.store(self.path, None)
        self.fenced = True

    def forget(self) -> None:
        """It is deleted."""
        for shadow in list(self.shadows):
            shadow.leave()
        for ledger in self.owned:
            ledger.drop()

    # appending

    def append(self, pending: Pending) -> Position:
        """Add an entry, and say where; its `publication` hears when it is committed, or that it was not."""
        if self.fenced:
            raise LedgerFencedError(self.name)
        if self.terminated is not None:
            raise LedgerTerminatedError(self.name)
        turn = self._turn
        if self._pending_turn != turn.number:
            self._pending_turn = turn.number
            self._pending = []
            self._unanswered.append(self._pending)
            turn.after_commit(self._committed)
            self._roll_over_when_due()
        ledger = self._current
        entry = pending.entry
        entry_id = ledger.append(entry)
        if self._storage.keeps_entries:
            turn.store_entry(ledger.id, entry_id, entry)
        pending.entry = b""
        pending.position = position = Position(ledger.id, entry_id)
        self._pending.append(pending)
        return position

    def _roll_over_when_due(self) -> None:
        """Start the next ledger when this one is full or old, but not while it is young."""
        ledger = self._current
        age = self._stores.clock.now_ms() - ledger.created_ms
        full = ledger.count >= self._max_entries or ledger.size >= self._max_bytes
        if (full and age >= self._min_rollover_ms) or (ledger.count and age >= self._max_rollover_ms):
            self._roll_over()

    def roll_over_when_old(self) -> None:
        """Start the next ledger although nothing is appended (managedLedgerMaxLedgerRolloverTimeMinutes)."""
        age = self._stores.clock.now_ms() - self._current.created_ms
        if self._current.count and age >= self._max_rollover_ms and not self.fenced and self.terminated is None:
            self._roll_over()

    def _roll_over(self) -> None:
        self._close_ledger()
        self._open_ledger()
        self.listener.rolled()

    def _close_ledger(self) -> None:
        self._current.closed, self._current.rolled_ms = True, self._stores.clock.now_ms()

    def _committed(self, error: Exception | None) -> None:
        """The commit of the oldest unanswered entries came back."""
        if error is not None:
            self._fail(error)
            return
        pending = self._unanswered.popleft()
        for publication, entries in _by_publication(pending):
            if self.fenced:  # being deleted
                publication.forgotten(entries)
            else:
                publication.persisted(entries)
        ledger_id, entry_id = pending[-1].position
        for ledger in self._between(self.last_confirmed.ledger_id, ledger_id):
            ledger.confirmed = ledger.count
        self.ledgers[ledger_id].confirmed = entry_id + 1
        self.last_confirmed = Position(ledger_id, entry_id)
        self.entries_added += len(pending)
        if self.fenced:
            return
        self.listener.confirmed()
        if self.terminated is None:
            self._roll_over_when_due()

    def _between(self, first_id: int, last_id: int) -> Iterator[Ledger]:
        if first_id != last_id:
            for ledger_id, ledger in self.ledgers.items():
                if first_id <= ledger_id < last_id:
                    yield ledger

    def _fail(self, error: Exception) -> None:
        """A commit failed, and all that were on their way with it: take nothing more, until `reopen`.

        Of entries, which never were visible, or of the info. Told once for each: only the first makes a difference.
        """
        fenced, self.fenced = self.fenced, True  # also while it is being deleted
        for ledger in self.ledgers.values():
            ledger.drop_unconfirmed()
        unanswered = list(chain.from_iterable(self._unanswered))
        self._unanswered.clear()
        for publication, entries in _by_publication(unanswered):
            publication.failed(entries, error)
        if not fenced:
            self._turn.after_commit(lambda error: self._tell_fenced())  # once everybody who waited was answered

    def _tell_fenced(self) -> None:
        if self.fenced:
            self.listener.fenced()

    # trimming

    def trim(
        self,
        slowest: Position | None,
        retention: Retention = NO_RETENTION,
        going: Callable[[Position], None] = lambda last: None,
    ) -> None:
        """Delete ledgers that every durable cursor has consumed (`slowest`; None: there is none) and retention lets go.

        `going` hears which entry is the last that goes, while it is still there (B-25).
        """
        if not self.fenced:
            gone = not_retained(consumed(self.ledgers, slowest), self.size, retention, self._stores.clock.now_ms())
            self.truncate(gone, going)

    def truncate(self, gone: Sequence[Ledger], going: Callable[[Position], None]) -> None:
        """Delete ledgers; `going` as above."""
        if not gone:
            return
        filled = [ledger for ledger in gone if ledger.confirmed]
        if filled:
            going(Position(filled[-1].id, filled[-1].confirmed - 1))
        for ledger in gone:
            del self.ledgers[ledger.id]
            ledger.drop()
        self._delete_ledgers([ledger.id for ledger in gone])
        self._store_info()

    def _delete_ledgers(self, ids: Sequence[int]) -> None:
        def deleted(error: Exception | None) -> None:
            if error is not None:
                self._undeleted += ids

        for ledger_id in ids:
            self._turn.delete_ledger(ledger_id)
        self._turn.after_commit(deleted)


def _by_publication(pending: Iterable[Pending]) -> Iterator[tuple[Publication, list[Pending]]]:
    """Runs of entries of the same publication."""
    for publication, entries in groupby(pending, key=attrgetter("publication")):
        yield publication, list(entries)
