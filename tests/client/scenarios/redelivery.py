"""What comes again, and how often it did."""

from __future__ import annotations

from functools import partial
from typing import Any

from pulsarium.client import Consumer, ConsumerType, Message, MessageId
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import EARLIEST, World, data, take, take_until, until

NUMBERS = [b"%d" % n for n in range(5)]
SHARED: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "initial_position": EARLIEST}


def counted(messages: list[Message[bytes]]) -> list[list[object]]:
    """Contents, and how often each was delivered before."""
    return [[message.data(), message.redelivery_count()] for message in messages]


async def nacked(consumer: Consumer[bytes], times: int) -> list[list[object]]:
    """One message, refused so often."""
    messages = []
    for _ in range(times):
        messages.append(await consumer.receive())
        consumer.negative_acknowledge(messages[-1])
    return counted(messages)


@scenario(expected=[["0", 0], ["0", 1], ["0", 2]])
async def a_nack_counts(world: World) -> object:
    topic = world.topic()
    await world.send(topic, NUMBERS[0])
    async with world.client.subscribe(topic, "s", negative_ack_redelivery_delay=0.05, **SHARED) as consumer:
        return await nacked(consumer, 3)


@scenario(expected=[["1", 1], ["3", 1]])
async def only_what_was_refused(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.subscribe(topic, "s", negative_ack_redelivery_delay=0.05, **SHARED) as consumer:
        for message in await take(consumer, 5):
            if message.data() in (b"1", b"3"):
                consumer.negative_acknowledge(message)
        return counted(await take(consumer, 2))


@scenario(expected={"data": ["1", "2", "3", "4", "end"], "counts": [0, 0, 0, 0, 0]})
async def a_nack_on_exclusive_brings_everything(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.subscribe(
        topic, "s", initial_position=EARLIEST, negative_ack_redelivery_delay=0.05, ack_receipt_enabled=True
    ) as consumer:
        messages = await take(consumer, 5)
        await consumer.acknowledge(messages[0])
        consumer.negative_acknowledge(messages[3])
        again = await take(consumer, 4)
        await world.send(topic, b"end")
        again += await take(consumer, 1)
        return {"data": data(again), "counts": [message.redelivery_count() for message in again]}


@scenario(expected=[["0", 1], ["2", 1], ["4", 1]])
async def everything_unacknowledged(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.subscribe(topic, "s", ack_receipt_enabled=True, **SHARED) as consumer:
        for message in await take(consumer, 5):
            if int(message.data()) % 2:
                await consumer.acknowledge(message)
        await consumer.redeliver_unacknowledged_messages()
        return counted(await take(consumer, 3))


@scenario(expected=[["0", 1], ["1", 1], ["2", 1]])
async def a_batch_comes_again_as_a_whole(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS[:3], batching_enabled=True)
    async with world.client.subscribe(topic, "s", negative_ack_redelivery_delay=0.05, **SHARED) as consumer:
        messages = await take(consumer, 3)
        consumer.negative_acknowledge(messages[1])
        return counted(await take(consumer, 3))


@scenario(expected=[["0", 1], ["2", 1]])
async def of_a_batch_what_is_left(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS[:3], batching_enabled=True)
    async with world.client.subscribe(
        topic, "s", negative_ack_redelivery_delay=0.05, batch_index_ack_enabled=True, ack_receipt_enabled=True, **SHARED
    ) as consumer:
        messages = await take(consumer, 3)
        await consumer.acknowledge(messages[1])
        consumer.negative_acknowledge(messages[0])
        return counted(await take(consumer, 2))


@scenario(expected={"data": ["0", "1", "2", "3", "4"], "ids": True})
async def an_unloaded_topic_loses_nothing(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.subscribe(topic, "s", receiver_queue_size=2, ack_receipt_enabled=True) as consumer,
        world.client.create_producer(topic, batching_enabled=False) as producer,
    ):
        sent: list[MessageId] = []
        found: list[bytes] = []
        for number in NUMBERS:
            sent.append(await producer.send(number))
            await world.admin(Admin.unload, topic)
        while len(found) < 5:
            message = await consumer.receive()
            if message.data() not in found:
                found.append(message.data())
        return {"data": found, "ids": sent == sorted(sent)}


async def has_ledger(world: World, topic: str) -> bool:
    """Whether the cursor of `s` is kept in a ledger: Pulsar forgets what was acknowledged while it makes that."""
    path = f"/admin/v2/{topic.replace('://', '/')}/internalStats"
    return bool((await world.admin(Admin.call, "GET", path))["cursors"]["s"]["state"] == "Open")


@scenario(expected={"first": ["0", "1", "2", "3", "4"], "again": ["2", "3", "4"]})
async def what_an_unload_brings_again(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS)
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST, ack_receipt_enabled=True) as consumer:
        messages = await take(consumer, 5)
        await consumer.acknowledge_cumulative(messages[1])
        await until(partial(has_ledger, world, topic))
        await world.admin(Admin.unload, topic)
        await world.send(topic, b"end")
        return {"first": data(messages), "again": data(await take_until(consumer, b"end"))}
