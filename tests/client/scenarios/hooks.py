"""Code of the application that the client calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsarium.client import (
    BatchingType,
    Consumer,
    ConsumerInterceptor,
    ConsumerType,
    Message,
    MessageId,
    MessageOptions,
    Producer,
    ProducerInterceptor,
)
from pulsarium.client.errors import PulsarError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

from .scenario import scenario
from .world import EARLIEST, World, available, data, outcome, take


class Stamping(ProducerInterceptor[bytes]):
    """Changes what is sent, and notes what became of it."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def before_send(
        self, producer: Producer[bytes], content: bytes | None, options: MessageOptions
    ) -> tuple[bytes | None, MessageOptions]:
        options["properties"] = {**(options.get("properties") or {}), "stamp": "1"}
        return (content or b"") + b"!", options

    def on_send_acknowledgement(
        self,
        producer: Producer[bytes],
        content: bytes | None,
        options: MessageOptions,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        self.seen.append([content, message_id, error])


@scenario(
    expected={
        "messages": [["a!", {"mine": "1", "stamp": "1"}], ["b!", {"stamp": "1"}]],
        "seen": [["a!", "0:0", None], ["b!", "0:1", None]],
    }
)
async def a_producers_interceptor(world: World) -> object:
    topic, stamping = world.topic(), Stamping()
    async with world.client.create_producer(topic, interceptors=[stamping], batching_enabled=False) as producer:
        await producer.send(b"a", properties={"mine": "1"})
        await producer.send(b"b")
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        messages = [[message.data(), message.properties()] for message in await available(reader)]
    return {"messages": messages, "seen": stamping.seen}


class Watching(ConsumerInterceptor):
    """Notes everything."""

    def __init__(self) -> None:
        self.seen: list[list[object]] = []

    def before_consume(self, consumer: Consumer[Any], message: Message[Any]) -> Message[Any]:
        self.seen.append(["received", message.data(), message.redelivery_count()])
        return message

    def on_acknowledge(self, consumer: Consumer[Any], message_id: MessageId, error: Exception | None) -> None:
        self.seen.append(["acknowledged", message_id, error])

    def on_negative_acks_send(self, consumer: Consumer[Any], message_ids: set[MessageId]) -> None:
        self.seen.append(["refused", sorted(message_ids)])


@scenario(
    expected=[
        ["received", "a", 0],
        ["acknowledged", "0:0", None],
        ["received", "b", 0],
        ["refused", ["0:1"]],
        ["received", "b", 1],
    ]
)
async def a_consumers_interceptor(world: World) -> object:
    topic, watching = world.topic(), Watching()
    await world.send(topic, b"a", b"b")
    async with world.client.subscribe(
        topic,
        "s",
        initial_position=EARLIEST,
        consumer_type=ConsumerType.Shared,
        negative_ack_redelivery_delay=0.05,
        interceptors=[watching],
    ) as consumer:
        await consumer.acknowledge(await consumer.receive())
        consumer.negative_acknowledge(await consumer.receive())
        await consumer.receive()
    return watching.seen


class Halves:
    """A format of its own: each entry is two messages, and one of an odd length is broken."""

    def process(
        self, metadata: pb.MessageMetadata, payload: bytes
    ) -> Iterable[tuple[int, pb.SingleMessageMetadata | None, bytes]]:
        if len(payload) % 2:
            raise ValueError("odd")
        half = len(payload) // 2
        return [(0, None, payload[:half]), (1, None, payload[half:])]


@scenario(expected=[["ab", "0:0:0"], ["cd", "0:0:1"], "ValueError", ["e", "0:2:0"], ["f", "0:2:1"]])
async def a_payload_processor(world: World) -> object:
    topic = world.topic()
    await world.send(topic, b"abcd", b"odd", b"ef")
    found: list[object] = []
    async with world.client.create_reader(topic, MessageId.earliest, message_payload_processor=Halves()) as reader:
        for _ in range(5):
            try:
                message = await reader.read_next()
            except ValueError as error:
                found.append(error)
            else:
                found.append([message.data(), message.message_id()])
    return found


@scenario(expected={"a": ["1", "3"], "b": ["2", "4"], "entries": [["a", 2], ["b", 2]]})
async def batches_by_key(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(
        topic, batching_type=BatchingType.KeyBased, batching_max_publish_delay=10.0
    ) as producer:
        for n, key in enumerate("abab"):
            producer.send_nowait(b"%d" % (n + 1), partition_key=key)
    found: dict[str, list[bytes]] = {}
    async with world.client.create_reader(topic, MessageId.earliest) as reader:
        for message in await available(reader):
            found.setdefault(message.partition_key(), []).append(message.data())
    async with world.client.create_raw_reader(topic, MessageId.earliest) as raw:
        entries = [(await raw.read_next()).metadata for _ in range(2)]
        sizes = sorted([entry.partition_key, entry.num_messages_in_batch] for entry in entries)
    return {**found, "entries": sizes}


@scenario(expected={"first": ["0", "1", "2"], "second": ["3"], "said": "ok"})
async def the_first_in_line(world: World) -> object:
    """Shared gives what there is to those with the lowest priority_level, as long as they have room."""
    topic, kind = world.topic(), ConsumerType.Shared
    async with (
        world.client.subscribe(topic, "s", consumer_type=kind, receiver_queue_size=3) as first,
        world.client.subscribe(topic, "s", consumer_type=kind, receiver_queue_size=3, priority_level=1) as second,
    ):
        await world.send(topic, *[b"%d" % n for n in range(4)])
        rest = await take(second, 1)
        messages = await take(first, 3)
        return {"first": data(messages), "second": data(rest), "said": await outcome(first.acknowledge(messages))}
