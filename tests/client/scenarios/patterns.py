"""Subscribe to several topics, by name and by pattern, and to topics that come and go."""

from __future__ import annotations

import re
from typing import Any

from .scenario import scenario
from .world import EARLIEST, World, data, outcome, take


def pattern(namespace: str, expression: str) -> re.Pattern[str]:
    return re.compile(f"persistent://{namespace}/{expression}")


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
