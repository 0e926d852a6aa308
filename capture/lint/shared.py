"""What the connections of one capture have in common: a client may go on on one where it began on another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyroaring import BitMap64

from pulsarium.capture.lint.members import Bounded, Position
from pulsarium.proto.entry import is_plain, visible_metadata
from pulsarium.proto.message_id import bits_of

_MOST_SUBSCRIPTIONS = 10_000
_MOST_BATCHES = 20_000
"""Of one subscription, not acknowledged yet."""
_MOST_MESSAGES = 100_000
"""Of one batch; ack sets of what claims more are not looked at."""
_UNKNOWN = -1

Transaction = tuple[int, int]
"""Most and least bits."""


class Positions:
    """A set of positions. last: the greatest there ever was, (-1, -1) before there is one."""

    def __init__(self) -> None:
        self._ledgers: dict[int, BitMap64] = {}
        self.last: Position = (-1, -1)

    def __contains__(self, position: Position) -> bool:
        return position[1] % 2**64 in self._ledgers.get(position[0], ())

    def add(self, position: Position) -> None:
        self._ledgers.setdefault(position[0], BitMap64()).add(position[1] % 2**64)
        self.last = max(self.last, position)

    def discard(self, position: Position) -> None:
        entries = self._ledgers.get(position[0])
        if entries is not None:
            entries.discard(position[1] % 2**64)
            if not entries:
                del self._ledgers[position[0]]


class Subscription:
    """Which entries the consumers of one were sent, and which of them they have acknowledged."""

    def __init__(self) -> None:
        self.sent = Positions()
        self.again = Positions()
        """Sent more than once: which delivery an acknowledgement is for, nobody can tell."""
        self.acked = Positions()
        self._sizes: Bounded[Position, int] = Bounded(_MOST_BATCHES)
        self._cleared: Bounded[Position, int] = Bounded(_MOST_BATCHES)
        self._through: Position = (-1, -1)  # a cumulative acknowledgement

    def deliver(self, position: Position, entry: bytes, *, whole: bool = True) -> None:
        """`whole`: whether all of the entry was captured."""
        if position in self.sent:
            self.again.add(position)
            self.acked.discard(position)
        self.sent.add(position)
        if whole and is_plain(entry):
            return
        metadata = visible_metadata(entry)
        if metadata is None:
            self._sizes[position] = _UNKNOWN  # nobody knows
        elif metadata.HasField("num_messages_in_batch"):
            count = metadata.num_messages_in_batch
            self._sizes[position] = count if 0 < count <= _MOST_MESSAGES else _UNKNOWN

    def acknowledge(self, position: Position, ack_set: Iterable[int]) -> None:
        """An individual one."""
        words = list(ack_set)
        size = self.batch_size(position)
        if words:
            if not size:
                return  # of how many messages, nobody knows
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
        """A cumulative one."""
        self._through = max(self._through, position)
        for some in (self._sizes, self._cleared):
            while (first := some.first()) is not None and first < position:
                some.pop(first)

    def cleared(self, position: Position) -> int:
        """The messages of a batch that ack sets have acknowledged so far, as bits."""
        return self._cleared.get(position) or 0

    def batch_size(self, position: Position) -> int | None:
        """Messages of the batch there; 0: it is none. None: not known."""
        size = self._sizes.get(position)
        if size == _UNKNOWN:
            return None
        known = self._sizes.whole and position in self.sent and position not in self.acked and position > self._through
        return 0 if size is None and known else size


class Transactions:
    """Those that brokers have given out."""

    def __init__(self) -> None:
        self._given: dict[int, BitMap64] = {}
        self._ended: dict[int, BitMap64] = {}

    def give(self, transaction: Transaction) -> None:
        self._given.setdefault(transaction[0], BitMap64()).add(transaction[1])

    def end(self, transaction: Transaction) -> None:
        self._ended.setdefault(transaction[0], BitMap64()).add(transaction[1])

    def wrong_with(self, transaction: Transaction) -> str:
        """Why nothing can be done in it; empty if something can."""
        if transaction[1] in self._ended.get(transaction[0], ()):
            return "was ended"
        return "" if transaction[1] in self._given.get(transaction[0], ()) else "was never given out"


class Shared:
    """whole: whether all connections were captured from their opening on. One that was not has subscriptions and
    transactions that nobody saw it make."""

    def __init__(self, *, whole: bool = True) -> None:
        self.whole = whole
        self.transactions = Transactions()
        self._subscriptions: Bounded[tuple[str, str], Subscription] = Bounded(_MOST_SUBSCRIPTIONS)

    def of(self, topic: str, subscription: str) -> Subscription:
        key = (topic, subscription)
        found = self._subscriptions.get(key)
        if found is None:
            found = self._subscriptions[key] = Subscription()
            self.whole = self.whole and self._subscriptions.whole  # what was forgotten may be asked for again
        return found


def full(size: int) -> int:
    """The bits of all messages of a batch."""
    return (1 << size) - 1


def position_of(message_id: Any) -> Position:
    """Of a MessageIdData; entry -1 is the place before a ledger's first."""
    return (signed(message_id.ledgerId), signed(message_id.entryId))


def signed(number: int) -> int:
    """As Java reads it."""
    return number - 2**64 if number >= 2**63 else number


def transaction_of(body: Any) -> Transaction | None:
    """That a command names; None if it names none."""
    if not (body.HasField("txnid_most_bits") and body.HasField("txnid_least_bits")):
        return None
    return (body.txnid_most_bits, body.txnid_least_bits)
