"""One message at a time, and what comes along with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pulsarium.client import CompressionType, ConsumerType, MessageId

from .scenario import scenario
from .world import EARLIEST, World, available, data, ids, opening, outcome, refusal, take, take_until

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
    async with world.client.subscribe(topic, "s") as consumer, world.client.create_producer(topic) as producer:
        producer.send_nowait(b"")
        producer.send_nowait(b"", partition_key="k")
        producer.send_nowait(None, partition_key="k")
        producer.send_nowait(b"x", partition_key="")
        await producer.flush()
        return [
            [m.partition_key(), m.has_partition_key(), m.ordering_key(), m.data() == b"", m.has_null_value()]
            for m in await take(consumer, 4)
        ]


@scenario(expected=[["one", "NONE"], ["one", "LZ4"], ["one", "ZLib"], ["one", "ZSTD"], ["one", "SNAPPY"]])
async def each_compression_of_one_message(world: World) -> object:
    found = []
    for compression in CompressionType:
        topic = world.topic(compression.name)
        content = compression.name.encode() * 1000
        await world.send(topic, content, compression_type=compression)
        (message,) = await world.contents(topic)
        found.append(["one" if message == content else "another", compression])
    return found


@scenario(expected={"before": -1, "first": [0, 1, 10, 2], "last": 10, "after": [12, 13]})
async def sequence_ids(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, producer_name="p", batching_enabled=False) as producer:
        before = producer.last_sequence_id()
        for number in (None, None, 10, None):
            await producer.send(b"x", sequence_id=number)
        last = producer.last_sequence_id()
    async with world.client.create_producer(topic, producer_name="p", initial_sequence_id=11) as producer:
        await producer.send(b"x")
        await producer.send(b"x")
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        found = [message.sequence_id() for message in await available(reader)]
    return {"before": before, "first": found[:4], "last": last, "after": found[4:]}


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


@scenario(expected=["now", "early", "late"])
async def delayed_messages_come_in_the_order_of_their_times(world: World) -> object:
    topic = world.topic()
    async with (
        world.client.subscribe(topic, "s", consumer_type=ConsumerType.Shared) as consumer,
        world.client.create_producer(topic) as producer,
    ):
        # Far apart: with delayedDeliveryTickTimeMillis=1000 they may come 1.5 s too early and 1 s too late, and what is
        # due in one tick comes in the order of sending.
        start = datetime.now(UTC)
        await producer.send(b"late", deliver_at=start + timedelta(seconds=6))
        await producer.send(b"early", deliver_at=start + timedelta(seconds=3))
        await producer.send(b"now")
        return data(await take(consumer, 3))


@scenario(expected=["late", "now", "end"])
async def delays_mean_nothing_on_exclusive(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s") as consumer, world.client.create_producer(topic) as producer:
        await producer.send(b"late", deliver_after=600.0)
        await producer.send(b"now")
        await producer.send(b"end")
        return data(await take(consumer, 3))


@scenario(expected={"full": "ProducerQueueIsFull", "kept": ["a", "b"]})
async def too_many_without_a_receipt(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, max_pending_messages=2, batching_max_publish_delay=10.0) as producer:
        producer.send_nowait(b"a")
        producer.send_nowait(b"b")
        full = refusal(lambda: producer.send_nowait(b"c"))
        await producer.flush()
    return {"full": full, "kept": await world.contents(topic)}


@scenario(expected={"last": ["x", "end"], "send": "AlreadyClosed", "flush": "AlreadyClosed"})
async def a_closed_producer_takes_nothing(world: World) -> object:
    topic = world.topic()
    async with world.client.subscribe(topic, "s", initial_position=EARLIEST) as consumer:
        async with world.client.create_producer(topic) as producer:
            producer.send_nowait(b"x")
        refused = await outcome(producer.send(b"y"))
        await world.send(topic, b"end", b"really")
        return {
            "last": [*data(await take_until(consumer, b"end")), b"end"],
            "send": refused,
            "flush": await outcome(producer.flush()),
        }
