"""Track the entries of a topic that belong to open or aborted transactions."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.proto.entry import txn_bits_of
from pulsarium.proto.errors import EntryError
from pulsarium.proto.message_id import TxnId


class Aborted(NamedTuple):
    """The first entry of an aborted transaction, and its last entry or marker."""

    first: Position
    last: Position


@dataclass(slots=True)
class TransactionEntries:
    """The open and aborted transactions of a topic. Each entry is reported in the order of the topic.

    A producer may send in a transaction that is committed already. As in a real broker, these entries belong to a new
    transaction of the same id, which is aborted once the low watermark passes. Committed entries stay.
    """

    # first entry of each open transaction, lowest first
    ongoing: OrderedDict[TxnId, Position] = field(default_factory=OrderedDict)
    aborted: dict[TxnId, Aborted] = field(default_factory=dict)
    held_at: Position | None = None  # first entry of all open transactions: consumers read only before it
    hidden_through: Position = EARLIEST  # no entry behind this position is aborted, so that checks end early

    def copy(self) -> TransactionEntries:
        return TransactionEntries(self.ongoing.copy(), self.aborted.copy(), self.held_at, self.hidden_through)

    def published(self, txn: TxnId, position: Position) -> bool:
        """Note an entry of a transaction. Return False for a further entry of an open transaction."""
        if txn in self.ongoing:
            return False
        aborted = self.aborted.get(txn)
        if aborted is not None:
            self.hide(txn, aborted.first, position)
            return True
        self.ongoing[txn] = position
        if self.held_at is None:
            self.held_at = position
        return True

    def ended(self, txn: TxnId, position: Position, *, commit: bool) -> None:
        """Note the end of a transaction: its marker, or the last entry of a terminated topic, which takes no marker."""
        first = self.ongoing.pop(txn, None)
        self.held_at = next(iter(self.ongoing.values()), None)
        if not commit:
            aborted = self.aborted.get(txn)
            self.hide(txn, aborted.first if aborted is not None else first or position, position)

    def hide(self, txn: TxnId, first: Position, last: Position) -> None:
        """Hide the entries of an aborted transaction."""
        self.aborted[txn] = Aborted(first, last)
        self.hidden_through = max(self.hidden_through, last)

    def is_aborted(self, txn: TxnId, position: Position) -> bool:
        aborted = self.aborted.get(txn)
        return aborted is not None and position >= aborted.first

    def hides(self, position: Position, entry: bytes) -> bool:
        """Return whether an entry is hidden because its transaction was aborted."""
        if position > self.hidden_through:
            return False
        txn = transaction_of(entry)
        return txn is not None and self.is_aborted(txn, position)


def transaction_of(entry: bytes) -> TxnId | None:
    """Return the transaction of an entry or marker, or None when it has none, or cannot be parsed."""
    try:
        bits = txn_bits_of(entry)
    except EntryError:
        return None
    return TxnId(*bits) if bits is not None else None
