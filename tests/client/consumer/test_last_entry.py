"""Message ids that the client reads from the last compacted entry (PIP-429)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarium.client import Client, MessageId
from pulsarium.client.consumer.last_entry import DefaultPayloadToMessageIdConverter, LastEntry, LastMessageIds
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import InvalidMessage
from pulsarium.proto import batch, compression
from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.entry.encrypted import Keys
from tests.client.hostile.clocks import on_both
from tests.client.hostile.played import playing
from tests.client.peer import Peer, Type

KINDS = pb.CompressionType.values()
# the PIP's example: k0=v0, k0=v1, k1=v0, k1=null, of which compaction keeps the second
EXAMPLE = (True, False, True, True)


def batch_payload(compacted_out: tuple[bool, ...]) -> bytes:
    return batch.pack(
        (pb.SingleMessageMetadata(payload_size=0, compacted_out=gone), b"" if gone else b"v") for gone in compacted_out
    )


def metadata_of(size: int | None, indexes: tuple[int, ...] = (), **fields: object) -> pb.MessageMetadata:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, compacted_batch_indexes=indexes)
    metadata.MergeFrom(pb.MessageMetadata(**fields))  # type: ignore[arg-type]
    if size is not None:
        metadata.num_messages_in_batch = size
    return metadata


def last_entry(metadata: pb.MessageMetadata, payload: bytes) -> LastEntry:
    return LastEntry(7, 3, 2, metadata.SerializeToString(), payload)


def response(ledger_id: int = 7, entry_id: int = 3, **fields: Any) -> pb.CommandGetLastMessageIdResponse:
    where = pb.MessageIdData(ledgerId=ledger_id % 2**64, entryId=entry_id % 2**64, **fields)
    return pb.CommandGetLastMessageIdResponse(request_id=1, last_message_id=where)


class Recorder:
    """A converter of the application that records its calls."""

    def __init__(self) -> None:
        self.entries: list[LastEntry] = []

    def convert(self, last_entry: LastEntry) -> MessageId:
        self.entries.append(last_entry)
        return MessageId(1, 2, 3, 4)


@pytest.mark.req("S429-16", "S429-20", "S429-23")
@pytest.mark.parametrize(
    ("metadata", "payload", "index"),
    [
        (metadata_of(None), b"one message", -1),
        (metadata_of(1), b"whatever", -1),
        (metadata_of(4, (0, 2)), b"never looked at", 2),
        (metadata_of(4, (1,), encryption_keys=[pb.EncryptionKeys(key="k", value=b"")]), b"never looked at", 1),
        (metadata_of(4, encryption_keys=[pb.EncryptionKeys(key="k", value=b"")]), b"not decrypted", 3),
        (metadata_of(4, encryption_keys=[pb.EncryptionKeys(key="k", value=b"")]), batch_payload(EXAMPLE), 1),
        (metadata_of(1, encryption_keys=[pb.EncryptionKeys(key="k", value=b"")]), b"whatever", -1),
        (metadata_of(4), batch_payload(EXAMPLE), 1),
    ],
)
def test_the_default_converter_looks_in_the_brokers_order(
    metadata: pb.MessageMetadata, payload: bytes, index: int
) -> None:
    assert DefaultPayloadToMessageIdConverter().convert(last_entry(metadata, payload)) == MessageId(7, 3, 2, index)


@pytest.mark.req("S429-20")
@given(st.lists(st.booleans(), min_size=2, max_size=20).filter(lambda gone: not all(gone)))
def test_old_and_new_compactors_give_the_same_id(gone: list[bool]) -> None:
    kept = tuple(index for index, out in enumerate(gone) if not out)
    payload = batch_payload(tuple(gone))
    convert = DefaultPayloadToMessageIdConverter().convert
    new = convert(last_entry(metadata_of(len(gone), kept), payload))
    assert new == convert(last_entry(metadata_of(len(gone)), payload)) == MessageId(7, 3, 2, kept[-1])


def test_a_batch_of_which_nothing_is_left_is_an_error() -> None:
    with pytest.raises(InvalidMessage):
        DefaultPayloadToMessageIdConverter().convert(last_entry(metadata_of(2), batch_payload((True, True))))


@pytest.mark.req("S429-08")
def test_a_plain_answer_is_used_as_it_is() -> None:
    recorder = Recorder()
    ids = LastMessageIds(converter=recorder)
    assert ids.read(response(partition=5, batch_index=9), b"") == MessageId(7, 3, 5, 9)
    empty = ids.read(response(-1, -1), b"")
    assert (empty.ledger_id, empty.entry_id) == (-1, -1)
    assert recorder.entries == []


@pytest.mark.req("S429-22", "S429-27")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("checksum", [True, False])
def test_the_converter_gets_the_entry_with_a_plain_payload(kind: pb.CompressionType, checksum: bool) -> None:
    payload = batch_payload(EXAMPLE)
    metadata = metadata_of(4, compression=kind, uncompressed_size=len(payload))
    buffer = build(metadata, compression.compress(kind, payload), checksum=checksum)
    recorder = Recorder()
    assert LastMessageIds(converter=recorder).read(response(partition=2), buffer) == MessageId(1, 2, 3, 4)
    assert recorder.entries == [LastEntry(7, 3, 2, metadata.SerializeToString(), payload)]
    assert LastMessageIds().read(response(partition=2), buffer) == MessageId(7, 3, 2, 1)


@pytest.mark.req("S429-17")
def test_an_encrypted_batch_without_a_key_counts_whole() -> None:
    key = pb.EncryptionKeys(key="k", value=b"?")
    metadata = metadata_of(4, encryption_keys=[key], compression=pb.LZ4, uncompressed_size=1000)
    assert LastMessageIds().read(response(), build(metadata, b"secret")) == MessageId(7, 3, -1, 3)


@pytest.mark.req("S429-17")
@pytest.mark.parametrize("compression_type", [pb.NONE, pb.LZ4])
def test_of_an_encrypted_batch_with_its_key_the_last_that_was_kept_counts(compression_type: pb.CompressionType) -> None:
    metadata = metadata_of(4)
    buffer = Encoder(compression_type, ["rsa"], Keys()).single(metadata, batch_payload(EXAMPLE))
    assert LastMessageIds(Keys()).read(response(partition=2), buffer) == MessageId(7, 3, 2, 1)


@pytest.mark.req("S429-22")
def test_a_converter_judges_what_cannot_be_decrypted() -> None:
    metadata = metadata_of(4, encryption_keys=[pb.EncryptionKeys(key="k", value=b"?")])
    recorder = Recorder()
    buffer = build(metadata, b"secret")
    assert LastMessageIds(converter=recorder).read(response(partition=2), buffer) == MessageId(1, 2, 3, 4)
    assert recorder.entries == [LastEntry(7, 3, 2, metadata.SerializeToString(), b"secret")]


@pytest.mark.parametrize("damaged", [b"\x0e", b"\x0e\x01\0\0", b"\0\0\0\x05ab", b"\0\0\0\0", b"\x0e\x01wrong.\0\0\0\0"])
def test_a_damaged_buffer_is_an_error(damaged: bytes) -> None:
    with pytest.raises(InvalidMessage):
        LastMessageIds().read(response(), damaged)


@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_give_an_id_or_an_error(data: bytes) -> None:
    with contextlib.suppress(InvalidMessage):
        assert LastMessageIds().read(response(), data).ledger_id == 7


# ---- GET_LAST_MESSAGE_ID with an entry behind the answer (v22), and brokers that send none: under trio and asyncio


WHERE = {"ledgerId": 7, "entryId": 3}
EXAMPLE_ENTRY = build(metadata_of(4), batch_payload(EXAMPLE))


class Custom:
    """A converter and payload processor for batches of which the property `retained` names the only kept index."""

    def convert(self, last_entry: LastEntry) -> MessageId:
        metadata = pb.MessageMetadata.FromString(last_entry.metadata_buffer)
        (retained,) = metadata.properties
        return MessageId(last_entry.ledger_id, last_entry.entry_id, last_entry.partition_index, int(retained.value))

    def process(
        self, metadata: pb.MessageMetadata, payload: bytes
    ) -> list[tuple[int, pb.SingleMessageMetadata | None, bytes]]:
        (retained,) = metadata.properties
        return [(int(retained.value), None, payload)]


class Broken:
    def convert(self, last_entry: LastEntry) -> MessageId:
        raise ZeroDivisionError("converter")


@asynccontextmanager
async def answering(buffer: bytes, *entries: bytes, **last: int) -> AsyncIterator[Client]:
    """Connect a client to a played broker that delivers these entries and answers GET_LAST_MESSAGE_ID with `last`."""
    async with playing() as (played, client):

        async def subscribe(peer: Peer, body: Any) -> None:
            await played.answer(peer, body)
            for number, entry in enumerate(entries):
                where = {**WHERE, "entryId": number}
                await peer.say(Type.MESSAGE, entry, consumer_id=body.consumer_id, message_id=where)

        async def last_id(peer: Peer, body: Any) -> None:
            ids = {"request_id": body.request_id, "last_message_id": {**WHERE, **last}}
            await peer.say(Type.GET_LAST_MESSAGE_ID_RESPONSE, buffer, **ids)

        played.on |= {Type.SUBSCRIBE: subscribe, Type.GET_LAST_MESSAGE_ID: last_id}
        yield client


@pytest.mark.req("S429-23")
@on_both
async def test_the_last_id_comes_from_the_entry() -> None:
    async with answering(EXAMPLE_ENTRY, partition=2) as client:
        async with client.subscribe("t", "s", read_compacted=True) as consumer:
            assert await consumer.get_last_message_ids() == [MessageId(7, 3, 2, 1)]
        async with client.create_reader("t", MessageId(7, 3, 2, 1), read_compacted=True) as reader:
            assert await reader.get_last_message_ids() == [MessageId(7, 3, 2, 1)]
            assert not await reader.has_message_available()
        async with client.create_reader("t", MessageId(7, 3, 2, 0), read_compacted=True) as reader:
            assert await reader.has_message_available()


@pytest.mark.req("S429-24")
@on_both
async def test_a_converters_exception_is_the_result() -> None:
    async with answering(EXAMPLE_ENTRY) as client:
        converter = Broken()
        async with client.subscribe("t", "s", payload_to_message_id_converter=converter) as consumer:
            with pytest.raises(ZeroDivisionError):
                await consumer.get_last_message_ids()
        async with client.create_reader("t", MessageId.earliest, payload_to_message_id_converter=converter) as reader:
            with pytest.raises(ZeroDivisionError):
                await reader.has_message_available()
            with pytest.raises(ZeroDivisionError):
                await reader.get_last_message_ids()


@pytest.mark.req("S429-25")
@on_both
async def test_a_format_of_ones_own() -> None:
    """A consumer and a reader receive only the kept value of a batch in that format. Its message id is the last one."""
    custom = Custom()
    entry = build(metadata_of(4, properties=[pb.KeyValue(key="retained", value="2")]), b"custom")
    async with answering(entry, entry, entryId=0) as client:
        async with client.subscribe(
            "t", "s", payload_to_message_id_converter=custom, message_payload_processor=custom
        ) as consumer:
            message = await consumer.receive()
            assert (message.data(), message.message_id()) == (b"custom", MessageId(7, 0, -1, 2))
            assert await consumer.get_last_message_ids() == [MessageId(7, 0, -1, 2)]
        async with client.create_reader(
            "t", MessageId.earliest, payload_to_message_id_converter=custom, message_payload_processor=custom
        ) as reader:
            assert await reader.has_message_available()
            assert (await reader.read_next()).data() == b"custom"
            assert not await reader.has_message_available()
