"""Messages of several entries (PIP-37)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pulsarium.client import CompressionType, ConsumerType, MessageId

from .scenario import scenario
from .world import EARLIEST, World, available, ids, outcome, refusal, take

CONTENT = bytes(range(256)) * 20
CHUNKS: dict[str, Any] = {"chunking_enabled": True, "chunk_max_message_size": 1000}


def same(content: bytes) -> str:
    return "same" if content == CONTENT else f"{len(content)} other bytes"


@scenario(expected={"receipt": "0:5 from 0:0", "id": "0:5 from 0:0", "content": "same", "next": "0:6"})
async def a_message_of_six(world: World) -> object:
    topic = world.topic()
    (receipt,) = await world.send(topic, CONTENT, **CHUNKS)
    await world.send(topic, b"small", **CHUNKS)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        large, small = await available(reader)
        return {"receipt": receipt, "id": large.message_id(), "content": same(large.data()), "next": small.message_id()}


@scenario(expected={"NONE": "same", "LZ4": "same", "ZLib": "same", "ZSTD": "same", "SNAPPY": "same"})
async def each_compression(world: World) -> object:
    found = {}
    for compression in CompressionType:
        topic = world.topic(compression.name)
        options = CHUNKS | {"chunk_max_message_size": 300}
        await world.send(topic, CONTENT, compression_type=compression, **options)
        (content,) = await world.contents(topic)
        found[compression.name] = same(content)
    return found


@scenario(expected={"data": ["same", "same"], "keys": ["a", "b"], "interleaved": [True, True]})
async def of_two_producers(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.create_producer(topic, batching_enabled=False, **CHUNKS) as one,
        world.client.create_producer(topic, batching_enabled=False, **CHUNKS) as other,
    ):
        first, second = one.send_nowait(CONTENT, partition_key="a"), other.send_nowait(CONTENT, partition_key="b")
        sent = [await first.wait(), await second.wait()]
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        messages = sorted(await available(reader), key=lambda message: message.partition_key())
        return {
            "data": [same(message.data()) for message in messages],
            "keys": [message.partition_key() for message in messages],
            "interleaved": [one == other for one, other in zip(sent, ids(messages), strict=True)],
        }


@scenario(expected={"again": "same", "counts": [0, 1], "left": ["end"]})
async def refused_and_acknowledged(world: World) -> object:
    topic = world.topic()
    await world.send(topic, CONTENT, **CHUNKS)
    async with world.client.subscribe(
        topic,
        "s",
        initial_position=EARLIEST,
        consumer_type=ConsumerType.Shared,
        negative_ack_redelivery_delay=0.05,
        ack_receipt_enabled=True,
    ) as consumer:
        first = await consumer.receive()
        consumer.negative_acknowledge(first)
        second = await consumer.receive()
        await consumer.acknowledge(second)
    await world.send(topic, b"end")
    async with world.client.subscribe(topic, "s", consumer_type=ConsumerType.Shared) as consumer:
        return {
            "again": same(second.data()),
            "counts": [first.redelivery_count(), second.redelivery_count()],
            "left": await take(consumer, 1),
        }


@scenario(expected={"behind": ["b"], "at": ["same", "b"], "kept": ["b"]})
async def seeking(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"a")
    (place,) = await world.send(topic, CONTENT, **CHUNKS)
    await world.send(topic, b"b")
    found = {}
    for name, start, inclusive in (
        ("behind", place, False),
        ("at", place, True),
        ("kept", MessageId.deserialize(place.serialize()), False),
    ):
        async with world.client.create_reader(topic, start, start_message_id_inclusive=inclusive) as reader:
            contents = [message.data() for message in await available(reader)]
            found[name] = ["same" if content == CONTENT else content for content in contents]
    return found


@scenario(expected={"encrypted": "same", "receipt": "0:5 from 0:0"})
async def encrypted(world: World) -> object:
    topic, reader = world.topic(), world.keys["rsa"].reader
    (receipt,) = await world.send(topic, CONTENT, encryption_keys=["k"], crypto_key_reader=reader, **CHUNKS)
    (content,) = await world.contents(topic, crypto_key_reader=reader)
    return {"encrypted": same(content), "receipt": receipt}


@scenario(expected={"without": "MessageTooBig", "with": "ok", "size": 6000000, "first": "0:0", "last": "0:1"})
async def larger_than_a_message_may_be(world: World) -> object:
    topic, content = world.topic(), bytes(6_000_000)
    async with world.client.create_producer(topic, batching_enabled=False) as producer:
        without = await outcome(producer.send(content))
    async with world.client.create_producer(topic, batching_enabled=False, chunking_enabled=True) as producer:
        receipt = producer.send_nowait(content)
        said = await outcome(receipt.wait())
        place = await receipt.wait()
    (found,) = await world.contents(topic)
    assert place.first_chunk is not None
    first = MessageId(*place.first_chunk.entry)
    return {"without": without, "with": said, "size": len(found), "first": first, "last": MessageId(*place.entry)}


@scenario(expected=["ok", "InvalidConfiguration"])
async def not_in_batches(world: World) -> object:
    def create(batching: bool) -> object:
        return world.client.create_producer(world.topic(), batching_enabled=batching, **CHUNKS)

    return [refusal(partial(create, batching)) for batching in (False, True)]
