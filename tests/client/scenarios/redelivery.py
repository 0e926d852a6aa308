"""Shows which messages are redelivered, and their redelivery counts."""

from __future__ import annotations

from typing import Any

from pulsarium.client import ConsumerType, Message

from .scenario import scenario
from .world import EARLIEST, World, data, take

NUMBERS = [b"%d" % n for n in range(5)]
SHARED: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "initial_position": EARLIEST}


def counted(messages: list[Message[bytes]]) -> list[list[object]]:
    """Return the content and the redelivery count of each message."""
    return [[message.data(), message.redelivery_count()] for message in messages]


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


@scenario(expected=[["0", 1], ["2", 1]])
async def of_a_batch_what_is_left(world: World) -> object:
    topic = world.topic()
    await world.send(topic, *NUMBERS[:3], batching_enabled=True)
    async with world.client.subscribe(
        topic,
        "s",
        negative_ack_redelivery_delay=0.05,
        batch_index_ack_enabled=True,
        ack_receipt_enabled=True,
        **SHARED,
    ) as consumer:
        messages = await take(consumer, 3)
        await consumer.acknowledge(messages[1])
        consumer.negative_acknowledge(messages[0])
        return counted(await take(consumer, 2))
