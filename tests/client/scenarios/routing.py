"""Shows which partition a message goes to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pulsarium.client import PartitionsRoutingMode

from .scenario import scenario
from .world import EARLIEST, World, refusal, take

KEYS = ["", "a", "key", "Straße", "日本", "polygenelubricants"]


async def partitions_of(world: World, topic: str, keys: Sequence[str | None], **options: Any) -> list[int]:
    """Return the partitions of messages with these keys. None is a message without a key."""
    async with world.client.create_producer(topic, batching_enabled=False, **options) as producer:
        return [(await producer.send(b"x", partition_key=key)).partition for key in keys]


@scenario(expected=[[0, 1, 2], True, [0, 1, 2]])
async def round_robin(world: World) -> object:
    topic = await world.partitioned(3)
    found = await partitions_of(world, topic, [None] * 6)
    return [sorted(found[:3]), found[:3] == found[3:], sorted(found[3:])]


@scenario(expected=1)
async def a_single_partition(world: World) -> object:
    topic = await world.partitioned(3)
    mode = PartitionsRoutingMode.UseSinglePartition
    return len(set(await partitions_of(world, topic, [None] * 6, message_routing_mode=mode)))


@scenario(expected=[0, 7, 9, 6, 7, 0])
async def keys_by_java_hash(world: World) -> object:
    topic = await world.partitioned(10)
    return await partitions_of(world, topic, KEYS)


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


@scenario(expected=["InvalidTopicName", "InvalidTopicName", "ok"])
async def names_of_topics(world: World) -> object:
    names = ("persistent://public", "file://public/default/x", world.topic())
    return [refusal(partial(world.client.create_producer, name)) for name in names]
