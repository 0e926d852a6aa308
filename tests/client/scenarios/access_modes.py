"""Shows who may publish to a topic (PIP-68)."""

from __future__ import annotations

from typing import Any

import anyio

from pulsarium.client import Client, ProducerAccessMode

from .scenario import scenario
from .world import World, opening, outcome

Exclusive = ProducerAccessMode.Exclusive


@scenario(expected={"exclusive": "ProducerFenced", "shared": "ProducerBusy", "after": "ok"})
async def a_topic_of_ones_own(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, access_mode=Exclusive):
        second = await opening(world.client.create_producer(topic, access_mode=Exclusive))
        shared = await opening(world.client.create_producer(topic))
    return {
        "exclusive": second,
        "shared": shared,
        "after": await opening(world.client.create_producer(topic, access_mode=Exclusive)),
    }


async def wait_for(client: Client, topic: str, events: list[str]) -> None:
    mode = ProducerAccessMode.WaitForExclusive
    async with client.create_producer(topic, access_mode=mode, batching_enabled=False) as producer:
        events.append("opened")
        await producer.send(b"second")


@scenario(expected={"events": ["closes", "opened"], "data": ["first", "second"]})
async def waiting_for_ones_turn(world: World) -> object:
    topic = world.topic()
    events: list[str] = []
    async with (
        anyio.create_task_group() as tasks,
        world.client.create_producer(topic, access_mode=Exclusive) as producer,
    ):
        tasks.start_soon(wait_for, world.client, topic, events)
        await opening(world.client.create_producer(world.topic("behind it")))
        await producer.send(b"first")
        events.append("closes")
    return {"events": events, "data": await world.contents(topic)}


@scenario(expected={"old": ["ok", "ProducerFenced"], "new": "ok", "epochs": True, "data": ["a", "c"]})
async def throwing_out_who_was_there(world: World) -> object:
    topic = world.topic()
    fencing = ProducerAccessMode.ExclusiveWithFencing
    options: dict[str, Any] = {"batching_enabled": False}
    # The broker ends the fenced producer's connection at its next message, so that connection has no other user.
    async with world.connect() as alone, alone.create_producer(topic, access_mode=Exclusive, **options) as old:
        first = await outcome(old.send(b"a"))
        async with world.client.create_producer(topic, access_mode=fencing, **options) as new:
            fenced = await outcome(old.send(b"b"))
            third = await outcome(new.send(b"c"))
            before, after = old.topic_epoch(), new.topic_epoch()
            assert before is not None
            assert after is not None
            epochs = before < after
    return {"old": [first, fenced], "new": third, "epochs": epochs, "data": await world.contents(topic)}
