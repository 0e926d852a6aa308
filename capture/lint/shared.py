"""State that the connections of one capture share, because a client may continue on another connection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyroaring import BitMap64

from pulsarium.capture.lint.members import Bounded, Position
from pulsarium.capture.lint.scalable import Scalable
from pulsarium.proto.entry import is_plain, visible_metadata
from pulsarium.proto.message_id import bits_of
from pulsarium.proto.numbers import signed, unsigned

_MOST_SUBSCRIPTIONS = 10_000
_MOST_BATCHES = 20_000
"""Most batches of a subscription that are not acknowledged."""
_MOST_MESSAGES = 100_000
"""Most messages of a batch. Ack sets of larger batches are ignored."""
_UNKNOWN = -1

Transaction = tuple[int, int]
"""Most and least significant bits."""


class Positions:
    """A set of positions. `last` is the greatest position that was ever added, or (-1, -1)."""

    def __init__(self) -> None:
        self._ledgers: dict[int, BitMap64] = {}
        self.last: Position = (-1, -1)

    def __contains__(self, position: Position) -> bool:
        return unsigned(position[1]) in self._ledgers.get(position[0], ())

    def add(self, position: Position) -> None:
        self._ledgers.setdefault(position[0], BitMap64()).add(unsigned(position[1]))
        self.last = max(self.last, position)

    def discard(self, position: Position) -> None:
        entries = self._ledgers.get(position[0])
        if entries is not None:
            entries.discard(unsigned(position[1]))
            if not entries:
                del self._ledgers[position[0]]


class Subscription:
    """Entries that were delivered to a subscription's consumers, and the acknowledged ones."""

    def __init__(self) -> None:
        self.sent = Positions()
        self.again = Positions()
        """Entries that were delivered more than once, so that an acknowledgement may be for any delivery."""
        self.acked = Positions()
        self._sizes: Bounded[Position, int] = Bounded(_MOST_BATCHES)
        self._cleared: Bounded[Position, int] = Bounded(_MOST_BATCHES)
        self._through: Position = (-1, -1)  # of cumulative acknowledgements

    def deliver(self, position: Position, entry: bytes, *, whole: bool = True) -> None:
        """Add a delivered entry. `whole` says whether all of it was captured."""
        if position in self.sent:
            self.again.add(position)
            self.acked.discard(position)
        self.sent.add(position)
        if whole and is_plain(entry):
            return
        metadata = visible_metadata(entry)
        if metadata is None:
            self._sizes[position] = _UNKNOWN  # the number of messages is unknown
        elif metadata.HasField("num_messages_in_batch"):
            count = metadata.num_messages_in_batch
            self._sizes[position] = count if 0 < count <= _MOST_MESSAGES else _UNKNOWN

    def acknowledge(self, position: Position, ack_set: Iterable[int]) -> None:
        """Add an individual acknowledgement."""
        words = list(ack_set)
        size = self.batch_size(position)
        if words:
            if not size:
                return  # the number of messages is unknown
            cleared = self.cleared(position) | (full(size) & ~bits_of(words))
            self._cleared[position] = cleared
            if cleared != full(size):
                return
        else:
            self._sizes.pop(position)
            self._cleared.pop(position)
        if position in self.sent:
            self.acked.add(position)

    def acknowledge_through(self, position: Position) -> None:
        """Add a cumulative acknowledgement."""
        self._through = max(self._through, position)
        for some in (self._sizes, self._cleared):
            while (first := some.first()) is not None and first < position:
                some.pop(first)

    def cleared(self, position: Position) -> int:
        """Return the messages of a batch that ack sets have acknowledged, as bits."""
        return self._cleared.get(position) or 0

    def batch_size(self, position: Position) -> int | None:
        """Return the number of messages of a batch, 0 for an entry that is not a batch, or None when unknown."""
        size = self._sizes.get(position)
        if size == _UNKNOWN:
            return None
        known = self._sizes.whole and position in self.sent and position not in self.acked and position > self._through
        return 0 if size is None and known else size


class Transactions:
    """Transactions of brokers, open and ended."""

    def __init__(self) -> None:
        self._given: dict[int, BitMap64] = {}
        self._ended: dict[int, BitMap64] = {}

    def give(self, transaction: Transaction) -> None:
        self._given.setdefault(transaction[0], BitMap64()).add(transaction[1])

    def end(self, transaction: Transaction) -> None:
        self._ended.setdefault(transaction[0], BitMap64()).add(transaction[1])

    def wrong_with(self, transaction: Transaction) -> str:
        """Return why a transaction cannot be used, or ""."""
        if transaction[1] in self._ended.get(transaction[0], ()):
            return "was ended"
        return "" if transaction[1] in self._given.get(transaction[0], ()) else "was never opened"


class Shared:
    """State of all connections.

    `whole` says whether all connections were captured from their opening on. Other connections may have subscriptions
    and transactions that the capture does not show.
    """

    def __init__(self, *, whole: bool = True) -> None:
        self.whole = whole
        self.transactions = Transactions()
        self.scalable = Scalable()
        self._subscriptions: Bounded[tuple[str, str], Subscription] = Bounded(_MOST_SUBSCRIPTIONS)

    def of(self, topic: str, subscription: str) -> Subscription:
        key = (topic, subscription)
        found = self._subscriptions.get(key)
        if found is None:
            found = self._subscriptions[key] = Subscription()
            self.whole = self.whole and self._subscriptions.whole  # a forgotten subscription may be needed again
        return found


def full(size: int) -> int:
    """Return the bits of all messages of a batch."""
    return (1 << size) - 1


def position_of(message_id: Any) -> Position:
    """Return the position of a MessageIdData. Entry -1 is the position before a ledger's first entry."""
    return (signed(message_id.ledgerId), signed(message_id.entryId))


def transaction_of(body: Any) -> Transaction | None:
    """Return the transaction that a command names, or None."""
    if not (body.HasField("txnid_most_bits") and body.HasField("txnid_least_bits")):
        return None
    return (body.txnid_most_bits, body.txnid_least_bits)
