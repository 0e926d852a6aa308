"""Who gets which message, by the type of the subscription."""

from __future__ import annotations

from collections import Counter

import anyio

from pulsarium.client import Consumer, ConsumerType, InitialPosition, MessageId
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import EARLIEST, World, data, opening, outcome, take, take_until, until

NUMBERS = [b"%d" % n for n in range(20)]


@scenario(expected={"second": "ConsumerBusy", "other subscription": "ok", "after": "ok"})
async def exclusive_takes_one(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s"):
        second = await opening(world.client.subscribe(topic, "s"))
        other = await opening(world.client.subscribe(topic, "s2"))
    return {"second": second, "other subscription": other, "after": await opening(world.client.subscribe(topic, "s"))}


@scenario(expected=["ConsumerBusy", "ConsumerBusy", "ConsumerBusy"])
async def types_do_not_mix(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s", consumer_type=ConsumerType.Shared):
        others = (ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.KeyShared)
        return [await opening(world.client.subscribe(topic, "s", consumer_type=kind)) for kind in others]


@scenario(expected={"earliest": ["a", "b", "c"], "latest": ["c"]})
async def where_a_subscription_begins(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"a", b"b")
    async with (
        world.client.subscribe(topic, "earliest", initial_position=EARLIEST) as earliest,
        world.client.subscribe(topic, "latest", initial_position=InitialPosition.Latest) as latest,
    ):
        await world.send(topic, b"c", b"end")
        return {"earliest": data(await take_until(earliest, b"end")), "latest": data(await take_until(latest, b"end"))}


@scenario(expected={"all": True, "twice": 0, "each": [10, 10]})
async def shared_divides_what_there_is(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.subscribe(topic, "s", consumer_type=ConsumerType.Shared, receiver_queue_size=10) as one,
        world.client.subscribe(topic, "s", consumer_type=ConsumerType.Shared, receiver_queue_size=10) as other,
    ):
        await world.send(topic, *NUMBERS)
        both = [data(await take(one, 10)), data(await take(other, 10))]
        counts = Counter(both[0] + both[1])
        return {
            "all": sorted(counts) == sorted(NUMBERS),
            "twice": len([n for n in counts.values() if n > 1]),
            "each": [len(each) for each in both],
        }


@scenario(expected={"gone with": ["0", "1", "2", "3", "4"], "counts": [0, 0, 0, 0, 0]})
async def what_a_consumer_leaves_goes_to_others(world: World) -> object:
    topic = world.topic()
    kind = ConsumerType.Shared
    async with world.client.subscribe(topic, "s", consumer_type=kind) as one:
        await world.send(topic, *NUMBERS[:5])
        await take(one, 5)
        async with world.client.subscribe(topic, "s", consumer_type=kind) as other:
            await one.aclose()
            messages = await take(other, 5)
            return {"gone with": data(messages), "counts": [message.redelivery_count() for message in messages]}


@scenario(expected={"first": ["0", "1", "2"], "second": ["1", "2", "3"], "counts": [0, 0, 0]})
async def failover(world: World) -> object:
    topic, kind = world.topic(), ConsumerType.Failover
    async with (
        world.client.subscribe(topic, "s", consumer_type=kind, consumer_name="a", ack_receipt_enabled=True) as one,
        world.client.subscribe(topic, "s", consumer_type=kind, consumer_name="b", ack_receipt_enabled=True) as other,
    ):
        await until(lambda: {one.is_active(), other.is_active()} == {True, False})
        active, waiting = (one, other) if one.is_active() else (other, one)
        await world.send(topic, *NUMBERS[:3])
        messages = await take(active, 3)
        await active.acknowledge(messages[0])
        await active.aclose()
        await until(lambda: waiting.is_active() is True)
        await world.send(topic, NUMBERS[3])
        rest = await take(waiting, 3)
        return {
            "first": data(messages),
            "second": data(rest),
            "counts": [message.redelivery_count() for message in rest],
        }


@scenario(expected={"others there": "BrokerMetadataError", "alone": "ok", "again": ["end"], "receive": "AlreadyClosed"})
async def unsubscribing(world: World) -> object:
    topic = world.topic()
    kind = ConsumerType.Shared
    async with (
        world.client.subscribe(topic, "s", consumer_type=kind) as one,
        world.client.subscribe(topic, "s", consumer_type=kind) as other,
    ):
        busy = await outcome(one.unsubscribe())
        await other.aclose()
    await world.send(topic, b"x")
    async with world.client.subscribe(topic, "s", consumer_type=kind) as consumer:
        alone = await outcome(consumer.unsubscribe())
        closed = await outcome(consumer.receive())
    async with world.client.subscribe(topic, "s") as consumer:
        await world.send(topic, b"end")
        again = data(await take(consumer, 1))
    return {"others there": busy, "alone": alone, "again": again, "receive": closed}


@scenario(expected={"data": ["0", "1", "2", "3", "4", "5", "6", "7"], "in time": True})
async def a_small_queue_lets_nothing_fall(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s", receiver_queue_size=1) as consumer:
        await world.send(topic, *NUMBERS[:8])
        messages = await take(consumer, 8)
        return {"data": data(messages), "in time": messages == sorted(messages, key=lambda one: one.message_id())}


@scenario(expected={"name": "me", "subscription": "s", "properties": {"a": "b"}, "type": "Shared"})
async def what_the_broker_knows_of_a_consumer(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(
        topic, "s", consumer_type=ConsumerType.Shared, consumer_name="me", properties={"a": "b"}
    ) as consumer:
        stats = (await world.admin(Admin.stats, topic))["subscriptions"]["s"]
        told = stats["consumers"][0]
        return {
            "name": told["consumerName"],
            "subscription": consumer.subscription_name(),
            "properties": told["metadata"],
            "type": stats["type"],
        }


async def received(consumer: Consumer[bytes], into: list[bytes]) -> None:
    while True:
        into.append((await consumer.receive()).data())


@scenario(expected=["0", "1", "2"])
async def a_task_that_waits_gets_what_comes(world: World) -> object:
    topic = world.topic()
    found: list[bytes] = []
    async with world.client.subscribe(topic, "s") as consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(received, consumer, found)
        await world.send(topic, *NUMBERS[:3])
        await until(lambda: len(found) == 3)
        tasks.cancel_scope.cancel()
    return found


@scenario(expected={"data": ["x", "y"], "domain": "non-persistent"})
async def topics_that_keep_nothing(world: World) -> object:
    topic = world.topic().replace("persistent://", "non-persistent://")
    async with world.client.subscribe(topic, "s") as consumer:
        await world.send(topic, b"x", b"y")
        messages = await take(consumer, 2)
        return {"data": data(messages), "domain": messages[0].topic_name().partition("://")[0]}


@scenario(expected=[["a", "b"], "earliest"])
async def after_the_last(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        (empty,) = await consumer.get_last_message_ids()
        await world.send(topic, b"a", b"b")
        return [data(await take(consumer, 2)), empty if empty.ledger_id == -1 else MessageId.latest]
