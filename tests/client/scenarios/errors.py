"""Shows refused calls, and the names of their errors."""

from __future__ import annotations

from pulsarium.client import ConsumerType, MessageId
from tests.foreign.admin import Admin

from .scenario import scenario
from .world import EARLIEST, World, all_of, opening, outcome, refusal

NO_NEW_TOPICS = {"allowAutoTopicCreation": False}


@scenario(expected={"producer": "TopicNotFound", "consumer": "TopicNotFound", "reader": "TopicNotFound"})
async def no_such_topic(world: World) -> object:
    namespace = await world.own_namespace(autoTopicCreation=NO_NEW_TOPICS)
    topic = f"persistent://{namespace}/t"
    return {
        "producer": await opening(world.client.create_producer(topic)),
        "consumer": await opening(world.client.subscribe(topic, "s")),
        "reader": await opening(world.client.create_reader(topic, MessageId.earliest)),
    }


@scenario(expected=["TopicNotFound", "TopicNotFound"])
async def no_such_namespace(world: World) -> object:
    topic = "persistent://public/nothing-of-that-name/t"
    return [
        await opening(world.client.create_producer(topic)),
        await opening(world.client.subscribe(topic, "s")),
    ]


@scenario(expected={"new": "SubscriptionNotFound", "old": "ok"})
async def no_such_subscription(world: World) -> object:
    namespace = await world.own_namespace(autoSubscriptionCreation={"allowAutoSubscriptionCreation": False})
    topic = f"persistent://{namespace}/t"
    await world.send(topic, b"x")
    new = await opening(world.client.subscribe(topic, "s"))
    path = topic.replace("://", "/")
    await world.admin(Admin.call, "PUT", f"/admin/v2/{path}/subscription/s")
    return {"new": new, "old": await opening(world.client.subscribe(topic, "s"))}


@scenario(expected={"sends": ["ok", "TopicTerminated"], "producer": "TopicTerminated"})
async def a_terminated_topic_takes_nothing(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer:
        first = await outcome(producer.send(b"x"))
        await world.admin(Admin.terminate, topic)
        second = await outcome(producer.send(b"y"))
    return {"sends": [first, second], "producer": await opening(world.client.create_producer(topic))}


@scenario(expected={"seen": ["a", "b"], "again": [], "reached": True})
async def a_terminated_topic_ends_the_loop(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"a", b"b")
    await world.admin(Admin.terminate, topic)
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        seen = []
        async for message in consumer:
            seen.append(message.data())
            await consumer.acknowledge(message)
        return {"seen": seen, "again": await all_of(consumer), "reached": consumer.has_reached_end_of_topic()}


@scenario(expected={"send": "AlreadyClosed", "receive": "AlreadyClosed", "new": "AlreadyClosed"})
async def a_closed_client(world: World) -> object:
    topic = world.topic()
    async with world.connect() as client:
        producer, consumer = client.create_producer(topic), client.subscribe(topic, "s")
        await producer.__aenter__()
        await consumer.__aenter__()
        await client.aclose()
        return {
            "send": await outcome(producer.send(b"x")),
            "receive": await outcome(consumer.receive()),
            "new": await opening(client.create_producer(topic)),
        }


@scenario(expected=["InvalidConfiguration", "InvalidConfiguration", "InvalidConfiguration"])
async def acknowledging_up_to_a_message_where_there_is_no_order(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"x")
    found = []
    for kind in (ConsumerType.Shared, ConsumerType.KeyShared):
        async with world.client.subscribe(topic, kind.name, consumer_type=kind, initial_position=EARLIEST) as consumer:
            found.append(await outcome(consumer.acknowledge_cumulative(await consumer.receive())))
    return [*found, refusal(lambda: world.client.subscribe(topic, "s", receiver_queue_size=-1))]
