"""What is kept of a topic's transactions: the open ones and the aborted ones, each in a piece of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pulsarium.broker.model.ledger.managed_ledger import Pending, Publication
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.transactions import TransactionEntries
from pulsarium.proto.message_id import TxnId

if TYPE_CHECKING:
    from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
    from pulsarium.broker.model.ledger.stores import Stores

SNAPSHOT = "snapshot"  # beside the transactions: when the topic got the first entry of any, ms


class BufferRecord:
    """Stays with the topic's log while the topic is unloaded.

    What is noted goes to the store with the entry that changed it, in one commit. Readers follow
    `ManagedLedger.transactions`, which hears of an entry when that commit came back.
    """

    def __init__(self, ledger: ManagedLedger, stores: Stores) -> None:
        self.snapshot_ms = 0
        self._ledger = ledger
        self._stores = stores
        self._confirmed = ledger.transactions
        self._recover()
        self._noted: TransactionEntries | None = None  # of all that is on its way; None: as confirmed

    @property
    def _folder(self) -> str:
        return f"/transactions/buffers/{self._ledger.name}"

    def _recover(self) -> None:
        kept = dict(self._stores.recovered_under(self._folder))
        self.snapshot_ms = int(kept.pop(SNAPSHOT, b"0"))
        for txn, positions in sorted(((_txn(name), _positions(value)) for name, value in kept.items()), key=_by_place):
            if len(positions) == 1:  # open, also where that entry is trimmed: there may be others
                self._confirmed.published(txn, positions[0])
            elif positions[-1].ledger_id not in self._ledger.ledgers:  # trimmed
                self._stores.turn.store(self._path(_name(txn)), None)
            else:
                self._confirmed.hide(txn, *positions)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    # what was appended

    @property
    def noted(self) -> TransactionEntries:
        """As it will be once everything is committed that is on its way."""
        if self._noted is None:
            self._noted = self._confirmed.copy()
        return self._noted

    @property
    def is_used(self) -> bool:
        """Whether the topic ever got an entry of a transaction."""
        return bool(self.snapshot_ms or self.noted.ongoing)

    def published(self, txn: TxnId, position: Position) -> None:
        """Persist point: the transaction's first entry."""
        if self.noted.published(txn, position):
            self._store(txn)
        if not self.snapshot_ms:
            self._stores.turn.store(self._path(SNAPSHOT), str(self._stores.clock.now_ms()).encode())

    def ended(self, txn: TxnId, position: Position, *, commit: bool) -> None:
        """Persist point: its end."""
        self.noted.ended(txn, position, commit=commit)
        self._store(txn)

    def _store(self, txn: TxnId) -> None:
        noted = self.noted
        positions: Sequence[Position] = (noted.ongoing[txn],) if txn in noted.ongoing else noted.aborted.get(txn, ())
        self._stores.turn.store(self._path(_name(txn)), " ".join(map(str, positions)).encode() or None)

    # what is confirmed

    def confirm_published(self, txn: TxnId, positions: Iterable[Position]) -> None:
        if not self.snapshot_ms:
            self.snapshot_ms = self._stores.clock.now_ms()
        for position in positions:
            self._confirmed.published(txn, position)

    def confirm_ended(self, txn: TxnId, position: Position, *, commit: bool) -> None:
        self._confirmed.ended(txn, position, commit=commit)

    def take_back(self) -> None:
        """A commit failed, and with it all that was on its way."""
        self._noted = None

    # what goes

    def trimmed(self, last: Position) -> None:
        """Entries up to `last` are deleted: aborted ones among them need no memory."""
        for txn in [txn for txn, aborted in self.noted.aborted.items() if aborted.last <= last]:
            del self.noted.aborted[txn]
            self._confirmed.aborted.pop(txn, None)
            self._store(txn)

    def delete(self) -> None:
        """The topic is deleted."""
        for name in [SNAPSHOT, *map(_name, (*self.noted.ongoing, *self.noted.aborted))]:
            self._stores.turn.store(self._path(name), None)


class Sent:
    """Tells the record, and then the producer, what became of entries of one transaction."""

    __slots__ = ("_record", "publication", "txn")

    def __init__(self, record: BufferRecord, txn: TxnId, publication: Publication) -> None:
        self._record = record
        self.txn = txn
        self.publication = publication

    def persisted(self, entries: Sequence[Pending]) -> None:
        self._record.confirm_published(self.txn, (entry.position for entry in entries))
        self.publication.persisted(entries)

    def failed(self, entries: Sequence[Pending], error: Exception) -> None:
        self._record.take_back()
        self.publication.failed(entries, error)

    def forgotten(self, entries: Sequence[Pending]) -> None:
        self._record.confirm_published(self.txn, (entry.position for entry in entries))
        self.publication.forgotten(entries)


def _name(txn: TxnId) -> str:
    return f"{txn.most}:{txn.least}"


def _txn(name: str) -> TxnId:
    return TxnId(*map(int, name.split(":")))


def _positions(value: bytes) -> list[Position]:
    """One of an open transaction, two of an aborted one."""
    return [Position(*map(int, each.split(":"))) for each in value.decode().split()]


def _by_place(kept: tuple[TxnId, list[Position]]) -> Position:
    return kept[1][0]
