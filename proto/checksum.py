"""The checksum of entries and topic lists: CRC32C (Castagnoli)."""

from __future__ import annotations

from crc32c import crc32c as _crc32c


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of `data`, 0 to 2^32 - 1; pass the result back as `value` to go on with further data."""
    return _crc32c(data, value)
