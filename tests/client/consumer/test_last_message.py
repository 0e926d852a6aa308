"""GET_LAST_MESSAGE_ID with an entry behind the answer (v22), and brokers that send none: under trio and asyncio."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from pulsarium.client.client import Client
from pulsarium.client.consumer.last_entry import LastEntry
from pulsarium.client.message_id import MessageId
from pulsarium.client.opening import open_client
from pulsarium.proto.entry import build
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.both import on_both
from tests.client.consumer.test_last_entry import EXAMPLE, batch_payload, metadata_of
from tests.client.peer import Peer, Peers, Type

WHERE = {"ledgerId": 7, "entryId": 3}
EXAMPLE_ENTRY = build(metadata_of(4), batch_payload(EXAMPLE))


class Custom:
    """A compaction service whose properties say what is left."""

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
    """A client whose broker holds these entries, and says this of the last message."""
    peers = Peers()

    async def serve() -> None:
        peer = await peers.next()
        await peer.take_in()
        await peer.lead_here()
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError):
            while True:
                await answer(peer, *await peer.next())
        await peer.close()

    async def answer(peer: Peer, command: pb.BaseCommand, _: bytes) -> None:
        if command.type == Type.SUBSCRIBE:
            await peer.say(Type.SUCCESS, request_id=command.subscribe.request_id)
            for number, entry in enumerate(entries):
                where = {**WHERE, "entryId": number}
                await peer.say(Type.MESSAGE, entry, consumer_id=command.subscribe.consumer_id, message_id=where)
        elif command.type == Type.PARTITIONED_METADATA:
            request_id = command.partitionMetadata.request_id
            await peer.say(Type.PARTITIONED_METADATA_RESPONSE, request_id=request_id, partitions=0)
        elif command.type == Type.LOOKUP:
            await peer.say(
                Type.LOOKUP_RESPONSE,
                request_id=command.lookupTopic.request_id,
                response=pb.CommandLookupTopicResponse.Connect,
                brokerServiceUrl="pulsar://a:6650",
            )
        elif command.type == Type.CLOSE_CONSUMER:
            await peer.say(Type.SUCCESS, request_id=command.close_consumer.request_id)
        elif command.type == Type.GET_LAST_MESSAGE_ID:
            request_id = command.getLastMessageId.request_id
            where = {**WHERE, **last}
            await peer.say(Type.GET_LAST_MESSAGE_ID_RESPONSE, buffer, request_id=request_id, last_message_id=where)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        async with open_client("pulsar://a:6650", peers.settings) as client:
            yield client  # closing it ends `serve`
    peers.close()


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
    """Converter and payload processor, on consumer and reader: of a batch only the value that is left."""
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
