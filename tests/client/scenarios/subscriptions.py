"""Shows which consumer receives which message, for each type of subscription."""

from __future__ import annotations

from pulsarium.client import Consumer, ConsumerType, InitialPosition
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
    return {
        "second": second,
        "other subscription": other,
        "after": await opening(world.client.subscribe(topic, "s")),
    }


@scenario(expected={"earliest": ["a", "b", "c"], "latest": ["c"]})
async def where_a_subscription_begins(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"a", b"b")
    async with (
        world.client.subscribe(topic, "earliest", initial_position=EARLIEST) as earliest,
        world.client.subscribe(topic, "latest", initial_position=InitialPosition.Latest) as latest,
    ):
        await world.send(topic, b"c", b"end")
        return {
            "earliest": data(await take_until(earliest, b"end")),
            "latest": data(await take_until(latest, b"end")),
        }


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


@scenario(expected={"data": ["x", "y"], "domain": "non-persistent"})
async def topics_that_keep_nothing(world: World) -> object:
    topic = world.topic().replace("persistent://", "non-persistent://")
    async with world.client.subscribe(topic, "s") as consumer:
        await world.send(topic, b"x", b"y")
        messages = await take(consumer, 2)
        return {"data": data(messages), "domain": messages[0].topic_name().partition("://")[0]}


@scenario(expected={"first": ["0", "1", "2"], "second": ["3"], "said": "ok"})
async def the_first_in_line(world: World) -> object:
    """Show that Shared prefers consumers with the lowest priority_level, as long as they have permits."""
    topic, kind = world.topic(), ConsumerType.Shared
    async with (
        world.client.subscribe(topic, "s", consumer_type=kind, receiver_queue_size=3) as first,
        world.client.subscribe(topic, "s", consumer_type=kind, receiver_queue_size=3, priority_level=1) as second,
    ):
        await world.send(topic, *[b"%d" % n for n in range(4)])
        rest = await take(second, 1)
        messages = await take(first, 3)
        return {
            "first": data(messages),
            "second": data(rest),
            "said": await outcome(first.acknowledge(messages)),
        }
