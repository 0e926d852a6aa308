"""Compress and decompress payloads as Pulsar's clients do: raw LZ4 blocks, zlib streams, zstd frames, raw Snappy.

The first use of a format imports its library. A claimed size is believed only as far as the compressed bytes can grow,
and decompression stops there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pulsarium.proto.errors import CompressionError
from pulsarium.proto.generated.PulsarApi_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD, CompressionType

#: The most bytes of a decompressed payload, unless the caller passes another limit.
DEFAULT_LIMIT = 128 * 1024 * 1024

#: The most bytes that an event loop decompresses where a thread can do more, in about 5 ms.
AT_ONCE = 1024 * 1024
#: The most bytes that an event loop decompresses where the work cannot wait for a thread, in about 20 ms.
MOST_AT_ONCE = 4 * AT_ONCE

_ZSTD_LEVEL = 3  # Pulsar's
_ZSTD_BLOCK = 128 * 1024  # the most one block of at least four bytes can hold


def compress(kind: CompressionType, data: bytes) -> bytes:
    """Compress a payload. The caller puts `kind` and len(data) into the metadata."""
    if kind == NONE:
        return data
    if kind == ZLIB:
        return zlib.compress(data)
    if kind == LZ4:
        import lz4.block

        return bytes(lz4.block.compress(data, store_size=False))
    import cramjam

    if kind == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
    if kind == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    raise CompressionError(f"unknown compression type {kind}")


def decompress(kind: CompressionType, data: bytes, uncompressed_size: int, *, limit: int = DEFAULT_LIMIT) -> bytes:
    """Decompress a payload.

    Raise `CompressionError` when `data` is damaged, does not give exactly `uncompressed_size` bytes, or gives more than
    `limit` bytes. With NONE, return `data` whatever its size, as Pulsar does.
    """
    if kind == NONE:
        return data
    method = _METHODS.get(kind)
    if method is None:
        raise CompressionError(f"unknown compression type {kind}")
    name, decoder, most = method
    if uncompressed_size > limit:
        raise CompressionError(f"{uncompressed_size} bytes are over the limit of {limit}")
    if not 0 <= uncompressed_size <= most(len(data)):
        raise CompressionError(f"{len(data)} bytes of {name} cannot become {uncompressed_size}")
    result = decoder(data, uncompressed_size)
    if len(result) != uncompressed_size:
        raise CompressionError(f"{name} data does not give the {uncompressed_size} bytes its metadata claims")
    return result


def _zlib(data: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, size + 1)  # 0 would mean no limit
    except zlib.error as error:
        raise CompressionError(f"zlib: {error}") from None


def _lz4(data: bytes, size: int) -> bytes:
    import lz4.block

    try:
        return bytes(lz4.block.decompress(data, uncompressed_size=size))
    except lz4.block.LZ4BlockError as error:
        raise CompressionError(f"LZ4: {error}") from None


def _zstd(data: bytes, size: int) -> bytes:
    import cramjam

    result = bytearray(size)
    try:
        del result[cramjam.zstd.decompress_into(data, result) :]
    except cramjam.DecompressionError as error:
        raise CompressionError(f"zstd: {error}") from None
    return bytes(result)


def _snappy(data: bytes, size: int) -> bytes:
    import cramjam

    result = bytearray(size)
    try:
        del result[cramjam.snappy.decompress_raw_into(data, result) :]
    except cramjam.DecompressionError as error:
        raise CompressionError(f"Snappy: {error}") from None
    return bytes(result)


# name, decoder(data, size), and the most bytes that a number of compressed bytes can give
_METHODS: Mapping[int, tuple[str, Callable[[bytes, int], bytes], Callable[[int], int]]] = MappingProxyType(
    {
        LZ4: ("LZ4", _lz4, lambda size: 255 * size),
        ZLIB: ("zlib", _zlib, lambda size: 1032 * size),
        ZSTD: ("zstd", _zstd, lambda size: (size // 4 + 1) * _ZSTD_BLOCK),
        SNAPPY: ("Snappy", _snappy, lambda size: 32 * size),
    }
)
