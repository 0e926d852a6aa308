"""Ledger infos in the metadata store, compressed as Pulsar compresses them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.ledger.info_compression import InfoCompression, unpack
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.proto.errors import CompressionError
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from tests.broker.held import HeldStorage
from tests.broker.model.stores import NAME, append, cluster_of, read_all

KINDS = ["LZ4", "ZLIB", "ZSTD", "SNAPPY"]
INFO = ml.ManagedLedgerInfo(
    ledgerInfo=[ml.ManagedLedgerInfo.LedgerInfo(ledgerId=i, entries=10, size=100) for i in range(50)]
).SerializeToString()


@pytest.mark.req("S423-68")
@pytest.mark.parametrize("kind", KINDS)
def test_the_header_names_method_and_size(kind: str) -> None:
    packed = InfoCompression(kind, 0).pack(INFO)
    assert len(packed) < len(INFO)
    assert packed[:2] == b"\x47\x78"
    size = int.from_bytes(packed[2:6], "big")
    head = ml.ManagedCursorInfoMetadata.FromString(packed[6 : 6 + size])
    assert ml.CompressionType.Name(head.compressionType) == kind
    assert head.uncompressedSize == len(INFO)
    assert unpack(packed) == INFO


@pytest.mark.req("S423-70")
@pytest.mark.parametrize("kind", ["NONE", "FOO", "lz4", ""])
def test_an_unknown_compression_method_compresses_nothing(kind: str) -> None:
    assert InfoCompression(kind, 0).pack(INFO) == INFO


@pytest.mark.req("S423-69", "S423-71")
def test_only_what_is_over_the_threshold() -> None:
    assert InfoCompression("LZ4", len(INFO)).pack(INFO) == INFO
    assert InfoCompression("LZ4", len(INFO) - 1).pack(INFO) != INFO
    assert InfoCompression("LZ4", 0).pack(b"x")[:2] == b"\x47\x78"


@given(st.binary(max_size=300).map(lambda data: b"\x08" + data), st.sampled_from(["NONE", *KINDS]), st.integers(0, 300))
def test_a_compressed_info_is_read_as_it_was(info: bytes, kind: str, threshold: int) -> None:
    assert unpack(InfoCompression(kind, threshold).pack(info)) == info


def test_a_broken_compressed_info_is_refused() -> None:
    packed = InfoCompression("ZLIB", 0).pack(INFO)
    with pytest.raises(CompressionError):
        unpack(packed[:-20])


@pytest.mark.req("S423-70", "S423-71")
@pytest.mark.parametrize("kind", ["NONE", "FOO", *KINDS])
async def test_a_managed_ledger_comes_back_whatever_is_configured_then(kind: str) -> None:
    store = HeldStorage()
    cluster = cluster_of(store, managedLedgerInfoCompressionType=kind, managedLedgerInfoCompressionThresholdInBytes=20)
    ledger = ManagedLedger(NAME, cluster)
    cluster.turn.finish()
    assert not store.metadata[ledger.path].startswith(b"\x47\x78")  # the info of one ledger is below the threshold
    for _ in range(10):
        append(ledger, cluster, b"x")
        ledger.reopen()
    cluster.turn.finish()
    assert store.metadata[ledger.path].startswith(b"\x47\x78") is (kind in KINDS)
    entries = read_all(ledger)
    assert read_all(ManagedLedger(NAME, cluster_of(store))) == entries
