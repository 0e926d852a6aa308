"""Send single messages with keys, properties and other metadata."""

from __future__ import annotations

from .scenario import scenario
from .world import World, data, ids, opening, outcome, take

LETTERS = [b"a", b"b", b"c"]


@scenario(expected={"receipts": ["0:0", "0:1", "0:2"], "data": ["a", "b", "c"], "ids": ["0:0", "0:1", "0:2"]})
async def one_by_one(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.subscribe(topic, "s") as consumer,
        world.client.create_producer(topic, batching_enabled=False) as producer,
    ):
        receipts = [await producer.send(letter) for letter in LETTERS]
        messages = await take(consumer, 3)
        return {"receipts": receipts, "data": data(messages), "ids": ids(messages)}


@scenario(
    expected={
        "properties": {"b": "2", "a": "ä"},
        "partition_key": "key",
        "ordering_key": "order",
        "event_timestamp": 1234,
        "producer_name": "me",
        "sequence_id": 7,
        "topic_name": "t",
        "redelivery_count": 0,
        "schema_version": "",
        "has_null_value": False,
        "published": True,
    }
)
async def everything_a_message_has(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.subscribe(topic, "s") as consumer,
        world.client.create_producer(topic, producer_name="me") as producer,
    ):
        await producer.send(
            b"x",
            properties={"b": "2", "a": "ä"},
            partition_key="key",
            ordering_key="order",
            event_timestamp=1234,
            sequence_id=7,
        )
        message = await consumer.receive()
        names = ("properties", "partition_key", "ordering_key", "event_timestamp", "producer_name", "sequence_id")
        more = ("topic_name", "redelivery_count", "schema_version", "has_null_value")
        return {name: getattr(message, name)() for name in names + more} | {
            "published": message.publish_timestamp() > 0
        }


@scenario(
    expected=[
        ["", False, "", True, False],
        ["k", True, "", True, False],
        ["k", True, "", True, True],
        ["", True, "", False, False],
    ]
)
async def keys_and_values_that_are_not_there(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.subscribe(topic, "s") as consumer,
        world.client.create_producer(topic) as producer,
    ):
        producer.send_nowait(b"")
        producer.send_nowait(b"", partition_key="k")
        producer.send_nowait(None, partition_key="k")
        producer.send_nowait(b"x", partition_key="")
        await producer.flush()
        return [
            [m.partition_key(), m.has_partition_key(), m.ordering_key(), m.data() == b"", m.has_null_value()]
            for m in await take(consumer, 4)
        ]


@scenario(expected={"second": "ProducerBusy", "first still": "ok", "after it": "ok"})
async def a_name_that_is_taken(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, producer_name="p") as first:
        second = await opening(world.client.create_producer(topic, producer_name="p"))
        still = await outcome(first.send(b"x"))
    after = await opening(world.client.create_producer(topic, producer_name="p"))
    return {"second": second, "first still": still, "after it": after}


@scenario(expected=[True, True])
async def names_that_the_broker_chooses(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as one, world.client.create_producer(topic) as other:
        return [one.producer_name() != other.producer_name(), one.producer_name().startswith("standalone-")]


@scenario(expected={"too big": "MessageTooBig", "largest": "ok", "order": [1, 5242880 - 1000, 2], "after": "ok"})
async def a_message_that_is_too_big(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic) as producer:
        await producer.send(b"x")
        too_big = await outcome(producer.send(bytes(5242880 + 1)))
        largest = await outcome(producer.send(bytes(5242880 - 1000)))
        after = await outcome(producer.send(b"xx"))
    sizes = [len(content) for content in await world.contents(topic)]
    return {"too big": too_big, "largest": largest, "order": sizes, "after": after}
