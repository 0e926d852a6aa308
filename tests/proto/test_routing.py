"""Keys go to the segments and buckets of Pulsar's own clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsarium.proto.routing import bucket_hash, legacy_segment, m1_segment_hash, murmur3, segment_hash

LINES = (Path(__file__).parent / "vectors" / "routing.tsv").read_text("utf-8").splitlines()
VECTORS = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector[0] or "the empty key")
def test_a_key_has_the_segment_and_the_bucket_of_pulsars_clients(vector: tuple[str, ...]) -> None:
    """The expected hashes are those of Murmur3_32Hash of Pulsar 5.0.0-M1."""
    key, raw, m1, segment, bucket, of_three, of_four = vector
    assert murmur3(key) == murmur3(key.encode()) == int(raw, 16)
    assert (m1_segment_hash(key), segment_hash(key), bucket_hash(key)) == (
        int(m1, 16),
        int(segment, 16),
        int(bucket, 16),
    )
    assert legacy_segment(key, 3) == int(of_three)
    assert of_four == f"{m1_segment_hash(key) // 0x4000} / {segment_hash(key) // 0x4000}"
