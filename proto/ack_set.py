"""Ack sets (PIP-54): a set bit is a message of a batch that is NOT yet acknowledged."""

from collections.abc import Sequence

_WORD = 64


def bits_of(words: Sequence[int]) -> int:
    """An ack set from the wire, signed 64-bit words, lowest first, as one number."""
    bits = 0
    for shift, word in enumerate(words):
        bits |= (word & (2**_WORD - 1)) << (shift * _WORD)
    return bits


def words_of(bits: int) -> list[int]:
    """The wire form of an ack set, without trailing zero words."""
    words = []
    while bits:
        word = bits & (2**_WORD - 1)
        words.append(word - 2**_WORD if word >= 2 ** (_WORD - 1) else word)
        bits >>= _WORD
    return words
