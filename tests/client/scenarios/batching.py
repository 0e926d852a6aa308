"""Messages that share an entry."""

from __future__ import annotations

import anyio

from pulsarium.client import CompressionType, MessageId

from .scenario import scenario
from .world import World, available, data, ids, outcome, take

LETTERS = [b"a", b"b", b"c", b"d", b"e"]


@scenario(
    expected={
        "receipts": ["0:0:0", "0:0:1", "0:0:2", "0:0:3", "0:0:4"],
        "data": ["a", "b", "c", "d", "e"],
        "ids": ["0:0:0", "0:0:1", "0:0:2", "0:0:3", "0:0:4"],
        "sizes": [5, 5, 5, 5, 5],
        "sequence ids": [0, 1, 2, 3, 4],
    }
)
async def one_batch(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s") as consumer:
        receipts = await world.send(topic, *LETTERS, batching_enabled=True)
        messages = await take(consumer, 5)
        return {
            "receipts": receipts,
            "data": data(messages),
            "ids": ids(messages),
            "sizes": [message.message_id().batch_size for message in messages],
            "sequence ids": [message.sequence_id() for message in messages],
        }


@scenario(expected=["0:0:0", "0:0:1", "0:1:0", "0:1:1", "0:2"])
async def batches_of_so_many(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *LETTERS, batching_enabled=True, batching_max_messages=2)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        return ids(await available(reader))


@scenario(expected=["0:0:0", "0:0:1", "0:1", "0:2:0", "0:2:1"])
async def batches_of_so_many_bytes(world: World) -> object:
    topic = world.topic()
    contents = [bytes(40), bytes(40), bytes(100), bytes(10), bytes(20)]
    await world.send(topic, *contents, batching_enabled=True, batching_max_allowed_size_in_bytes=100)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        return ids(await available(reader))


@scenario(expected={"ids": ["0:0:0", "0:0:1", "0:0:2", "0:0:3", "0:0:4"], "data": ["a", "b", "c", "d", "e"]})
async def tasks_that_send_at_once_share_a_batch(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer, anyio.create_task_group() as tasks:
        for letter in LETTERS:
            tasks.start_soon(producer.send, letter)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        messages = await available(reader)
        return {"ids": ids(messages), "data": sorted(data(messages))}


@scenario(expected={"ids": ["0:0:0", "0:0:1"], "waited": True})
async def a_batch_goes_when_its_time_is_up(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, batching_max_publish_delay=0.05) as producer:
        start = anyio.current_time()
        receipts = [producer.send_nowait(b"a"), producer.send_nowait(b"b")]
        found = [await receipt.wait() for receipt in receipts]
        return {"ids": found, "waited": anyio.current_time() - start >= 0.049}


@scenario(expected={"NONE": "same", "LZ4": "same", "ZLib": "same", "ZSTD": "same", "SNAPPY": "same"})
async def each_compression_of_a_batch(world: World) -> object:
    contents = [letter * 1000 for letter in LETTERS]
    found = {}
    for compression in CompressionType:
        topic = world.topic(compression.name)
        await world.send(topic, *contents, batching_enabled=True, compression_type=compression)
        found[compression.name] = "same" if await world.contents(topic) == contents else "not the same"
    return found


@scenario(expected=[["k0", {"n": "0"}, 1], ["k1", {"n": "1"}, 2], ["k2", {"n": "2"}, 3]])
async def each_message_of_a_batch_has_its_own(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s") as consumer:
        async with world.client.create_producer(topic, batching_max_publish_delay=10.0) as producer:
            for n in range(3):
                producer.send_nowait(b"x", partition_key=f"k{n}", properties={"n": str(n)}, event_timestamp=n + 1)
        return [[m.partition_key(), m.properties(), m.event_timestamp()] for m in await take(consumer, 3)]


@scenario(expected={"one": "ok", "too big": "MessageTooBig", "other": "ok", "data": ["a", "b"]})
async def what_is_too_big_leaves_its_neighbours_alone(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, batching_max_publish_delay=10.0) as producer:
        receipts = [producer.send_nowait(content) for content in (b"a", bytes(6_000_000), b"b")]
        await producer.flush()
        one, too_big, other = [await outcome(receipt.wait()) for receipt in receipts]
    return {"one": one, "too big": too_big, "other": other, "data": await world.contents(topic)}
