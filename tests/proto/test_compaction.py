"""Compaction of one entry: the keys in it, and the entry that remains."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsarium.broker.model.compaction.raw import RawMessage, pack, position_of, unpack
from pulsarium.broker.model.ledger.position import Position
from pulsarium.conformance.recordings.releases import PULSAR_4
from pulsarium.proto import batch
from pulsarium.proto.compaction import ALONE, Keyed, open_entry, rewrite
from pulsarium.proto.compression import compress, decompress
from pulsarium.proto.entry import parse_metadata, payload_of, with_broker_metadata
from pulsarium.proto.framing import FrameDecoder
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.model.compaction.topics import keyed_batch
from tests.broker.wire import batch_of, plain

TRANSCRIPT = PULSAR_4.folder / "095-compaction.jsonl"
EXAMPLE = (("k0", b"v0"), ("k0", b"v1"), ("k1", b"v0"), ("k1", b""))


def recorded(type: str, **fields: Any) -> bytes:
    """Return the first recorded entry whose metadata has these fields."""
    for line in TRANSCRIPT.read_text().splitlines():
        step = json.loads(line)
        if step.get("type") == type and step["metadata"].items() >= fields.items():
            ((_, trailing),) = FrameDecoder().feed(bytes.fromhex(step["raw"]))
            return bytes(trailing)
    raise AssertionError(f"no {type} with {fields}")


def singles(entry: bytes) -> list[tuple[pb.SingleMessageMetadata, bytes]]:
    metadata = parse_metadata(entry)
    payload = decompress(metadata.compression, payload_of(entry), metadata.uncompressed_size)
    return batch.unpack(payload, metadata.num_messages_in_batch)


@pytest.mark.req("B-32", "S429-11", "S429-12", "S429-15")
def test_the_recorded_batch_comes_out_byte_for_byte() -> None:
    sent = recorded("SEND", num_messages_in_batch=3)
    assert rewrite(sent, [1, 2]) == recorded("MESSAGE", num_messages_in_batch=3, compacted_batch_indexes=[1, 2])


@pytest.mark.req("S429-10", "S429-11", "S429-12", "S429-15", "S429-21", "S429-28")
@pytest.mark.parametrize("kind", [pb.NONE, pb.LZ4, pb.ZLIB, pb.ZSTD, pb.SNAPPY])
def test_the_proposals_example_is_compacted(kind: pb.CompressionType) -> None:
    rewritten = rewrite(keyed_batch(*EXAMPLE, compression=kind), [1])
    assert rewritten is not None
    metadata = parse_metadata(rewritten)
    assert metadata.num_messages_in_batch == 4
    assert list(metadata.compacted_batch_indexes) == [1]
    assert metadata.compression == kind
    assert not metadata.properties
    found = singles(rewritten)
    assert metadata.uncompressed_size == len(batch.pack(found))
    assert [single.compacted_out for single, _ in found] == [True, False, True, True]
    assert [payload for _, payload in found] == [b"", b"v1", b"", b""]
    empty = pb.SingleMessageMetadata(compacted_out=True, payload_size=0)
    assert found[0][0] == found[2][0] == found[3][0] == empty


@pytest.mark.req("S429-15")
def test_indexes_of_an_earlier_compaction_do_not_stay() -> None:
    once = rewrite(keyed_batch(("k0", b"a"), ("k1", b"b"), ("k2", b"c"), ("k1", b"")), [0, 2])
    assert once is not None
    assert list(parse_metadata(once).compacted_batch_indexes) == [0, 2]
    opened = open_entry(once)
    assert opened is not None
    assert opened.messages == [Keyed(0, b"k0", True), Keyed(2, b"k2", True)]
    twice = opened.rewritten([2])
    assert twice is not None
    assert list(parse_metadata(twice).compacted_batch_indexes) == [2]
    assert [single.compacted_out for single, _ in singles(twice)] == [True, True, False, True]


@pytest.mark.req("S429-15")
@pytest.mark.parametrize("kind", [pb.NONE, pb.LZ4])
def test_a_batch_that_retains_all_messages_keeps_its_payload(kind: pb.CompressionType) -> None:
    sent = keyed_batch(("k0", b"a"), ("k1", b"b"), compression=kind)
    rewritten = rewrite(sent, [0, 1])
    assert rewritten is not None
    metadata = parse_metadata(rewritten)
    assert list(metadata.compacted_batch_indexes) == [0, 1]
    assert payload_of(rewritten) == payload_of(sent)
    assert metadata.uncompressed_size == len(batch.pack(singles(sent)))


@pytest.mark.req("S429-31")
def test_a_batch_of_which_nothing_is_left() -> None:
    assert rewrite(keyed_batch(*EXAMPLE), []) is None


def test_an_entry_of_one_message() -> None:
    entry = plain(b"v", partition_key="k")
    assert rewrite(entry, [ALONE]) == entry
    assert rewrite(entry, []) is None


def test_broker_entry_metadata_stays_in_front() -> None:
    stamped = with_broker_metadata(keyed_batch(*EXAMPLE), pb.BrokerEntryMetadata(index=7))
    rewritten = rewrite(stamped, [1])
    assert rewritten is not None
    without = rewrite(keyed_batch(*EXAMPLE), [1])
    assert without is not None
    assert rewritten == with_broker_metadata(without, pb.BrokerEntryMetadata(index=7))


@pytest.mark.req("S429-30")
def test_messages_without_a_value_delete() -> None:
    def has_value(entry: bytes) -> list[bool]:
        opened = open_entry(entry)
        assert opened is not None
        assert opened.messages is not None
        return [message.has_value for message in opened.messages]

    assert has_value(plain(b"", partition_key="k")) == [False]
    assert has_value(plain(b"", partition_key="k", null_value=True)) == [False]
    assert has_value(plain(b"x", partition_key="k", null_value=True)) == [False]  # as a real broker does
    assert has_value(plain(b"sealed", partition_key="k", uncompressed_size=0)) == [False]  # empty before encryption
    assert has_value(plain(b"v", partition_key="k")) == [True]
    assert has_value(keyed_batch(*EXAMPLE)) == [True, True, True, False]


@pytest.mark.req("S429-17")
def test_an_encrypted_batch_is_one_message_with_the_key_of_its_metadata() -> None:
    entry = batch_of(b"a", b"b", partition_key="k", encryption_keys=[pb.EncryptionKeys(key="x", value=b"y")])
    opened = open_entry(entry)
    assert opened is not None
    assert opened.messages == [Keyed(ALONE, b"k", True)]
    assert opened.rewritten([ALONE]) == entry
    assert opened.rewritten([]) is None


def test_a_batch_that_nobody_can_read_stays_whole() -> None:
    for entry in (
        plain(b"nonsense", num_messages_in_batch=3),
        plain(compress(pb.ZLIB, b"x")[:-3], num_messages_in_batch=3, compression=pb.ZLIB, uncompressed_size=1),
    ):
        opened = open_entry(entry)
        assert opened is not None
        assert opened.messages is None
        assert opened.rewritten([]) == entry


def test_compaction_removes_markers_and_broken_entries() -> None:
    assert open_entry(plain(b"", marker_type=1)) is None
    assert rewrite(b"garbage", [ALONE]) is None


def test_a_raw_message_is_packed_as_pulsar_does() -> None:
    position, entry = Position(721, 7), plain(b"v")
    packed = pack(position, entry)
    head = bytes.fromhex("08d105100718ffffffffffffffffff01")
    assert packed == len(head).to_bytes(4, "big") + head + len(entry).to_bytes(4, "big") + entry
    assert unpack(packed) == RawMessage(position, entry)
    assert position_of(packed) == position
