"""Store pending acknowledgements: one piece of metadata for each ACK, and one for a commit, which names its ACKs."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_
from typing import NamedTuple

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import TxnId, bits_of, words_of
from pulsarium.proto.numbers import signed, unsigned


class PendingEntry(NamedTuple):
    """An acknowledgement of a whole entry, or of a part of a batch.

    For a part, the set bits of `remaining` are the messages that stay unacknowledged.
    """

    position: Position
    remaining: int | None = None
    size: int = 0  # of the batch, from the client (batch_size, field 6), or 0
    words: int = 0  # length of the ack set that the client sent

    @classmethod
    def of(cls, message_id: pb.MessageIdData) -> PendingEntry:
        """Return the acknowledgement that a message id of an ACK describes."""
        position = Position(signed(message_id.ledgerId), signed(message_id.entryId))
        words = message_id.ack_set
        return cls(position, bits_of(words) if words else None, max(0, message_id.batch_size), len(words))

    @property
    def ack_set(self) -> Sequence[int]:
        """Return the ack set for a cursor. An empty one acknowledges the whole entry."""
        return () if self.remaining is None else words_of(self.remaining) or (0,)

    @property
    def text(self) -> str:
        """Return the position with its ack set, as Pulsar writes them."""
        what = "is null" if self.remaining is None else f"with long[] size of {self.words}"
        return f"{self.position} (ackSet {what})"

    def overlaps(self, others: int) -> bool:
        """Return whether a message of this acknowledgement is acknowledged already. `others` has the bits that remain.

        Bits beyond the size of the batch do not count. Without a size, the last bit that remains anywhere sets the
        size.
        """
        assert self.remaining is not None
        left = self.remaining | others
        size = self.size or left.bit_length()
        if left.bit_length() > size:
            left &= (1 << size) - 1
        return left == 0 or left.bit_count() < size

    def joined(self, other: PendingEntry) -> PendingEntry:
        """Return what this acknowledgement and another of the same entry acknowledge together."""
        if self.remaining is None or other.remaining is None:
            return self if self.remaining is None else other
        return other._replace(remaining=self.remaining & other.remaining)

    def is_beyond(self, other: PendingEntry) -> bool:
        """Return whether a cumulative acknowledgement goes further than `other`.

        Within a batch, the first remaining messages are compared.
        """
        if self.position != other.position:
            return self.position > other.position
        mine, others = self.first_left, other.first_left
        return mine < others if min(mine, others) < 0 else mine > others

    @property
    def first_left(self) -> int:
        """Return the index of the first remaining message, or -1 without one."""
        bits = self.remaining or 0
        return (bits & -bits).bit_length() - 1

    def fill(self, message_id: pb.MessageIdData) -> None:
        """Write the acknowledgement into a message id."""
        message_id.ledgerId, message_id.entryId = unsigned(self.position.ledger_id), unsigned(self.position.entry_id)
        message_id.ack_set.extend(self.ack_set)
        if self.size:
            message_id.batch_size = self.size


class Holders:
    """Acknowledgements by entry, each with the number of its piece. Each message of a batch may have its own."""

    def __init__(self) -> None:
        self._held: dict[Position, dict[int, PendingEntry]] = {}
        self._left: dict[Position, int] = {}  # results of `left_of`

    def of(self, position: Position) -> Mapping[int, PendingEntry]:
        """Return the acknowledgements of an entry."""
        return self._held.get(position, {})

    def left_of(self, position: Position) -> int | None:
        """Return the bits that no acknowledgement covers, or None when the entry has no acknowledgements.

        The bits are 0 after an acknowledgement of the whole entry.
        """
        held = self._held.get(position)
        if held is None:
            return None
        left = self._left.get(position)
        if left is None:
            left = self._left[position] = left_by(held.values())
        return left

    def add(self, number: int, acked: PendingEntry) -> None:
        """Add an acknowledgement of a piece. Merge it with an earlier one of the same piece and entry."""
        position = acked.position
        held = self._held.setdefault(position, {})
        before = held.get(number)
        if before is not None and acked.remaining is not None:
            acked = acked._replace(remaining=acked.remaining & (before.remaining or 0))
        held[number] = acked
        if position in self._left:
            self._left[position] &= acked.remaining or 0

    def remove(self, numbers: Container[int], position: Position) -> None:
        """Remove the acknowledgements of an entry by these pieces."""
        held = self._held.get(position)
        if held is None:
            return
        for number in [number for number in held if number in numbers]:
            del held[number]
            self._left.pop(position, None)
        if not held:
            del self._held[position]

    def forget(self, position: Position) -> None:
        """Forget the acknowledgements of an entry that was acknowledged without a transaction."""
        self._held.pop(position, None)
        self._left.pop(position, None)


def left_by(held: Iterable[PendingEntry]) -> int:
    """Return the bits that none of these acknowledgements covers."""
    return reduce(and_, (each.remaining or 0 for each in held))


USED = "used"  # a name beside the numbers of ACKs: the subscription has used transactions
COMMIT = "commit-"  # followed by the number of its first ACK: a committed transaction, whose value lists its ACKs


@dataclass(frozen=True, slots=True)
class PendingPiece:
    """An ACK in a transaction, or some of its ids when it has very many."""

    txn: TxnId
    acks: Sequence[PendingEntry]
    cumulative: bool = False

    def pack(self) -> bytes:
        ack_type = pb.CommandAck.Cumulative if self.cumulative else pb.CommandAck.Individual
        most, least = self.txn
        kept = pb.CommandAck(consumer_id=0, ack_type=ack_type, txnid_most_bits=most, txnid_least_bits=least)
        for each in self.acks:
            each.fill(kept.message_id.add())
        return kept.SerializeToString()

    @classmethod
    def unpack(cls, value: bytes) -> PendingPiece:
        kept = pb.CommandAck.FromString(value)
        acks = [PendingEntry.of(message_id) for message_id in kept.message_id]
        return cls(TxnId(kept.txnid_most_bits, kept.txnid_least_bits), acks, kept.ack_type == pb.CommandAck.Cumulative)


Pieces = dict[int, PendingPiece]


class PendingRecord:
    """The stored acknowledgements of one subscription. A subscription that is not durable stores nothing."""

    def __init__(self, path: str, stores: Stores, *, durable: bool) -> None:
        self.began_ms = 0  # time in milliseconds of the first use or recovery; 0 without transactions
        self.written = 0  # number of pieces so far
        self.path = path
        self._stores = stores
        self._keeps = durable and stores.storage.keeps_entries
        self._names: set[str] = set()  # names that may be stored
        self._applied: set[str] = set()  # names that the next save of the cursor deletes

    def begin_use(self) -> None:
        """Store that the subscription uses transactions."""
        if not self.began_ms:
            self.began_ms = self._stores.clock.now_ms()
            self._store(USED, b"")

    def number(self) -> int:
        """Return the number of the next piece."""
        number, self.written = self.written, self.written + 1
        return number

    def packed(self, piece: PendingPiece) -> bytes:
        """Return the stored form of a piece."""
        return piece.pack() if self._keeps else b""

    def add(self, number: int, packed: bytes) -> None:
        """Persist point: the ACK, or a piece of it."""
        self._store(str(number), packed)

    def commit(self, pieces: Pieces) -> None:
        """Persist point: the commit of the transaction with these pieces."""
        self._store(_commit_name(pieces), ",".join(map(str, pieces)).encode())

    def let_go(self, pieces: Pieces) -> None:
        """Persist point: the abort of the transaction with these pieces."""
        self._delete(tuple(map(str, pieces)))

    def applied(self, pieces: Pieces) -> None:
        """Note that the cursor has these committed acknowledgements, but is not saved yet."""
        if self._keeps:
            self._applied |= {*map(str, pieces), _commit_name(pieces)}

    def forget_applied(self) -> None:
        """Delete the applied pieces, in the same commit as the saved cursor."""
        if self._applied:
            applied, self._applied = self._applied, set()
            self._delete(applied)
            self._stores.turn.after_commit(partial(self._forgotten, applied))

    def _forgotten(self, applied: set[str], error: Exception | None) -> None:
        if error is not None:
            self._applied |= applied

    def delete(self) -> None:
        """Delete all pieces of a deleted subscription."""
        self._delete(tuple(self._names))

    def _delete(self, names: Collection[str]) -> None:
        if self._keeps:
            for name in names:
                self._store(name, None)
            self._stores.turn.after_commit(partial(self._deleted, names))

    def _deleted(self, names: Collection[str], error: Exception | None) -> None:
        if error is None:
            self._names.difference_update(names)

    def _store(self, name: str, value: bytes | None) -> None:
        if self._keeps:
            self._names.add(name)
            self._stores.turn.store(f"{self.path}/{name}", value)

    def recover(self) -> tuple[Pieces, list[list[int]]]:
        """Return the stored pieces, and the numbers of the pieces of each commit that was not applied."""
        kept = dict(self._stores.recovered_under(self.path))
        self._names = set(kept)
        if kept.pop(USED, None) is not None:
            self.began_ms = self._stores.clock.now_ms()
        commits = [kept.pop(name) for name in list(kept) if name.startswith(COMMIT)]
        pieces = {number: PendingPiece.unpack(kept[str(number)]) for number in sorted(map(int, kept))}
        self.written = max(pieces, default=-1) + 1
        return pieces, [list(map(int, numbers.split(b","))) for numbers in commits]


def _commit_name(pieces: Iterable[int]) -> str:
    return f"{COMMIT}{min(pieces)}"
