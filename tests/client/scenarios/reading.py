"""Readers: a position of their own, and no durable subscription."""

from __future__ import annotations

from pulsarium.client import MessageId
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import World, available, data, ids

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
