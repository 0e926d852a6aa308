"""The managed ledger: the entries of a topic in all its ledgers, and the publications that wait for a commit.

    ledgers      3 (closed)        7 (closed)        9 (open)
    entries      0 1 2 3 4         0 1 2             0 1 2 3 | 4 5
                 |                                         |     |
          first position                      last confirmed     appended, not committed

A topic is a list of ledgers, of which only the last one takes entries. A position is a ledger id and an entry id, and
positions are compared as pairs. Ledger ids come from one counter of the cluster, so they have gaps. A ledger is closed
when it has enough entries or bytes, or is old enough, and a load of the topic opens a new one, as in Pulsar.

An entry that is appended gets its position at once, but nobody reads it before its commit: readers see entries up to
the last confirmed one, or up to `max_read` while a transaction is open. Receipts follow the commit, too. A commit that
fails takes back its entries and fences the topic, whose producers are told to create themselves again.

Trimming deletes whole ledgers that every cursor has left behind and that retention lets go.

A shadow topic (PIP-180) has a managed ledger too (`ShadowLedger`), which shows the entries of its source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Protocol

from pulsarium.broker.model.ledger.info_compression import InfoCompression, unpack
from pulsarium.broker.model.ledger.ledger import NO_RETENTION, Ledger, Retention, consumed, not_retained
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.broker.model.ledger.stores import Stat, Stores
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.topic_name import TopicName


class PendingPublish:
    """An entry that waits for its commit, with the fields of its SEND and the publication to answer."""

    __slots__ = (
        "entry",
        "entry_id",
        "highest_sequence_id",
        "is_chunk",
        "is_marker",
        "ledger_id",
        "messages",
        "publication",
        "sequence_id",
        "txn",
    )

    ledger_id: int  # set by `append_run`, as is the entry id
    entry_id: int

    def __init__(
        self,
        publication: Publication,
        entry: bytes,
        sequence_id: int = 0,
        highest_sequence_id: int = 0,
        messages: int = 1,
        is_chunk: bool = False,
        txn: TxnId | None = None,
        *,
        is_marker: bool = False,
    ) -> None:
        self.publication = publication
        self.entry = entry  # b"" once the entry is in a ledger
        self.sequence_id = sequence_id
        self.highest_sequence_id = highest_sequence_id
        self.messages = messages
        self.is_chunk = is_chunk
        self.is_marker = is_marker  # a replicator's own message, which is no duplicate
        self.txn = txn

    @property
    def position(self) -> Position:
        return Position(self.ledger_id, self.entry_id)

    @position.setter
    def position(self, position: Position) -> None:
        self.ledger_id, self.entry_id = position


class Publication(Protocol):
    """The receiver of commit results. Each call reports a run of the publication's own entries, in order."""

    def persisted(self, entries: Sequence[PendingPublish]) -> None: ...

    def failed(self, entries: Sequence[PendingPublish], error: Exception) -> None: ...

    def forgotten(self, entries: Sequence[PendingPublish]) -> None:
        """Report entries that are committed while their topic is being deleted: their producer gets no answer."""
        ...


class Unwatched:
    """A publication that ignores the results. The writer of the entry waits for the commit instead, or ignores it."""

    def persisted(self, entries: Sequence[PendingPublish]) -> None:
        """Ignore the commit."""

    def forgotten(self, entries: Sequence[PendingPublish]) -> None:
        """Ignore the commit."""

    def failed(self, entries: Sequence[PendingPublish], error: Exception) -> None:
        """Ignore the error, which the turn reports."""


class LedgerFencedError(Exception):
    """Raised when a commit has failed: the managed ledger takes no entries until its topic is loaded again."""


class LedgerTerminatedError(Exception):
    """Raised when the managed ledger was terminated, and never takes entries again."""


def path_of(name: str) -> str:
    """Return the metadata path of the managed ledger with this name."""
    return f"/managed-ledgers/{name}"


def kept_info(name: str, stores: Stores) -> ml.ManagedLedgerInfo | None:
    """Return the stored info of a managed ledger, or None. The store hands the info out once."""
    value = stores.recovered(path_of(name))
    return None if value is None else ml.ManagedLedgerInfo.FromString(unpack(value))


class LedgerListener:
    """Receive the events of a managed ledger. This base class ignores them."""

    def confirmed(self) -> None:
        """Note that new entries are visible, or that consumers may read further."""

    def rolled(self) -> None:
        """Note that a ledger was closed, and the next one opened."""

    def fenced(self) -> None:
        """Note that a commit failed: the managed ledger takes no entries until it is opened again."""

    def going(self, last: Position) -> None:
        """Note that the source of a shadow topic is about to delete its entries up to `last`."""


NOBODY = LedgerListener()


