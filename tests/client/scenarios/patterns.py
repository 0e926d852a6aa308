"""Several topics at once, by name and by pattern, and topics that come and go."""

from __future__ import annotations

import re
from typing import Any

from pulsarium.client import RegexSubscriptionMode
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import EARLIEST, World, data, outcome, take, until


def pattern(namespace: str, expression: str) -> re.Pattern[str]:
    return re.compile(f"persistent://{namespace}/{expression}")


@scenario(expected={"data": ["a", "b", "c"], "topics": ["one", "three", "two"]})
async def several_topics(world: World) -> object:
    topics = [world.topic(name) for name in ("one", "two", "three")]
    async with world.client.subscribe(topics, "s", initial_position=EARLIEST) as consumer:
        for topic, letter in zip(topics, (b"a", b"b", b"c"), strict=True):
            await world.send(topic, letter)
        messages = await take(consumer, 3)
        return {"data": sorted(data(messages)), "topics": {message.topic_name() for message in messages}}


@scenario(
    expected={"one": ["a1", "a2"], "two": ["b1", "b2"], "ids": "InvalidConfiguration", "again": ["a2", "b1", "b2"]}
)
async def acknowledging_on_several_topics(world: World) -> object:
    topics = [world.topic(name) for name in ("one", "two")]
    await world.send(topics[0], b"a1", b"a2")
    await world.send(topics[1], b"b1", b"b2")
    options: dict[str, Any] = {"initial_position": EARLIEST, "ack_receipt_enabled": True}
    async with world.client.subscribe(topics, "s", **options) as consumer:
        messages = await take(consumer, 4)
        one, two = ([m for m in messages if m.topic_name() == topic] for topic in topics)
        await consumer.acknowledge_cumulative(one[0])
        ids = await outcome(consumer.acknowledge(two[0].message_id()))
    async with world.client.subscribe(topics, "s", **options) as consumer:
        again = await take(consumer, 3)
        return {"one": data(one), "two": data(two), "ids": ids, "again": sorted(data(again))}


@scenario(expected={"data": ["a", "b"], "new": ["c"], "left out": ["x"]})
async def by_a_pattern(world: World) -> object:
    namespace = await world.own_namespace()
    for name, content in (("in-1", b"a"), ("in-2", b"b"), ("out", b"x")):
        await world.send(f"persistent://{namespace}/{name}", content)
    async with world.client.subscribe(
        pattern(namespace, "in-.*"), "s", initial_position=EARLIEST, pattern_auto_discovery_period=0.2
    ) as consumer:
        found = data(await take(consumer, 2))
        await world.send(f"persistent://{namespace}/in-3", b"c")
        new = data(await take(consumer, 1))
        async with world.client.subscribe(f"persistent://{namespace}/out", "s", initial_position=EARLIEST) as out:
            return {"data": sorted(found), "new": new, "left out": data(await take(out, 1))}


@scenario(expected={"partitions": [0, 1], "data": ["0", "1"]})
async def partitions_match_with_their_topic(world: World) -> object:
    namespace = await world.own_namespace()
    topic = f"persistent://{namespace}/in-p"
    await world.admin(Admin.create_partitioned, topic, 2)
    for n in range(2):
        await world.send(f"{topic}-partition-{n}", b"%d" % n)
    async with world.client.subscribe(pattern(namespace, "in-.*"), "s", initial_position=EARLIEST) as consumer:
        messages = await take(consumer, 2)
        return {"partitions": {message.message_id().partition for message in messages}, "data": sorted(data(messages))}


@scenario(expected={"left": ["in-2"], "data": ["b2"]})
async def topics_that_are_deleted(world: World) -> object:
    namespace = await world.own_namespace(autoTopicCreation={"allowAutoTopicCreation": False})
    one, two = (f"persistent://{namespace}/in-{n}" for n in (1, 2))
    for topic in (one, two):
        await world.admin(Admin.call, "PUT", f"/admin/v2/{topic.replace('://', '/')}")
    await world.send(one, b"a")
    await world.send(two, b"b")
    async with world.client.subscribe(
        pattern(namespace, "in-.*"), "s", initial_position=EARLIEST, pattern_auto_discovery_period=0.2
    ) as consumer:
        await take(consumer, 2)
        await world.admin(Admin.call, "DELETE", f"/admin/v2/{one.replace('://', '/')}?force=true")
        await until(lambda: [part.topic for part in consumer._parts.all] == [two])
        await world.send(two, b"b2")
        return {"left": [part.topic for part in consumer._parts.all], "data": data(await take(consumer, 1))}


@scenario(expected={"persistent": ["t"], "both": ["non-persistent t", "t"]})
async def by_domain(world: World) -> object:
    namespace = await world.own_namespace()
    found = {}
    expression = re.compile(f"{namespace}/t.*")
    async with (
        world.client.create_producer(f"persistent://{namespace}/t"),
        world.client.create_producer(f"non-persistent://{namespace}/t"),
    ):
        for name, mode in (
            ("persistent", RegexSubscriptionMode.PersistentOnly),
            ("both", RegexSubscriptionMode.AllTopics),
        ):
            async with world.client.subscribe(expression, name, regex_subscription_mode=mode) as consumer:
                found[name] = {part.topic for part in consumer._parts.all}
    return found
