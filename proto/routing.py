"""Routing of keys: the partition, the segment, and the entry bucket inside a segment.

In scalable topics, every client computes the same hash, the unmasked Murmur3 hash with 32 bits and seed 0. Pulsar 5.0
takes the segment from the high 16 bits and the bucket from the low ones, so the two choices are independent. Pulsar
5.0.0-M1 takes the segment from the low bits. Topics whose segments are the partitions of a partitioned topic keep the
partitioned routing.
"""

from __future__ import annotations

import mmh3

RING = 0x10000  # number of hashes of segments, and of buckets


def murmur3(key: str | bytes) -> int:
    """Return the unmasked Murmur3 hash of a key with 32 bits and seed 0. A text counts as UTF-8."""
    return mmh3.hash(key, 0, signed=False)


def segment_hash(key: str | bytes) -> int:
    """Return the hash that chooses the segment of a key in Pulsar 5.0."""
    return murmur3(key) >> 16


def bucket_hash(key: str | bytes) -> int:
    """Return the hash that chooses the entry bucket of a key in Pulsar 5.0."""
    return murmur3(key) & 0xFFFF


def m1_segment_hash(key: str | bytes) -> int:
    """Return the hash that chooses the segment of a key in Pulsar 5.0.0-M1."""
    return murmur3(key) & 0xFFFF


def legacy_segment(key: str | bytes, segments: int) -> int:
    """Return the segment of a key where every segment is legacy: the partition of a partitioned topic."""
    return (murmur3(key) & 0x7FFFFFFF) % segments


def partition_murmur3(key: str) -> int:
    """Return the hash of a key for clients that choose partitions by Murmur3. The hash is never negative."""
    return murmur3(key) & 0x7FFFFFFF


def java_hash(key: str) -> int:
    """Return the hash by which most clients choose the partition of a key: Java's of a text, but never negative."""
    units = key.encode("utf-16-be")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
