"""Messages that share an entry."""

from __future__ import annotations

from pulsarium.client import CompressionType

from .scenario import scenario
from .world import World, data, ids, take

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


@scenario(expected={"NONE": "same", "LZ4": "same", "ZLib": "same", "ZSTD": "same", "SNAPPY": "same"})
async def each_compression_of_a_batch(world: World) -> object:
    contents = [letter * 1000 for letter in LETTERS]
    found = {}
    for compression in CompressionType:
        topic = world.topic(compression.name)
        await world.send(topic, *contents, batching_enabled=True, compression_type=compression)
        found[compression.name] = "same" if await world.contents(topic) == contents else "not the same"
    return found
