"""Which partition a message goes to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pulsarium.client import HashingScheme, Message, PartitionsRoutingMode
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import EARLIEST, World, refusal, take, until

KEYS = ["", "a", "key", "Straße", "日本", "polygenelubricants"]


async def partitions_of(world: World, topic: str, keys: Sequence[str | None], **options: Any) -> list[int]:
    """Where the messages with these keys, None: without one, go."""
    async with world.client.create_producer(topic, batching_enabled=False, **options) as producer:
        return [(await producer.send(b"x", partition_key=key)).partition for key in keys]


@scenario(expected=[[0, 1, 2], True, [0, 1, 2]])
async def round_robin(world: World) -> object:
    topic = await world.partitioned(3)
    found = await partitions_of(world, topic, [None] * 6)
    return [sorted(found[:3]), found[:3] == found[3:], sorted(found[3:])]


@scenario(expected=[2, 2, True])
async def round_robin_by_batches(world: World) -> object:
    topic = await world.partitioned(2)
    ids = await world.send(topic, *[b"x"] * 4, batching_enabled=True, batching_max_messages=2)
    places = [one.partition for one in ids]
    return [places.count(0), places.count(1), places[0] == places[1]]


@scenario(expected=1)
async def a_single_partition(world: World) -> object:
    topic = await world.partitioned(3)
    mode = PartitionsRoutingMode.UseSinglePartition
    return len(set(await partitions_of(world, topic, [None] * 6, message_routing_mode=mode)))


@scenario(expected=[0, 7, 9, 6, 7, 0])
async def keys_by_java_hash(world: World) -> object:
    topic = await world.partitioned(10)
    return await partitions_of(world, topic, KEYS)


@scenario(expected=[0, 0, 8, 6, 0, 0])
async def keys_by_murmur3(world: World) -> object:
    topic = await world.partitioned(10)
    return await partitions_of(world, topic, KEYS, hashing_scheme=HashingScheme.Murmur3_32Hash)


@scenario(expected={"partitions": [1, 3, 0, 1], "ids": ["0:0@1", "0:0@3", "0:0@0", "0:1@1"]})
async def a_router_of_ones_own(world: World) -> object:
    def router(message: Message[Any], partitions: int) -> int:
        return (len(message.data()) + int(message.properties()["n"])) % partitions

    topic = await world.partitioned(4)
    async with world.client.create_producer(
        topic, batching_enabled=False, message_routing_mode=PartitionsRoutingMode.CustomPartition, message_router=router
    ) as producer:
        ids = [await producer.send(b"x" * n, properties={"n": "1"}) for n in (0, 2, 3, 4)]
    return {"partitions": [one.partition for one in ids], "ids": ids}


@scenario(expected={"parts": ["t-partition-0", "t-partition-1"], "data": ["0", "1", "2", "3", "4", "5"]})
async def a_consumer_of_all_partitions(world: World) -> object:
    topic = await world.partitioned(2)
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        await world.send(topic, *[b"%d" % n for n in range(6)])
        messages = await take(consumer, 6)
        return {
            "parts": {message.topic_name() for message in messages},
            "data": sorted(message.data() for message in messages),
        }


@scenario(expected=["t-partition-1", "0:0@1"])
async def one_partition_by_its_name(world: World) -> object:
    topic = await world.partitioned(2)
    async with world.client.subscribe(f"{topic}-partition-1", "s") as consumer:
        async with world.client.create_producer(f"{topic}-partition-1", batching_enabled=False) as producer:
            await producer.send(b"x")
        message = await consumer.receive()
        return [message.topic_name(), message.message_id()]


@scenario(expected={"partitions": [0, 1, 2], "data": ["0", "1", "2", "3", "4", "5"]})
async def partitions_that_come_later(world: World) -> object:
    topic = await world.partitioned(1)
    options: dict[str, Any] = {"auto_update_partitions_interval": 0.1}
    async with (
        world.client.subscribe(topic, "s", initial_position=EARLIEST, **options) as consumer,
        world.client.create_producer(topic, batching_enabled=False, **options) as producer,
    ):
        await world.admin(Admin.grow, topic, 3)

        async def found() -> bool:
            return (await producer.send(b"probe")).partition == 2

        await until(found)
        for n in range(6):
            await producer.send(b"%d" % n)
        messages: list[Message[bytes]] = []
        while len(messages) < 6:
            message = await consumer.receive()
            if message.data() != b"probe":
                messages.append(message)
        return {
            "partitions": {message.message_id().partition for message in messages},
            "data": sorted(message.data() for message in messages),
        }


@scenario(expected=["InvalidTopicName", "InvalidTopicName", "ok"])
async def names_of_topics(world: World) -> object:
    names = ("persistent://public", "file://public/default/x", world.topic())
    return [refusal(partial(world.client.create_producer, name)) for name in names]
