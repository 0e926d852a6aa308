"""Key_Shared subscriptions: one consumer receives all messages of a key, in order."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.client import ConsumerKeySharedPolicy, ConsumerType, KeySharedMode, Message

from .scenario import scenario
from .world import World, opening, take, take_until

KEYS = [f"k{n}" for n in range(8)]
KIND = ConsumerType.KeyShared


def sticky(*ranges: tuple[int, int]) -> ConsumerKeySharedPolicy:
    return ConsumerKeySharedPolicy(key_shared_mode=KeySharedMode.Sticky, sticky_ranges=ranges)


def by_key(messages: Sequence[Message[bytes]]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for message in messages:
        found.setdefault(message.partition_key(), []).append(message.data())
    return found


async def send_rounds(world: World, topic: str, rounds: int = 3) -> None:
    """Send each key once a round, with the round's number, and then an `end` for each key."""
    async with world.client.create_producer(topic, batching_enabled=False) as producer:
        for n in range(rounds):
            for key in KEYS:
                await producer.send(b"%d" % n, partition_key=key)


@scenario(expected={"keys": 8, "order": [["0", "1", "2"]], "shared": 0})
async def every_key_in_its_order(world: World) -> object:
    topic = world.topic()
    policy = sticky((0, 30000))
    async with (
        world.client.subscribe(topic, "s", consumer_type=KIND, key_shared_policy=policy) as one,
        world.client.subscribe(topic, "s", consumer_type=KIND, key_shared_policy=sticky((30001, 65535))) as other,
    ):
        await send_rounds(world, topic)
        async with world.client.create_producer(topic, batching_enabled=False) as producer:
            for n in range(64):  # some hash to either half
                await producer.send(b"end", partition_key=f"end{n}")
        first, second = by_key(await take_until(one, b"end")), by_key(await take_until(other, b"end"))
        orders = {tuple(values) for values in (first | second).values()}
        return {
            "keys": len(first) + len(second),
            "order": [list(order) for order in orders],
            "shared": len(first.keys() & second.keys()),
        }


@scenario(expected={"overlap": "ConsumerAssignError", "beside": "ok", "other mode": "ConsumerBusy"})
async def ranges_that_overlap(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s", consumer_type=KIND, key_shared_policy=sticky((0, 100))):
        return {
            "overlap": await opening(
                world.client.subscribe(topic, "s", consumer_type=KIND, key_shared_policy=sticky((50, 200)))
            ),
            "beside": await opening(
                world.client.subscribe(topic, "s", consumer_type=KIND, key_shared_policy=sticky((101, 200)))
            ),
            "other mode": await opening(world.client.subscribe(topic, "s", consumer_type=KIND)),
        }


@scenario(expected={"a": ["0", "2"], "b": ["1", "3"]})
async def an_ordering_key_wins_over_the_key(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s", consumer_type=KIND) as consumer:
        async with world.client.create_producer(topic, batching_enabled=False) as producer:
            for n in range(4):
                await producer.send(b"%d" % n, partition_key=f"k{n}", ordering_key="ab"[n % 2])
        found: dict[str, list[bytes]] = {}
        for message in await take(consumer, 4):
            found.setdefault(message.ordering_key(), []).append(message.data())
        return found
