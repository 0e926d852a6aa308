"""What ACKs in transactions say of entries, and what of each entry nobody acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import NamedTuple

from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import bits_of, words_of


class Acked(NamedTuple):
    """All of an entry, or with `remaining` what it leaves of a batch: a bit for each message."""

    position: Position
    remaining: int | None = None
    size: int = 0  # of the batch, as the client says (batch_size, field 6); 0: it does not
    words: int = 0  # of the ack set as it came

    @classmethod
    def of(cls, message_id: pb.MessageIdData) -> Acked:
        """What a message id of an ACK says."""
        position = Position(signed(message_id.ledgerId), signed(message_id.entryId))
        words = message_id.ack_set
        return cls(position, bits_of(words) if words else None, max(0, message_id.batch_size), len(words))

    @property
    def ack_set(self) -> Sequence[int]:
        """As a cursor takes it; empty for all of the entry."""
        return () if self.remaining is None else words_of(self.remaining) or (0,)

    @property
    def text(self) -> str:
        """As Pulsar writes a position with its ack set."""
        what = "is null" if self.remaining is None else f"with long[] size of {self.words}"
        return f"{self.position} (ackSet {what})"

    def overlaps(self, others: int) -> bool:
        """Whether a message that this acknowledges is acknowledged by `others`, which leaves these bits.

        Bits from the size of the batch on say nothing. Without a size those up to the last one that anybody leaves do.
        """
        assert self.remaining is not None
        left = self.remaining | others
        size = self.size or left.bit_length()
        if left.bit_length() > size:
            left &= (1 << size) - 1
        return left == 0 or left.bit_count() < size

    def is_beyond(self, other: Acked) -> bool:
        """Whether a cumulative acknowledgement of this one goes further; within a batch the first message that is left
        tells."""
        if self.position != other.position:
            return self.position > other.position
        mine, others = self.first_left, other.first_left
        return mine < others if min(mine, others) < 0 else mine > others

    @property
    def first_left(self) -> int:
        """The index of the first message that is left; -1 when none is."""
        bits = self.remaining or 0
        return (bits & -bits).bit_length() - 1

    def fill(self, message_id: pb.MessageIdData) -> None:
        """Say it in a message id."""
        message_id.ledgerId, message_id.entryId = self.position.ledger_id % 2**64, self.position.entry_id % 2**64
        message_id.ack_set.extend(self.ack_set)
        if self.size:
            message_id.batch_size = self.size


class Holders:
    """Acknowledgements by entry, each under the number of its piece. A batch may have one for each of its messages."""

    def __init__(self) -> None:
        self._held: dict[Position, dict[int, Acked]] = {}
        self._left: dict[Position, int] = {}  # as `left_of`, of entries that it was asked for

    def of(self, position: Position) -> Mapping[int, Acked]:
        """Those of an entry."""
        return self._held.get(position, {})

    def left_of(self, position: Position) -> int | None:
        """The bits that none of them acknowledged, 0 where one did the whole entry; None where there is none."""
        held = self._held.get(position)
        if held is None:
            return None
        left = self._left.get(position)
        if left is None:
            left = self._left[position] = left_by(held.values())
        return left

    def add(self, number: int, acked: Acked) -> None:
        """A piece may name an entry twice."""
        position = acked.position
        held = self._held.setdefault(position, {})
        before = held.get(number)
        if before is not None and acked.remaining is not None:
            acked = acked._replace(remaining=acked.remaining & (before.remaining or 0))
        held[number] = acked
        if position in self._left:
            self._left[position] &= acked.remaining or 0

    def remove(self, number: int, position: Position) -> None:
        """A piece holds this no longer."""
        held = self._held.get(position)
        if held is not None and held.pop(number, None) is not None:
            self._left.pop(position, None)
            if not held:
                del self._held[position]

    def forget(self, position: Position) -> None:
        """The entry was acknowledged without a transaction."""
        self._held.pop(position, None)
        self._left.pop(position, None)


def left_by(held: Iterable[Acked]) -> int:
    """The bits that none of these acknowledged."""
    return reduce(and_, (each.remaining or 0 for each in held))
