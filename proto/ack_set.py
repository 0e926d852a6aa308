"""Ack sets (PIP-54): a set bit is a message of a batch that is NOT yet acknowledged."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_WORD = 2**64 - 1


def bits_of(words: Sequence[int]) -> int:
    """An ack set from the wire, signed 64-bit words, lowest first, as one number."""
    return int.from_bytes(struct.pack(f"<{len(words)}Q", *(word & _WORD for word in words)), "little")


def words_of(bits: int) -> list[int]:
    """The wire form of an ack set, without trailing zero words."""
    count = (bits.bit_length() + 63) // 64
    return list(struct.unpack(f"<{count}q", bits.to_bytes(8 * count, "little")))