class ManagedLedger(LedgerSequence):
    """Append-only entries at positions. Entries become visible in order, after their commit."""

    def __init__(
        self, name: str, stores: Stores, kept: ml.ManagedLedgerInfo | None = None, listener: LedgerListener = NOBODY
    ) -> None:
        """Continue from `kept`, or else from the info in the store."""
        super().__init__(stores.cache, stores.storage)
        self.name = name
        self.created_ms = stores.clock.now_ms()
        self.stat = Stat(self.created_ms, self.created_ms, 0)  # Pulsar stores the info once without a ledger
        self.entries_added = 0  # since the topic was loaded
        self.fenced = False
        self.terminated: Position | None = None  # the last position of a terminated ledger
        self.is_ended = False  # the termination is committed, and so are all entries
        self.properties: dict[str, str] = {}
        self._stores = stores
        self._turn = stores.turn
        self.listener = listener
        self.shadows: list[ShadowLedger] = []  # the shadow ledgers that show these entries
        self._pending: list[PendingPublish] = []  # entries of this turn
        self._pending_turn = -1
        # entries of all turns without a commit result, in order
        self._unanswered: deque[list[PendingPublish]] = deque()
        self._undeleted: list[int] = []  # deleted ledgers that are still stored, because the commit failed
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

    # life cycle

    @property
    def path(self) -> str:
        return path_of(self.name)

    @property
    def owned(self) -> Iterable[Ledger]:
        """Return the ledgers that are stored, and deleted, with this managed ledger."""
        return self.ledgers.values()

    def _recover(self, info: ml.ManagedLedgerInfo) -> None:
        if info.HasField("terminatedPosition"):
            self.terminated = Position(info.terminatedPosition.ledgerId, info.terminatedPosition.entryId)
            self.is_ended = True
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
            self._current.closed = False  # the last ledger stays, so that `terminated` is a position in a known ledger
        else:
            self._open_ledger()

    def reopen(self) -> None:
        """Open the next ledger after the topic was unloaded, as after a change of owner."""
        self.entries_added = 0
        fenced, self.fenced = self.fenced, False
        if self._undeleted:
            undeleted, self._undeleted = self._undeleted, []
            self._delete_ledgers(undeleted)
        if self.terminated is None and (self._current.count or fenced):
            self._close_ledger()
            if fenced:  # failed commits may have left ledgers without entries, and without a stored name
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
        """Persist point: the list of ledgers. Without the info, the entries of a new ledger would be lost."""
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
        """Store properties with the managed ledger. None removes a property."""
        for key, value in changes.items():
            self.properties.pop(key, None)
            if value is not None:
                self.properties[key] = value
        self._store_info()

    def terminate(self) -> Position:
        """Take no more entries, and return the last position, whose entry may be uncommitted."""
        if self.terminated is None:
            self.terminated = Position(self._current.id, self._current.count - 1)
            self._turn.after_commit(self._terminated)
            self._store_info()
        return self.terminated

    def _terminated(self, error: Exception | None) -> None:
        self.is_ended = error is None
        if error is not None:
            self.terminated = None

    def delete(self) -> None:
        """Delete all entries from the store, and take no more.

        Call `forget` after the commit, or `reopen` if it failed.
        """
        for ledger_id in (*(ledger.id for ledger in self.owned), *self._undeleted):
            self._turn.delete_ledger(ledger_id)
        self._turn.store(self.path, None)
        self.fenced = True

    def forget(self) -> None:
        """Release the ledgers of a deleted managed ledger, and detach its shadows."""
        for shadow in list(self.shadows):
            shadow.leave()
        for ledger in self.owned:
            ledger.drop()

    # appending

    def append_run(self, run: Sequence[PendingPublish]) -> None:
        """Append entries, and set their positions. The `publication` of each receives the result of the commit.

        Raise `LedgerFencedError` after a failed commit, and `LedgerTerminatedError` when the ledger is terminated.
        """
        if self.fenced:
            raise LedgerFencedError(self.name)
        if self.terminated is not None:
            raise LedgerTerminatedError(self.name)
        turn = self._turn
        if self._pending_turn != turn.number:
            self._pending_turn = turn.number
            self._pending = []
            self._unanswered.append(self._pending)
            turn.after_publishing(self._committed)
            self._roll_over_when_due()
        ledger = self._current
        ledger_id, entries = ledger.id, [pending.entry for pending in run]
        first = ledger.extend(entries)
        if self._storage.keeps_entries:
            turn.store_entries(ledger_id, first, entries)
        for entry_id, pending in enumerate(run, first):
            pending.entry = b""
            pending.ledger_id, pending.entry_id = ledger_id, entry_id
        self._pending += run

    def _roll_over_when_due(self) -> None:
        """Open the next ledger when the current one is full or old, but not while the ledger is young."""
        ledger = self._current
        age = self._stores.clock.now_ms() - ledger.created_ms
        full = ledger.count >= self._max_entries or ledger.size >= self._max_bytes
        if (full and age >= self._min_rollover_ms) or (ledger.count and age >= self._max_rollover_ms):
            self._roll_over()

    def roll_over_when_old(self) -> None:
        """Open the next ledger when the current one is old, even without an append.

        The age is managedLedgerMaxLedgerRolloverTimeMinutes.
        """
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
        """Process the commit result of the oldest waiting entries."""
        if error is not None:
            self._fail(error)
            return
        pending = self._unanswered.popleft()
        for publication, entries in _by_publication(pending):
            if self.fenced:  # the topic is being deleted
                publication.forgotten(entries)
            else:
                publication.persisted(entries)
        last = pending[-1].position
        if last.ledger_id != self.last_confirmed.ledger_id:
            for ledger in self._between(self.last_confirmed.ledger_id, last.ledger_id):
                ledger.confirmed = ledger.count
        self.ledgers[last.ledger_id].confirmed = last.entry_id + 1
        self.last_confirmed = last
        self.entries_added += len(pending)
        if self.fenced:
            return
        self.listener.confirmed()
        if self.terminated is None:
            self._roll_over_when_due()

    def _between(self, first_id: int, last_id: int) -> Iterator[Ledger]:
        for ledger_id, ledger in self.ledgers.items():
            if first_id <= ledger_id < last_id:
                yield ledger

    def _fail(self, error: Exception) -> None:
        """Fence the ledger after a failed commit, and fail all waiting entries.

        The store reports one failure for each lost commit. Only the first failure fences.
        """
        fenced, self.fenced = self.fenced, True  # also while the topic is being deleted
        for ledger in self.ledgers.values():
            ledger.drop_unconfirmed()
        unanswered = list(chain.from_iterable(self._unanswered))
        self._unanswered.clear()
        for publication, entries in _by_publication(unanswered):
            publication.failed(entries, error)
        if not fenced:
            # after all waiting publications have their answer
            self._turn.after_commit(lambda error: self._tell_fenced())

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
        """Delete the ledgers that all durable cursors have consumed, as far as retention allows.

        `slowest` is the lowest mark-delete position, or None without durable cursors. `going` receives the last deleted
        position before its deletion.
        """
        if not self.fenced:
            gone = not_retained(consumed(self.ledgers, slowest), self.size, retention, self._stores.clock.now_ms())
            self.truncate(gone, going)

    def truncate(self, gone: Sequence[Ledger], going: Callable[[Position], None]) -> None:
        """Delete these ledgers. `going` receives the last deleted position before its deletion."""
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


