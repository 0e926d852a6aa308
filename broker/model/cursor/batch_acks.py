"""Batches of which only some messages are acknowledged (PIP-54)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.proto.message_id import bits_of, words_of


class BatchAcks:
    """The remaining messages of each partly acknowledged batch."""

    def __init__(self) -> None:
        self._remaining: dict[Position, int] = {}
        self._order = PositionSet()  # the same positions, in order
        self.encoded: dict[Position, bytes] = {}  # what a record says of them; whoever writes one fills it

    def __len__(self) -> int:
        return len(self._remaining)

    def merge(self, position: Position, words: Sequence[int]) -> bool:
        """Intersect with what a client says remains; True when nothing does: the whole entry is acknowledged."""
        bits = bits_of(words)
        if position in self._remaining:
            bits &= self._remaining[position]
        if bits == 0:
            self.forget(position)
            return True
        self._remaining[position] = bits
        self._order.add(position)
        self.encoded.pop(position, None)
        return False

    def bits(self, position: Position) -> int | None:
        """The messages of a partly acknowledged batch that remain; None of any other entry."""
        return self._remaining.get(position)

    def words(self, position: Position) -> list[int]:
        """The ack set of an entry for MESSAGE; [] when all of it remains."""
        bits = self._remaining.get(position)
        return words_of(bits) if bits else []

    def remaining(self, position: Position) -> int:
        """How many messages of a partly acknowledged batch are left."""
        return self._remaining.get(position, 0).bit_count()

    def forget(self, position: Position) -> None:
        """The whole entry was acknowledged."""
        if self._remaining.pop(position, None) is not None:
            self._order.discard(position)
            self.encoded.pop(position, None)

    def forget_through(self, position: Position) -> None:
        """Everything up to `position` was acknowledged."""
        for known in self._order:
            if known > position:
                break
            del self._remaining[known]
            self.encoded.pop(known, None)
        self._order.remove_through(position)

    def __iter__(self) -> Iterator[Position]:
        """The positions, in order."""
        return iter(self._order)

    def clear(self) -> None:
        self._remaining.clear()
        self._order.clear()
        self.encoded.clear()
