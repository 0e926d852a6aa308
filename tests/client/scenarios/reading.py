"""Readers: a place of their own, and no subscription that lasts."""

from __future__ import annotations

from typing import Any

from pulsarium.client import MessageId
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import World, all_of, available, data, ids, take

NUMBERS = [b"%d" % n for n in range(4)]
ALL = [f"{n}" for n in range(4)]


@scenario(expected={"earliest": ALL, "latest": ["new"], "latest, inclusive": ["3", "new"]})
async def from_both_ends(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with (
        world.client.create_reader(topic, MessageId.earliest) as earliest,
        world.client.create_reader(topic, MessageId.latest) as latest,
        world.client.create_reader(topic, MessageId.latest, start_message_id_inclusive=True) as inclusive,
    ):
        found = {"earliest": data(await available(earliest))}
        at_last = data(await available(inclusive))
        await world.send(topic, b"new")
        return found | {
            "latest": data(await available(latest)),
            "latest, inclusive": at_last + data(await available(inclusive)),
        }


@scenario(
    expected={"behind": ["2", "3"], "at": ["1", "2", "3"], "in a batch": ["2", "3"], "at, in a batch": ["1", "2", "3"]}
)
async def from_a_message(world: World) -> object:
    found = {}
    for batched in (False, True):
        topic = world.topic(str(batched))
        places = await world.send(topic, *NUMBERS, batching_enabled=batched)
        where = "in a batch" if batched else ""
        for inclusive in (False, True):
            options: dict[str, Any] = {"start_message_id_inclusive": inclusive}
            name = ", ".join(filter(None, ["at" if inclusive else "" if batched else "behind", where]))
            async with world.client.create_reader(topic, places[1], **options) as reader:
                found[name] = data(await available(reader))
    return found


@scenario(expected=[False, True, True, False, True])
async def whether_there_is_more(world: World) -> object:
    topic = world.topic()
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        found = [await reader.has_message_available()]
        await world.send(topic, b"a", b"b")
        found.append(await reader.has_message_available())
        await reader.read_next()
        found.append(await reader.has_message_available())
        await reader.read_next()
        found.append(await reader.has_message_available())
        await world.send(topic, b"c")
        return [*found, await reader.has_message_available()]


@scenario(expected={"empty": "earliest", "plain": "0:1", "batch": "0:2:1"})
async def the_last_id(world: World) -> object:
    topic = world.topic()
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        (empty,) = await reader.get_last_message_ids()
        plain_sent = await world.send(topic, b"a", b"b")
        (plain,) = await reader.get_last_message_ids()
        batch_sent = await world.send(topic, b"a", b"b", batching_enabled=True)
        (batch,) = await reader.get_last_message_ids()
        assert (plain, batch) == (plain_sent[-1], batch_sent[-1])
        return {"empty": empty, "plain": plain, "batch": batch}


@scenario(expected={"ids": ["0:1@0", "0:0@1", "earliest@2"]})
async def the_last_ids_of_partitions(world: World) -> object:
    topic = await world.partitioned(3)
    await world.send(f"{topic}-partition-0", b"a", b"b")
    await world.send(f"{topic}-partition-1", b"c")
    async with world.client.subscribe(topic, "s") as consumer:
        return {"ids": await consumer.get_last_message_ids()}


@scenario(expected={"data": ALL, "end": "reached"})
async def to_the_end_of_a_terminated_topic(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    await world.admin(Admin.terminate, topic)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        return {"data": await all_of(reader), "end": "reached"}


@scenario(expected={"first": ["0", "1"], "second": ["0", "1", "2", "3"], "then": ["2", "3"], "left": 0})
async def readers_do_not_know_each_other(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.create_reader(topic, MessageId.earliest) as one:
        first = [await one.read_next(), await one.read_next()]
        async with world.client.create_reader(topic, MessageId.earliest) as other:
            second = await available(other)
        then = await available(one)
    stats = await world.admin(Admin.stats, topic)
    return {"first": data(first), "second": data(second), "then": data(then), "left": len(stats["subscriptions"])}


@scenario(expected={"data": ALL, "partitions": [0, 1]})
async def all_partitions(world: World) -> object:
    topic = await world.partitioned(2)
    await world.send(topic, *NUMBERS)
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        messages = await available(reader)
        return {"data": sorted(data(messages)), "partitions": {message.message_id().partition for message in messages}}


@scenario(expected={"before": ["0:0", "0:1"], "after": ["0:2", "0:3"], "new": ["1:0"]})
async def an_unload_does_not_move_it(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.create_reader(topic, MessageId.earliest, receiver_queue_size=1) as reader:
        before = [await reader.read_next(), await reader.read_next()]
        await world.admin(Admin.unload, topic)
        after = [await reader.read_next(), await reader.read_next()]
        await world.send(topic, b"new")
        return {"before": ids(before), "after": ids(after), "new": ids(await available(reader))}


@scenario(expected={"all": ALL, "some": ["2", "3"]})
async def seeking_back_and_forth(world: World) -> object:
    topic = world.topic()
    places = await world.send(topic, *NUMBERS)
    async with world.client.create_reader(topic, MessageId.latest) as reader:
        await reader.seek(MessageId.earliest)
        everything = await available(reader)
        await reader.seek(places[1])
        return {"all": data(everything), "some": data(await available(reader))}


@scenario(expected=["0", "1", "2", "3"])
async def as_a_subscription_would(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.create_reader(topic, MessageId.latest, reader_name="r") as reader,
        world.client.subscribe(topic, "s") as consumer,
    ):
        await world.send(topic, *NUMBERS)
        messages = [await reader.read_next() for _ in NUMBERS]
        assert ids(messages) == ids(await take(consumer, 4))
        return data(messages)
