"""Compression and decompression of each type. Wrong sizes cost neither memory nor time."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import zlib
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto import compression
from pulsarium.proto.errors import CompressionError
from pulsarium.proto.generated.PulsarApi_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD, CompressionType

KINDS = (LZ4, ZLIB, ZSTD, SNAPPY)
MIB = 1024 * 1024

kinds = pytest.mark.parametrize("kind", KINDS, ids=CompressionType.Name)


@given(st.sampled_from(KINDS), st.binary(max_size=2000), st.integers(1, 50))
def test_compressed_bytes_come_back_as_they_went(kind: CompressionType, data: bytes, times: int) -> None:
    data *= times
    packed = compression.compress(kind, data)
    assert isinstance(packed, bytes)
    assert compression.decompress(kind, packed, len(data)) == data


@kinds
@pytest.mark.parametrize("size", [0, 1, 255, 128 * 1024, 5 * MIB])
def test_zeros_of_each_size_come_back(kind: CompressionType, size: int) -> None:
    """Zeros grow most when they are decompressed."""
    data = bytes(size)
    packed = compression.compress(kind, data)
    assert compression.decompress(kind, packed, size) == data


def test_without_compression_the_size_is_ignored() -> None:
    """Pulsar ignores the size of uncompressed messages."""
    assert compression.compress(NONE, b"abc") == b"abc"
    assert compression.decompress(NONE, b"abc", 2**32 - 1) == b"abc"


# Raw forms, by their specifications: no length in front of LZ4, no frame around Snappy.
@pytest.mark.parametrize(
    ("kind", "packed", "data"),
    [
        (LZ4, "50" + b"hello".hex(), b"hello"),
        (LZ4, "1f6101000a" + "50" + "61" * 5, b"a" * 35),
        (SNAPPY, "0510" + b"hello".hex(), b"hello"),
        (SNAPPY, "0a0061" + "1501", b"a" * 10),
        (ZLIB, "789c" + "cb48cdc9c90700" + "062c0215", b"hello"),
        (ZSTD, "28b52ffd" + "2005" + "290000" + b"hello".hex(), b"hello"),
        # without a content size in the frame, as streaming writers leave it
        (ZSTD, "28b52ffd" + "0000" + "290000" + b"hello".hex(), b"hello"),
    ],
)
def test_compression_fits_its_vectors(kind: CompressionType, packed: str, data: bytes) -> None:
    assert compression.decompress(kind, bytes.fromhex(packed), len(data)) == data


@kinds
@pytest.mark.parametrize("wrong", [0, 1, 99, 101, 10_000])
def test_another_size_than_promised_is_an_error(kind: CompressionType, wrong: int) -> None:
    packed = compression.compress(kind, b"abcdefghij" * 10)
    with pytest.raises(CompressionError):
        compression.decompress(kind, packed, wrong)


@kinds
def test_truncated_or_damaged(kind: CompressionType) -> None:
    data = bytes(range(256)) * 8
    packed = compression.compress(kind, data)
    for damaged in (b"", packed[:1], packed[: len(packed) // 2], b"\xff" * 50):
        with pytest.raises(CompressionError):
            compression.decompress(kind, damaged, len(data))


@kinds
@given(st.data())
def test_any_damage_is_an_error_or_harmless(kind: CompressionType, data: st.DataObject) -> None:
    """Damage that a format without a checksum does not notice changes bytes, and never the size."""
    packed = bytearray(compression.compress(kind, bytes(range(100)) * 3))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CompressionError):
        assert len(compression.decompress(kind, bytes(packed), 300)) == 300


@kinds
@pytest.mark.parametrize("claim", [-1, 20 * MIB, 127 * MIB, 129 * MIB, 2**32 - 1])
def test_a_huge_claim_allocates_nothing(kind: CompressionType, claim: int) -> None:
    packed = compression.compress(kind, b"small")
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError):
            compression.decompress(kind, packed, claim)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MIB


def test_a_bomb_does_not_explode() -> None:
    """50 MB of zeros behind a claim of 10 KB."""
    bombs = {kind: compression.compress(kind, bytes(50 * MIB)) for kind in KINDS}
    for kind, packed in bombs.items():
        tracemalloc.start()
        try:
            with pytest.raises(CompressionError):
                compression.decompress(kind, packed, 10_000)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 3 * MIB, CompressionType.Name(kind)


@kinds
def test_a_size_over_the_limit_is_refused(kind: CompressionType) -> None:
    packed = compression.compress(kind, bytes(1000))
    assert compression.decompress(kind, packed, 1000, limit=1000) == bytes(1000)
    with pytest.raises(CompressionError, match="1000 bytes are over the limit of 999"):
        compression.decompress(kind, packed, 1000, limit=999)


def test_an_unknown_compression_type_is_an_error() -> None:
    unknown = cast(CompressionType, 9)
    with pytest.raises(CompressionError, match="unknown compression type 9"):
        compression.compress(unknown, b"")
    with pytest.raises(CompressionError, match="unknown compression type 9"):
        compression.decompress(unknown, b"", 0)


def test_bytes_behind_a_zlib_stream_do_no_harm() -> None:
    """Pulsar too stops after the number of bytes that the metadata promised."""
    assert compression.decompress(ZLIB, zlib.compress(b"abc") + b"more", 3) == b"abc"


def test_libraries_wait_for_their_first_use() -> None:
    script = """if True:
        import sys
        import pulsarium.proto.framing, pulsarium.proto.entry, pulsarium.proto.batch, pulsarium.proto.compression
        assert not {"lz4", "cramjam"} & set(sys.modules)
        import pulsarium.proto.topic_name
        """
    subprocess.run([sys.executable, "-P", "-c", script], check=True)
