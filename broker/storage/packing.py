"""Many entries as one value: u32 count, u32 length of each, then their bytes; little-endian."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pulsarium.broker.storage.errors import StorageError


def pack(entries: Sequence[bytes]) -> bytes:
    """One value that holds `entries`, in order."""
    count = len(entries)
    return b"".join((struct.pack(f"<{count + 1}I", count, *map(len, entries)), *entries))


def unpack(data: bytes, start: int = 0, stop: int | None = None) -> list[bytes]:
    """`entries[start:stop]` of a packed value, without cutting up the rest. Raises StorageError for a damaged one."""
    try:
        (count,) = struct.unpack_from("<I", data)
        lengths = struct.unpack_from(f"<{count}I", data, 4)
    except struct.error as error:
        raise StorageError(f"damaged entries: {error}") from None
    position = header_size(count)
    if position + sum(lengths) != len(data):
        raise StorageError(f"damaged entries: {len(data)} bytes where {position + sum(lengths)} belong")
    start, stop, _ = slice(start, stop).indices(count)
    position += sum(lengths[:start])
    entries = []
    for length in lengths[start:stop]:
        entries.append(data[position : position + length])
        position += length
    return entries


def count_of(data: bytes) -> int:
    """How many entries a packed value holds, which is not damaged."""
    (count,) = struct.unpack_from("<I", data)
    return int(count)


def header_size(count: int) -> int:
    """Bytes that packing adds to `count` entries."""
    return 4 * (count + 1)
