"""A compacted batch without SingleMessageMetadata (PIP-429): there and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto import batch
from pulsarium.proto.compacted_values import PROPERTY, retained_indexes, to_batch, to_values
from pulsarium.proto.compaction import rewrite
from pulsarium.proto.entry import build, parse_broker_metadata, parse_metadata, payload_of, with_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import Single, keyed_batch
from tests.broker.wire import plain

NO_UTF_8 = b"\xff\xfe"
singles = st.lists(st.tuples(st.none() | st.text(max_size=5), st.binary(max_size=9)), min_size=1, max_size=6)


@given(messages=singles, kind=st.sampled_from(pb.CompressionType.values()), data=st.data(), exposed=st.booleans())
def test_the_values_that_compaction_keeps_come_back(
    messages: Sequence[Single], kind: pb.CompressionType, data: st.DataObject, exposed: bool
) -> None:
    kept = data.draw(st.sets(st.integers(0, len(messages) - 1), min_size=1))
    entry = rewrite(keyed_batch(*messages, compression=kind, properties=[{"key": "p", "value": "1"}]), kept)
    assert entry is not None
    if data.draw(st.booleans()):
        entry = with_broker_metadata(entry, pb.BrokerEntryMetadata(index=7))
    ours = to_values(entry, with_field_31=data.draw(st.booleans()))
    assert parse_broker_metadata(ours) == parse_broker_metadata(entry)
    assert parse_metadata(to_batch(ours)) == parse_metadata(entry)


def with_bytes_for(entry: bytes, key: str) -> bytes:
    """Return the entry of a batch with keys that are not UTF-8. Only other clients can write such keys."""
    metadata = parse_metadata(entry)
    return build(metadata, payload_of(entry).replace(key.encode(), NO_UTF_8))


@given(
    messages=singles,
    key=st.sampled_from(["ZZ", "k"]),
    value=st.sampled_from(["abc", "0", "0,1", "1,0", "-1", "", "0,0"]),
    times=st.integers(0, 2),
    field_31=st.lists(st.integers(-1, 9), max_size=3),
    data=st.data(),
)
def test_batches_of_other_producers_are_converted_and_back(
    messages: Sequence[Single], key: str, value: str, times: int, field_31: Sequence[int], data: st.DataObject
) -> None:
    """Keys may be any bytes, and a producer may set the property of this format by chance."""
    named: dict[str, Any] = {"properties": [{"key": PROPERTY, "value": value}] * times}
    kept = data.draw(st.sets(st.integers(0, len(messages)), min_size=1))
    published = with_bytes_for(keyed_batch((key, b"v"), *messages, **named), "ZZ")
    compacted = rewrite(published, kept)
    assert compacted is not None
    assert parse_metadata(to_batch(to_values(compacted))) == parse_metadata(compacted)
    assert payload_of(to_batch(to_values(compacted))) == payload_of(compacted)
    left = batch.unpack(payload_of(compacted), len(messages) + 1)
    if not times and not any(isinstance(single.partition_key, bytes) for single, _ in left):
        assert retained_indexes(parse_metadata(to_values(compacted))) == sorted(kept)
    alone = plain(b"v", compacted_batch_indexes=field_31, **named)
    whole = keyed_batch(*messages, compacted_batch_indexes=field_31, **named)
    encrypted = keyed_batch(
        *messages, compacted_batch_indexes=field_31, encryption_keys=[pb.EncryptionKeys(key="x", value=b"y")], **named
    )
    for entry in (alone, encrypted, published):
        assert to_values(entry) == to_batch(entry) == entry
    assert to_batch(whole) == whole
    to_values(whole)


@pytest.mark.parametrize(
    "payload",
    [
        *(b"", b"\xff", b"v", b"7", b"[7]", b'{"ab": 1}', b'[["a", {}]]', b'[["", 1]]', b'[["", {}], ["", {}]]'),
        *(
            b"[" * 100_000,
            b'[["", {"payload_size": 1}]]',
            b'[["", {"partition_key_b64_encoded": 99999999999999999999}]]',
        ),
    ],
)
def test_a_payload_of_others(payload: bytes) -> None:
    fields: dict[str, Any] = {"uncompressed_size": len(payload), "num_messages_in_batch": 3}
    entry = plain(payload, properties=[{"key": PROPERTY, "value": "1"}], **fields)
    assert retained_indexes(parse_metadata(entry)) == [1]
    assert to_batch(entry) == entry


@pytest.mark.parametrize(
    "entry",
    [
        plain(b"v"),
        plain(b"v", num_messages_in_batch=2),
        # a few bytes that would expand to 2**31 placeholders
        plain(b'[["", {}]]', num_messages_in_batch=2**31 - 1, properties=[{"key": PROPERTY, "value": "0"}]),
        plain(b"", num_messages_in_batch=1, properties=[{"key": PROPERTY, "value": "?"}]).replace(b"?", b"\xff"),
        plain(b"", marker_type=1),
        b"\x0e\x01",
    ],
)
def test_an_entry_that_is_no_compacted_batch_stays_unchanged(entry: bytes) -> None:
    assert to_values(entry, with_field_31=True) == to_batch(entry) == entry
