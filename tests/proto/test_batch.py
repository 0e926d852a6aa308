"""Batches there and back, and batches that are not what their metadata says."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto import batch
from pulsarium.proto.entry import parse_metadata, payload_of
from pulsarium.proto.errors import BatchError
from pulsarium.proto.generated.PulsarApi_pb2 import SingleMessageMetadata
from tests.proto.golden import Golden, golden_entries


def single(key: str, size: int = 0) -> SingleMessageMetadata:
    return SingleMessageMetadata(partition_key=key, payload_size=size)


TWO = batch.pack([(single("a"), b"first"), (single("b"), b"")])


def test_a_packed_batch_has_these_bytes() -> None:
    assert TWO.hex() == "00000005" + "120161" + "1805" + b"first".hex() + "00000005" + "120162" + "1800"
    assert batch.unpack(TWO, 2) == [(single("a", 5), b"first"), (single("b"), b"")]


def test_fewer_than_there_are() -> None:
    """The count comes from the metadata, where Pulsar accepts any number."""
    assert batch.unpack(TWO, 1) == [(single("a", 5), b"first")]
    assert batch.unpack(TWO, 0) == []
    assert batch.unpack(TWO, -1) == []


@pytest.mark.parametrize(
    "golden",
    [golden for golden in golden_entries() if "batch" in golden.traits],
    ids=lambda golden: golden.kind,
)
def test_recorded_batches_are_the_same_bytes_when_packed_again(golden: Golden) -> None:
    payload = payload_of(golden.frame)
    messages = batch.unpack(payload, parse_metadata(golden.frame).num_messages_in_batch)
    assert batch.pack(messages) == payload
    assert {message[:1] for _, message in messages} <= {b"a", b"b", b"0", b"1", b"2"}


@pytest.mark.parametrize(
    ("payload", "count", "error"),
    [
        (b"", 1, "batch of 0 bytes ends before message 0"),
        (TWO, 3, "ends before message 2"),
        (TWO, 2**31 - 1, "2147483647 messages in a batch, of which at most 65536 are taken apart"),
        (TWO[:-1], 2, "metadata of message 1 is beyond"),
        (TWO[:12], 2, "message 0 of 5 bytes is beyond its batch of 12"),
        (bytes.fromhex("ffffffff"), 1, "metadata of message 0 is beyond"),
        (bytes.fromhex("00000000"), 1, "missing required fields: payload_size"),
        (bytes.fromhex("00000002ffff"), 1, "metadata of message 0: Error parsing"),
        (bytes.fromhex("0000000b18ffffffffffffffffff01"), 1, "message 0 of -1 bytes is beyond"),
        (bytes.fromhex("0000000618ffffffff07"), 1, "message 0 of 2147483647 bytes is beyond"),
    ],
)
def test_a_broken_batch_is_refused(payload: bytes, count: int, error: str) -> None:
    with pytest.raises(BatchError, match=error):
        batch.unpack(payload, count)


singles = st.builds(
    SingleMessageMetadata,
    partition_key=st.none() | st.text(max_size=5),
    sequence_id=st.none() | st.integers(0, 2**64 - 1),
    compacted_out=st.booleans(),
)


@given(st.lists(st.tuples(singles, st.binary(max_size=30)), max_size=10), st.binary(max_size=5))
def test_a_batch_comes_back_as_it_went(messages: list[tuple[SingleMessageMetadata, bytes]], behind: bytes) -> None:
    assert batch.unpack(batch.pack(messages) + behind, len(messages)) == messages


@given(st.binary(max_size=60), st.integers(0, 5))
def test_a_batch_of_garbage_raises_nothing_else(payload: bytes, count: int) -> None:
    with suppress(BatchError):
        assert len(batch.unpack(payload, count)) == count
