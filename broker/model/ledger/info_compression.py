"""Compress the info that managed ledgers and cursors store as metadata.

    [u16 0x4778][u32 size][ManagedLedgerInfoMetadata or ManagedCursorInfoMetadata][compressed info]

All numbers are big-endian. Both metadata messages have the same encoding. An uncompressed info has no header.
"""

from __future__ import annotations

from struct import Struct

from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_MAGIC = 0x4778
_HEAD = Struct(">HI")
_METHODS = {"LZ4": pb.LZ4, "ZLIB": pb.ZLIB, "ZSTD": pb.ZSTD, "SNAPPY": pb.SNAPPY}


class InfoCompression:
    """Compression of one kind of info (managedLedgerInfoCompressionType, managedCursorInfoCompressionType)."""

    def __init__(self, name: str, threshold: int) -> None:
        """Compress infos of more than `threshold` bytes. A name that Pulsar does not know means NONE."""
        self._name = name
        self._threshold = threshold

    def pack(self, info: bytes) -> bytes:
        """Return the bytes to store for an info."""
        method = _METHODS.get(self._name)
        if method is None or len(info) <= self._threshold:
            return info
        head = ml.ManagedLedgerInfoMetadata(compressionType=self._name, uncompressedSize=len(info)).SerializeToString()
        return _HEAD.pack(_MAGIC, len(head)) + head + compress(method, info)


def unpack(value: bytes) -> bytes:
    """Return the info of a stored value, whatever the current configuration.

    Raise `CompressionError` when it is damaged.
    """
    if len(value) < _HEAD.size:
        return value
    magic, size = _HEAD.unpack_from(value)
    if magic != _MAGIC:
        return value
    head = ml.ManagedLedgerInfoMetadata.FromString(value[_HEAD.size : _HEAD.size + size])
    method = _METHODS.get(ml.CompressionType.Name(head.compressionType), pb.NONE)
    return decompress(method, value[_HEAD.size + size :], head.uncompressedSize)
