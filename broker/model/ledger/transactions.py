"""Which entries of a topic belong to transactions that are open, or were aborted."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.proto.entry import txn_bits_of
from pulsarium.proto.errors import EntryError
from pulsarium.proto.message_id import TxnId


class Aborted(NamedTuple):
    """Where the entries begin that nobody gets to see, and the last one of them, or the marker."""

    first: Position
    last: Position


@dataclass(slots=True)
class TransactionEntries:
    """Told of each entry of a transaction in the order in which they stand in the topic.

    What a producer sends in a transaction that was committed already is another one of that name, as on a real broker:
    it is held until the low watermark passes, and then aborted. What was committed before stays.
    """

    ongoing: OrderedDict[TxnId, Position] = field(default_factory=OrderedDict)  # first entries, lowest first
    aborted: dict[TxnId, Aborted] = field(default_factory=dict)
    held_at: Position | None = None  # the first entry of all that are open: from there on nothing may be read
    hidden_through: Position = EARLIEST  # behind it nothing was aborted: nobody need look

    def copy(self) -> TransactionEntries:
        return TransactionEntries(self.ongoing.copy(), self.aborted.copy(), self.held_at, self.hidden_through)

    def published(self, txn: TxnId, position: Position) -> bool:
        """An entry of a transaction; whether that is more than another one of an open transaction."""
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
        """The marker of a transaction, or the last entry of a topic that takes no marker any more."""
        first = self.ongoing.pop(txn, None)
        self.held_at = next(iter(self.ongoing.values()), None)
        if not commit:
            aborted = self.aborted.get(txn)
            self.hide(txn, aborted.first if aborted is not None else first or position, position)

    def hide(self, txn: TxnId, first: Position, last: Position) -> None:
        """Entries of an aborted transaction are not to be seen."""
        self.aborted[txn] = Aborted(first, last)
        self.hidden_through = max(self.hidden_through, last)

    def is_aborted(self, txn: TxnId, position: Position) -> bool:
        aborted = self.aborted.get(txn)
        return aborted is not None and position >= aborted.first

    def hides(self, position: Position, entry: bytes) -> bool:
        """Whether nobody gets to see an entry: its transaction was aborted."""
        if position > self.hidden_through:
            return False
        txn = transaction_of(entry)
        return txn is not None and self.is_aborted(txn, position)


def transaction_of(entry: bytes) -> TxnId | None:
    """The transaction that an entry was sent in, or ends; None for any other, and where nobody can tell."""
    try:
        bits = txn_bits_of(entry)
    except EntryError:
        return None
    return TxnId(*bits) if bits is not None else None
