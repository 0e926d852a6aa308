"""Indexes of messages in their topic (PIP-70), and seeking by index (PIP-415)."""

from __future__ import annotations

from typing import Any

from pulsarium.client import ConsumerType, MessageId

from .scenario import scenario
from .world import EARLIEST, World, available, data, take_until

NUMBERS = [b"%d" % n for n in range(5)]


async def batches_of_3_and_2(world: World, name: str = "t") -> str:
    """Publish the messages of PIP-415's example, whose payloads are their indexes. Return the topic."""
    topic = world.topic(name)
    await world.send(topic, *NUMBERS, batching_enabled=True, batching_max_messages=3)
    return topic


@scenario(
    expected={
        "0": ["0", "1", "2", "3", "4"],
        "1": ["1", "2", "3", "4"],
        "2": ["2", "3", "4"],
        "3": ["3", "4"],
        "4": ["4"],
    }
)
async def pip_415(world: World) -> object:
    """Seek to each index of batches of 3 and 2: from index 1 the application sees 1, 2, 3, 4."""
    topic = await batches_of_3_and_2(world)
    found = {}
    async with world.client.create_reader(topic, MessageId.latest) as reader:
        for index in range(5):
            await reader.seek_to_index(index)
            messages = await available(reader)
            assert [message.index() for message in messages] == [int(message.data()) for message in messages]
            found[str(index)] = data(messages)
    return found


@scenario(expected={"single": ["0", "2", "3", "4"], "whole": ["0", "1", "2", "4"]})
async def acknowledging_by_index(world: World) -> object:
    found = {}
    for name, index in (("single", 1), ("whole", 3)):
        topic = await batches_of_3_and_2(world, name)
        await world.send(topic, b"end")
        options: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "initial_position": EARLIEST}
        async with world.client.subscribe(
            topic, "s", batch_index_ack_enabled=True, ack_receipt_enabled=True, **options
        ) as consumer:
            await consumer.acknowledge_index(index)
        async with world.client.subscribe(topic, "s", **options) as consumer:
            found[name] = data(await take_until(consumer, b"end"))
    return found
