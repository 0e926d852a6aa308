"""The number of a message in its topic (PIP-70), and going by it (PIP-415)."""

from __future__ import annotations

from typing import Any

from pulsarium.client import ConsumerType, MessageId
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import EARLIEST, World, available, data, take, take_until

NUMBERS = [b"%d" % n for n in range(5)]


async def batches_of_3_and_2(world: World, name: str = "t") -> str:
    """PIP-415's topic; the messages are their own indexes."""
    topic = world.topic(name)
    await world.send(topic, *NUMBERS, batching_enabled=True, batching_max_messages=3)
    return topic


@scenario(expected={"index": [0, 1, 2, 3, 4, 5], "ids": ["0:0:0", "0:0:1", "0:0:2", "0:1:0", "0:1:1", "0:2"]})
async def every_message_has_one(world: World) -> object:
    topic = await batches_of_3_and_2(world)
    await world.send(topic, b"5")
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        messages = await available(reader)
        return {
            "index": [message.index() for message in messages],
            "ids": [message.message_id() for message in messages],
        }


@scenario(expected={"ordered": True, "close": True})
async def the_brokers_time(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        messages = await available(reader)
    times = [message.broker_publish_time() or 0 for message in messages]
    return {
        "ordered": times == sorted(times),
        "close": all(abs(t - m.publish_timestamp()) < 10_000 for t, m in zip(times, messages, strict=True)),
    }


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
    """Batches of 3 and 2: from index 1 the application sees 1, 2, 3, 4."""
    topic = await batches_of_3_and_2(world)
    found = {}
    async with world.client.create_reader(topic, MessageId.latest) as reader:
        for index in range(5):
            await reader.seek_to_index(index)
            messages = await available(reader)
            assert [message.index() for message in messages] == [int(message.data()) for message in messages]
            found[str(index)] = data(messages)
    return found


@scenario(expected={"1": ["1", "2", "3", "4"], "3": ["3", "4"]})
async def a_consumer_goes_there_too(world: World) -> object:
    topic = await batches_of_3_and_2(world)
    await world.send(topic, b"end")
    found = {}
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        for index in (1, 3):
            await take_until(consumer, b"end")
            await consumer.seek_to_index(index)
            found[str(index)] = data(await take(consumer, 5 - index))
    return found


@scenario(expected="NotFound")
async def beyond_the_last(world: World) -> object:
    topic = await batches_of_3_and_2(world)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        try:
            await reader.seek_to_index(99)
        except Exception as error:
            return error
    return "ok"


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


@scenario(expected={"0": [0, 1], "1": [0]})
async def each_partition_counts_for_itself(world: World) -> object:
    topic = await world.partitioned(2)
    await world.send(f"{topic}-partition-0", b"a", b"b")
    await world.send(f"{topic}-partition-1", b"c")
    found: dict[str, list[int | None]] = {}
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        for message in await available(reader):
            found.setdefault(str(message.message_id().partition), []).append(message.index())
    return found


@scenario(expected=[0, 1, 2])
async def an_unload_does_not_start_anew(world: World) -> object:
    topic = world.topic()
    for n in range(3):
        await world.send(topic, b"%d" % n)
        await world.admin(Admin.unload, topic)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        return [message.index() for message in await available(reader)]