def _by_publication(pending: Iterable[PendingPublish]) -> Iterator[tuple[Publication, list[PendingPublish]]]:
    """Yield runs of entries with the same publication."""
    for publication, entries in groupby(pending, key=attrgetter("publication")):
        yield publication, list(entries)


NOWHERE = -1  # the ledger id of a shadow without a source


class ShadowLedger(ManagedLedger):
    """Show the entries of another managed ledger up to the last one that this ledger knows. Store only properties."""

    def __init__(
        self, name: str, stores: Stores, kept: ml.ManagedLedgerInfo | None = None, listener: LedgerListener = NOBODY
    ) -> None:
        self.source: ManagedLedger | None = None
        # the name in the shadow policy of the source
        self.listed_as = str(TopicName.from_managed_ledger(name).partitioned_name)
        super().__init__(name, stores, kept, listener)

    @property
    def owned(self) -> Iterable[Ledger]:
        return ()

    def _open_ledger(self) -> None:
        self._hide()
        self._store_info()

    def _hide(self) -> None:
        """Show no entries."""
        self._current = Ledger(NOWHERE, self._cache, self._stores.clock.now_ms())
        self.ledgers = {NOWHERE: self._current}
        self.last_confirmed = Position(NOWHERE, -1)

    # the source

    def show(self, source: ManagedLedger) -> None:
        """Show the current entries of `source`, and follow its new ones."""
        self.leave()
        self.source = source
        self.transactions = source.transactions
        source.shadows.append(self)
        self.ledgers = {}
        self.follow()

    def follow(self) -> None:
        """Show all entries that the source has now."""
        assert self.source is not None
        before = self.last_confirmed
        for ledger in self.source.ledgers.values():
            if ledger.id >= before.ledger_id:
                self._current = self.ledgers[ledger.id] = ledger.view()
        self.last_confirmed = self.source.last_confirmed
        self.entries_added += self.count_after(before)
        self.listener.confirmed()

    def let_go(self, last: Position) -> None:
        """Hide the entries up to `last`, because the source deletes them."""
        if last >= self.last_confirmed:
            self.follow()
        self.listener.going(last)
        self.ledgers = {ledger.id: ledger for ledger in self.ledgers.values() if ledger.id > last.ledger_id}

    def leave(self) -> None:
        """Stop following the source, and show no entries."""
        if self.source is not None:
            self.source.shadows.remove(self)
            self.source = None
        self._hide()

    # only the source does this

    def reopen(self) -> None:
        self.entries_added = 0
        if self.fenced:
            self.fenced = False
            self._store_info()

    def roll_over_when_old(self) -> None:
        """Do nothing: the source rolls over."""

    def trim(
        self,
        slowest: Position | None,
        retention: Retention = NO_RETENTION,
        going: Callable[[Position], None] = lambda last: None,
    ) -> None:
        """Do nothing: the source trims, and its own subscriptions decide."""

    def truncate(self, gone: Sequence[Ledger], going: Callable[[Position], None]) -> None:
        """Do nothing: the source truncates."""

    def forget(self) -> None:
        self.leave()
        super().forget()
