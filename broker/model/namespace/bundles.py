"""Bundles: the ranges of a namespace's hash space, and which topic falls into which."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
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


def bundle_of(boundaries: Sequence[str], topic: TopicName) -> str:
    """The range that a topic falls into, by CRC32 of its name. `boundaries` cover the whole space."""
    position = zlib.crc32(str(topic).encode())
    inner = [int(boundary, 16) for boundary in boundaries[1:-1]]
    return ranges(boundaries)[sum(boundary <= position for boundary in inner)]
