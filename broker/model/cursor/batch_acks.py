"""Batches of which only some messages are acknowledged (PIP-54)."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.broker.model.ledger.position import Position

WORD = 64


def bits_of(words: Sequence[int]) -> int:
    """An ack set from the wire, signed 64-bit words, as one number; a set bit is a message NOT yet acknowledged."""
    bits = 0
    for shift, word in enumerate(words):
        bits |= (word & (2**WORD - 1)) << (shift * WORD)
    return bits


def words_of(bits: int) -> list[int]:
    """The wire form of an ack set, without trailing zero words."""
    words = []
    while bits:
        word = bits & (2**WORD - 1)
        words.append(word - 2**WORD if word >= 2 ** (WORD - 1) else word)
        bits >>= WORD
    return words


class BatchAcks:
    """The remaining messages of each partly acknowledged batch."""

    def __init__(self) -> None:
        self._remaining: dict[Position, int] = {}

    def __len__(self) -> int:
        return len(self._remaining)

    def merge(self, position: Position, words: Sequence[int]) -> bool:
        """Intersect with what a client says remains; True when nothing does: the whole entry is acknowledged."""
        bits = bits_of(words)
        if position in self._remaining:
            bits &= self._remaining[position]
        if bits == 0:
            self._remaining.pop(position, None)
            return True
        self._remaining[position] = bits
        return False

    def words(self, position: Position) -> list[int]:
        """The ack set of an entry for MESSAGE; [] when all of it remains."""
        bits = self._remaining.get(position)
        return words_of(bits) if bits else []

    def remaining(self, position: Position) -> int:
        """How many messages of a partly acknowledged batch are left."""
        return self._remaining.get(position, 0).bit_count()

    def forget(self, position: Position) -> None:
        """The whole entry was acknowledged."""
        self._remaining.pop(position, None)

    def forget_through(self, position: Position) -> None:
        """Everything up to `position` was acknowledged."""
        for known in [known for known in self._remaining if known <= position]:
            del self._remaining[known]

    def items(self) -> list[tuple[Position, list[int]]]:
        return [(position, words_of(bits)) for position, bits in sorted(self._remaining.items())]

    def clear(self) -> None:
        self._remaining.clear()
