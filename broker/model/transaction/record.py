"""Store the open and aborted transactions of a topic, each as one piece of metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger, PendingPublish, Publication
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.ledger.transactions import TransactionEntries
from pulsarium.proto.message_id import TxnId

# the time in milliseconds of the topic's first entry of any transaction, stored beside the transactions
SNAPSHOT = "snapshot"


class BufferRecord:
    """The stored transactions of a topic. They stay with the topic's log during an unload.

    A change is stored in the same commit as the entry that caused it. Readers use `ManagedLedger.transactions`, which
    learns of an entry after that commit.
    """

    def __init__(self, ledger: ManagedLedger, stores: Stores) -> None:
        self.snapshot_ms = 0
        self._ledger = ledger
        self._stores = stores
        self._confirmed = ledger.transactions
        self._recover()
        self._noted: TransactionEntries | None = None  # with all uncommitted changes; None: as confirmed

    @property
    def _folder(self) -> str:
        return f"/transactions/buffers/{self._ledger.name}"

    def _recover(self) -> None:
        kept = dict(self._stores.recovered_under(self._folder))
        self.snapshot_ms = int(kept.pop(SNAPSHOT, b"0"))
        for txn, positions in sorted(((_txn(name), _positions(value)) for name, value in kept.items()), key=_by_place):
            if len(positions) == 1:  # open, even when the first entry is trimmed: later ones may follow
                self._confirmed.published(txn, positions[0])
            elif positions[-1].ledger_id not in self._ledger.ledgers:  # trimmed
                self._stores.turn.store(self._path(_name(txn)), None)
            else:
                self._confirmed.hide(txn, *positions)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    # appended entries

    @property
    def noted(self) -> TransactionEntries:
        """Return the transactions as they will be when all commits succeed."""
        if self._noted is None:
            self._noted = self._confirmed.copy()
        return self._noted

    @property
    def is_used(self) -> bool:
        """Return whether the topic ever had an entry of a transaction."""
        return bool(self.snapshot_ms or self.noted.ongoing)

    def published(self, txn: TxnId, position: Position) -> None:
        """Note an entry. Persist point: the first entry of the transaction."""
        if self.noted.published(txn, position):
            self._store(txn)
        if not self.snapshot_ms:
            self._stores.turn.store(self._path(SNAPSHOT), str(self._stores.clock.now_ms()).encode())

    def ended(self, txn: TxnId, position: Position, *, commit: bool) -> None:
        """Note an end. Persist point: the end of the transaction."""
        self.noted.ended(txn, position, commit=commit)
        self._store(txn)

    def _store(self, txn: TxnId) -> None:
        noted = self.noted
        positions: Sequence[Position] = (noted.ongoing[txn],) if txn in noted.ongoing else noted.aborted.get(txn, ())
        self._stores.turn.store(self._path(_name(txn)), " ".join(map(str, positions)).encode() or None)

    # confirmed entries

    def confirm_published(self, txn: TxnId, positions: Iterable[Position]) -> None:
        if not self.snapshot_ms:
            self.snapshot_ms = self._stores.clock.now_ms()
        for position in positions:
            self._confirmed.published(txn, position)

    def confirm_ended(self, txn: TxnId, position: Position, *, commit: bool) -> None:
        self._confirmed.ended(txn, position, commit=commit)

    def take_back(self) -> None:
        """Drop all uncommitted changes after a failed commit."""
        self._noted = None

    # deletion

    def trimmed(self, last: Position) -> None:
        """Forget the aborted transactions whose entries are all deleted, up to `last`."""
        for txn in [txn for txn, aborted in self.noted.aborted.items() if aborted.last <= last]:
            del self.noted.aborted[txn]
            self._confirmed.aborted.pop(txn, None)
            self._store(txn)

    def delete(self) -> None:
        """Delete the stored transactions of a deleted topic."""
        for name in [SNAPSHOT, *map(_name, (*self.noted.ongoing, *self.noted.aborted))]:
            self._stores.turn.store(self._path(name), None)


class PublishedEntries:
    """The publication of entries of one transaction: report to the record, and then to the producer."""

    __slots__ = ("_record", "publication", "txn")

    def __init__(self, record: BufferRecord, txn: TxnId, publication: Publication) -> None:
        self._record = record
        self.txn = txn
        self.publication = publication

    def persisted(self, entries: Sequence[PendingPublish]) -> None:
        self._record.confirm_published(self.txn, (entry.position for entry in entries))
        self.publication.persisted(entries)

    def failed(self, entries: Sequence[PendingPublish], error: Exception) -> None:
        self._record.take_back()
        self.publication.failed(entries, error)

    def forgotten(self, entries: Sequence[PendingPublish]) -> None:
        self._record.confirm_published(self.txn, (entry.position for entry in entries))
        self.publication.forgotten(entries)


def _name(txn: TxnId) -> str:
    return f"{txn.most}:{txn.least}"


def _txn(name: str) -> TxnId:
    return TxnId(*map(int, name.split(":")))


def _positions(value: bytes) -> list[Position]:
    """Return the first position of an open transaction, or the first and last positions of an aborted one."""
    return [Position(*map(int, each.split(":"))) for each in value.decode().split()]


def _by_place(kept: tuple[TxnId, list[Position]]) -> Position:
    return kept[1][0]
