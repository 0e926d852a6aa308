"""Messages of several entries (PIP-37)."""

from __future__ import annotations

from typing import Any

from pulsarium.client import ConsumerType, MessageId

from .scenario import scenario
from .world import EARLIEST, World, available, outcome, take

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
        return {
            "receipt": receipt,
            "id": large.message_id(),
            "content": same(large.data()),
            "next": small.message_id(),
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
    return {
        "without": without,
        "with": said,
        "size": len(found),
        "first": first,
        "last": MessageId(*place.entry),
    }
