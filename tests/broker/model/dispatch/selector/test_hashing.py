"""Keys of messages, and their hashes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.broker.model.dispatch.selector import NONE_KEY, hash_of, key_of, sticky_hash
from pulsarium.proto.generated import PulsarApi_pb2 as pb

RING = (1, 65535)
RAW = {b"key-0": 1664612543, b"key-1": 414258592, b"k0": 190934230, b"NONE_KEY": 504741539, b"k1": 2110152746}
ON_THE_RING = {b"key-0": 23544, b"key-1": 11858, b"key-3": 55278, b"key-4": 23426}


@pytest.mark.req("B-08")
def test_key_hashes_are_those_of_a_real_broker() -> None:
    for key, raw in RAW.items():
        assert hash_of(key) == hash_of(key.decode()) == raw
        assert sticky_hash(key, 0, 65536) == raw % 65536
    for key, point in ON_THE_RING.items():
        assert sticky_hash(key, *RING) == point


@pytest.mark.req("B-08")
def test_no_key_has_hash_0() -> None:
    assert hash_of(b"") == 0
    assert sticky_hash(b"", 0, 65536) == 1
    assert sticky_hash(b"", *RING) == 1


@given(st.binary(), st.sampled_from([(0, 65536), RING]))
def test_a_hash_is_in_its_range(key: bytes, within: tuple[int, int]) -> None:
    start, size = within
    assert max(start, 1) <= sticky_hash(key, start, size) <= start + size - 1


def metadata(**fields: object) -> pb.MessageMetadata:
    return pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, **fields)  # type: ignore[arg-type]


@pytest.mark.req("B-09")
def test_the_ordering_key_comes_before_the_partition_key() -> None:
    assert key_of(metadata(partition_key="key-0", ordering_key=b"key-5")) == b"key-5"
    assert key_of(metadata(partition_key="key-0")) == b"key-0"
    assert key_of(metadata(partition_key="clé")) == "clé".encode()
    assert key_of(metadata()) == b"p-7"
    assert key_of(pb.MessageMetadata(producer_name="p", sequence_id=2**64 - 1)) == b"p--1"
    assert key_of(pb.MessageMetadata()) == NONE_KEY


@pytest.mark.req("B-09")
def test_a_present_key_counts_although_it_is_empty() -> None:
    assert key_of(metadata(partition_key="key-0", ordering_key=b"")) == b""
    assert key_of(metadata(partition_key="")) == b""


@pytest.mark.req("B-09")
@pytest.mark.parametrize(
    ("text", "key"),
    [("a2V5LTE=", b"key-1"), ("a2V5LTE", b"key-1"), ("", b""), ("/+8=", b"\xff\xef"), ("a", NONE_KEY)]
    + [(text, NONE_KEY) for text in ("a2V5LTE=a2V5", "a2V5 LTE=", "_-8=", "é")],
)
def test_a_partition_key_may_be_base64(text: str, key: bytes) -> None:
    assert key_of(metadata(partition_key=text, partition_key_b64_encoded=True)) == key


@pytest.mark.req("B-09")
def test_a_key_that_is_not_utf8_is_read_as_java_reads_it() -> None:
    broken = pb.MessageMetadata.FromString(b"\x0a\x01p\x10\x01\x18\x05\x32\x03a\xffb")
    assert key_of(broken) == "a\ufffdb".encode()
