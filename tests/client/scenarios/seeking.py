"""Seek to other positions of a topic."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from pulsarium.client import MessageId

from .scenario import scenario
from .world import EARLIEST, World, available, data, take, take_until, until

NUMBERS = [b"%d" % n for n in range(6)]
ALL = [f"{n}" for n in range(6)]


@scenario(expected={"earliest": ALL, "latest": []})
async def to_both_ends(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        await take(consumer, 3)
        await consumer.seek(MessageId.earliest)
        earliest = await take(consumer, 6)
        await consumer.seek(MessageId.earliest)
        await consumer.seek(MessageId.latest)
        await world.send(topic, b"end")
        return {"earliest": data(earliest), "latest": data(await take_until(consumer, b"end"))}


@scenario(expected={"acknowledged": ["1", "2", "end"], "skipped": ["5", "end"]})
async def acknowledged_or_not(world: World) -> object:
    topic = world.topic()
    places = await world.send(topic, *NUMBERS[:3])
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST, ack_receipt_enabled=True) as consumer:
        await consumer.acknowledge_cumulative((await take(consumer, 3))[-1])
        await consumer.seek(places[0])
        await world.send(topic, b"end")
        back = data(await take(consumer, 3))
    topic = world.topic("forward")
    places = await world.send(topic, *NUMBERS)
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        await consumer.seek(places[4])
        await world.send(topic, b"end")
        return {"acknowledged": back, "skipped": data(await take(consumer, 2))}


@scenario(expected={"milliseconds": ["b", "c"], "datetime": ["b", "c"], "future": [], "past": ["a", "b", "c"]})
async def to_a_time(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"a")
    await later_than(world, topic)
    await world.send(topic, b"b", b"c")
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        middle = (await available(reader))[1].publish_timestamp()
        found = {}
        times: dict[str, int | datetime] = {
            "milliseconds": middle,
            "datetime": datetime.fromtimestamp(middle / 1000, UTC),
            "future": middle + 100_000_000,
            "past": 1,
        }
        for name, moment in times.items():
            await reader.seek(moment)
            found[name] = data(await available(reader))
        return found


async def later_than(world: World, topic: str) -> None:
    """Wait until the clock is past the millisecond of the last message."""
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        last = (await available(reader))[-1].publish_timestamp()
    await until(lambda: time.time_ns() // 1_000_000 > last + 5)


@scenario(expected={"one": ["1:1"], "before": ["0", "1"], "after": ["1", "0", "1"], "all": 4})
async def one_partition_alone(world: World) -> object:
    topic = await world.partitioned(2)
    for n in range(2):
        await world.send(f"{topic}-partition-{n}", b"%d" % 0, b"%d" % 1)
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        messages = await take(consumer, 4)
        target = next(message for message in messages if message.message_id().partition == 1)
        await consumer.seek(target.message_id())
        (moved,) = await take(consumer, 1)
        await consumer.seek(MessageId.earliest)
        again = await take(consumer, 4)
        return {
            "one": [f"{moved.message_id().partition}:{moved.data().decode()}"],
            "before": sorted(m.data() for m in messages if m.message_id().partition == 1),
            "after": [moved.data(), *[m.data() for m in again if m.message_id().partition == 0]],
            "all": len(again),
        }
