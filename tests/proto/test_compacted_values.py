"""A compacted batch without SingleMessageMetadata (PIP-429): there and back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.proto.compacted_values import to_batch, to_values
from pulsarium.proto.compaction import rewrite
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, with_broker_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import Single, keyed_batch
from tests.broker.wire import plain

singles = st.lists(st.tuples(st.none() | st.text(max_size=5), st.binary(max_size=9)), min_size=1, max_size=6)


@given(messages=singles, kind=st.sampled_from(pb.CompressionType.values()), data=st.data(), exposed=st.booleans())
def test_there_and_back(
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


@pytest.mark.parametrize(
    "entry", [plain(b"v"), plain(b"v", num_messages_in_batch=2), plain(b"", marker_type=1), b"\x0e\x01"]
)
def test_what_is_no_compacted_batch_stays_as_it_is(entry: bytes) -> None:
    assert to_values(entry, with_field_31=True) == to_batch(entry) == entry
