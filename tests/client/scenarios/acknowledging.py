"""Shows that a subscription redelivers everything but acknowledged messages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from pulsarium.client import Consumer, ConsumerType, Message

from .scenario import scenario
from .world import EARLIEST, World, data, take, take_until

NUMBERS = [b"%d" % n for n in range(6)]


async def left_after(
    world: World,
    acknowledge: Callable[[Consumer[bytes], list[Message[bytes]]], Coroutine[Any, Any, None]],
    *,
    batched: bool = False,
    **options: Any,
) -> list[bytes]:
    """Return the backlog of six messages, after a consumer has acknowledged some and closed."""
    topic = world.topic("-".join([*options, str(batched)]))
    options = {"initial_position": EARLIEST, "ack_receipt_enabled": True, **options}
    await world.send(topic, *NUMBERS, batching_enabled=batched)
    async with world.client.subscribe(topic, "s", **options) as consumer:
        await acknowledge(consumer, await take(consumer, 6))
    await world.send(topic, b"end")
    async with world.client.subscribe(topic, "s", **options) as consumer:
        return data(await take_until(consumer, b"end"))


def each_of(indexes: Iterable[int]) -> Callable[[Consumer[bytes], list[Message[bytes]]], Coroutine[Any, Any, None]]:
    async def acknowledge(consumer: Consumer[bytes], messages: list[Message[bytes]]) -> None:
        for index in indexes:
            await consumer.acknowledge(messages[index])

    return acknowledge


def up_to(index: int) -> Callable[[Consumer[bytes], list[Message[bytes]]], Coroutine[Any, Any, None]]:
    async def acknowledge(consumer: Consumer[bytes], messages: list[Message[bytes]]) -> None:
        await consumer.acknowledge_cumulative(messages[index])

    return acknowledge


@scenario(expected={"some": ["0", "2", "5"], "all": [], "none": ["0", "1", "2", "3", "4", "5"]})
async def one_by_one(world: World) -> object:
    return {
        "some": await left_after(world, each_of([1, 3, 4])),
        "all": await left_after(world, each_of([5, 4, 3, 2, 1, 0]), consumer_name="b"),
        "none": await left_after(world, each_of([]), consumer_name="c", properties={}),
    }


@scenario(expected=["4", "5"])
async def everything_up_to_one(world: World) -> object:
    return await left_after(world, up_to(3))


@scenario(expected=["0", "2"])
async def without_receipts(world: World) -> object:
    return await left_after(world, each_of([1, 3, 4, 5]), ack_receipt_enabled=False)


@scenario(expected={"shared": ["0", "2", "3", "4", "5"], "exclusive": ["0", "2", "3", "4", "5"]})
async def single_messages_of_a_batch(world: World) -> object:
    return {
        "shared": await left_after(
            world, each_of([1]), batched=True, batch_index_ack_enabled=True, consumer_type=ConsumerType.Shared
        ),
        "exclusive": await left_after(world, each_of([1]), batched=True, batch_index_ack_enabled=True),
    }


@scenario(expected=["0", "1", "2", "3", "4", "5"])
async def part_of_a_batch_where_only_whole_ones_count(world: World) -> object:
    return await left_after(world, each_of([0, 1, 3]), batched=True)


@scenario(expected={"by index": ["3", "4", "5"], "whole": ["0", "1", "2", "3", "4", "5"], "last": []})
async def up_to_the_middle_of_a_batch(world: World) -> object:
    return {
        "by index": await left_after(world, up_to(2), batched=True, batch_index_ack_enabled=True),
        "whole": await left_after(world, up_to(2), batched=True),
        "last": await left_after(world, up_to(5), batched=True, consumer_name="c"),
    }
