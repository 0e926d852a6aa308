"""Bundles: the ranges of a namespace's hash space, which topic falls into which, and how one is split."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from pulsarium.proto.topic_name import TopicName

LAST = 0xFFFFFFFF


def boundary_text(boundary: int) -> str:
    return f"0x{boundary:08x}"


def even_boundaries(bundles: int) -> list[str]:
    """The boundaries of `bundles` ranges of one size (defaultNumberOfNamespaceBundles)."""
    width = (LAST + 1) // bundles
    return [boundary_text(width * index) for index in range(bundles)] + [boundary_text(LAST)]


def ranges(boundaries: Sequence[str]) -> list[str]:
    """The names of the ranges between boundaries."""
    return [f"{low}_{high}" for low, high in pairwise(boundaries)]


def hash_position(topic: TopicName) -> int:
    """Where in the hash space a topic is: CRC32 of its name."""
    return zlib.crc32(str(topic).encode())


def bundle_of(boundaries: Sequence[str], topic: TopicName) -> str:
    """The range that a topic falls into. `boundaries` cover the whole space; their order is that of their texts."""
    end = bisect_right(boundaries, boundary_text(hash_position(topic)), 1, len(boundaries) - 1)
    return f"{boundaries[end - 1]}_{boundaries[end]}"


def bundle_named(boundaries: Sequence[str], namespace: str, named: str) -> str:
    """The range that somebody named, written as ranges are; ValueError in Pulsar's words for one that there is not."""
    parts = named.split("_")
    if len(parts) < 2 or not parts[1]:
        raise ValueError(f"Invalid bundle range: {named}")
    low, high = (decoded(part) for part in parts[:2])
    if low > high:
        raise ValueError(f"Invalid range: [{low}..{high})")
    if low == high:
        raise ValueError("Cannot create bundle object for an empty key range")
    asked = f"{boundary_text(low % 2**64)}_{boundary_text(high % 2**64)}"
    found = next((name for name in ranges(boundaries) if edges(name)[0] == low), None)
    if found is None:
        raise ValueError(f"Cannot find bundle {namespace}/{asked} in the bundles list")
    if found != asked:
        text = f"Invalid upper boundary for bundle {namespace}/{asked}. "
        raise ValueError(f"{text}Expected upper boundary of {namespace}/{found}")
    return found


def decoded(number: str) -> int:
    """A number as Java's Long.decode reads it, hexadecimal or decimal; ValueError in its words."""
    if not number:
        raise ValueError("Zero length string")
    is_hex = number.lower().startswith("0x")
    digits = number[2:] if is_hex else number
    try:
        value = int(digits, 16 if is_hex else 10)
    except ValueError:
        value = 2**63
    if not -(2**63) <= value < 2**63:
        raise ValueError(f'For input string: "{digits}"{" under radix 16" if is_hex else ""}')
    return value


def edges(bundle: str) -> tuple[int, int]:
    """The boundaries of a range."""
    low, high = bundle.split("_")
    return int(low, 16), int(high, 16)


def middle(bundle: str) -> int:
    """Where two halves of one size meet (range_equally_divide)."""
    low, high = edges(bundle)
    return low + (high - low) // 2


def topics_middle(topics: Sequence[TopicName]) -> int | None:
    """Where two halves with as many topics meet (topic_count_equally_divide); None for fewer than two topics."""
    if len(topics) < 2:
        return None
    positions = sorted(map(hash_position, topics))
    half = len(positions) // 2
    return positions[half - 1] + (positions[half] - positions[half - 1]) // 2


def split_at(boundaries: Sequence[str], bundle: str, positions: Iterable[int]) -> list[str]:
    """The boundaries once a range is split at positions; those that do not lie inside it do nothing."""
    low, high = edges(bundle)
    inner = {boundary_text(position) for position in positions if low < position < high}
    return sorted({*boundaries, *inner})
