"""Small programs of an application, for a client with unreliable connections."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
from hypothesis import strategies as st

from pulsarium.client import errors
from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.options import CompressionType
from pulsarium.client.producer.producer import Producer

R = TypeVar("R")

PATIENCE = 2.0  # seconds an application waits for a message
NEVER = (errors.LocalProtocolError, errors.InvalidConfiguration)  # no broker may cause these errors


@dataclass(frozen=True)
class Writing:
    """A program of a producer: its options and steps."""

    options: dict[str, Any]
    steps: list[str | int]


@dataclass(frozen=True)
class Reading:
    """A program of a consumer or a reader: its options and steps."""

    options: dict[str, Any]
    steps: list[str]


@dataclass(frozen=True)
class Program:
    """A producer, a consumer and a reader that run at the same time."""

    producer: Writing
    consumer: Reading
    reader: Reading


@dataclass
class Notes:
    """The results that the application has seen."""

    contents: list[bytes] = field(default_factory=list)
    """Contents that were sent, or tried, in order."""
    published: dict[bytes, MessageId] = field(default_factory=dict)
    """Contents with a receipt, and their message ids."""
    received: list[bytes] = field(default_factory=list)
    acknowledged: set[bytes] = field(default_factory=set)
    """Contents with a receipt for their acknowledgement."""
    tried: set[bytes] = field(default_factory=set)
    """Contents that the application tried to acknowledge."""
    read: list[bytes] = field(default_factory=list)
    failures: list[errors.PulsarError] = field(default_factory=list)

    async def attempt(self, call: Callable[[], Awaitable[R]]) -> R | None:
        """Return the result of a call, or None after an error of the client. Other errors fail the test."""
        try:
            return await call()
        except errors.PulsarError as error:
            self.failures.append(error)
            return None

    def check(self) -> None:
        """Check that every failure has a text, and that none is a mistake in the client."""
        for error in self.failures:
            assert not isinstance(error, NEVER), error
            assert error.args, error
            assert isinstance(error.args[0], str), error


async def run(program: Program, client: Client, notes: Notes) -> None:
    """Run the producer, the consumer and the reader, and return when all of them are closed."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notes.attempt, lambda: write(program.producer, client, notes))
        tasks.start_soon(notes.attempt, lambda: consume(program.consumer, client, notes))
        tasks.start_soon(notes.attempt, lambda: read(program.reader, client, notes))


async def write(writing: Writing, client: Client, notes: Notes) -> None:
    numbers = itertools.count()
    async with client.create_producer("t", **writing.options) as producer, anyio.create_task_group() as tasks:
        for step in writing.steps:
            if isinstance(step, int):
                contents = [b"%d" % next(numbers) * 3 + b"," for _ in range(step)]
                notes.contents += contents
                for content in contents:
                    tasks.start_soon(_send, producer, content, notes)
                    await anyio.lowlevel.checkpoint()
            elif step == "flush":
                await notes.attempt(producer.flush)
            else:
                await anyio.sleep(0.3)


async def _send(producer: Producer[bytes], content: bytes, notes: Notes) -> None:
    message_id = await notes.attempt(lambda: producer.send(content, partition_key=content.decode()))
    if message_id is not None:
        notes.published[content] = message_id


async def consume(reading: Reading, client: Client, notes: Notes) -> None:
    async with client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **reading.options) as consumer:
        for step in reading.steps:
            await _consume(step, consumer, reading.options.get("ack_receipt_enabled", False), notes)


async def _consume(step: str, consumer: Consumer[bytes], receipts: bool, notes: Notes) -> None:
    if step in ("ack", "nack", "cumulative"):
        message = await _next(consumer.receive, notes)
        if message is None:
            return
        notes.received.append(message.data())
        if step == "nack":
            consumer.negative_acknowledge(message)
            return
        acknowledge = consumer.acknowledge if step == "ack" else consumer.acknowledge_cumulative
        if step == "cumulative" and consumer._options.consumer_type in (ConsumerType.Shared, ConsumerType.KeyShared):
            return
        notes.tried.update(notes.received if step == "cumulative" else [message.data()])

        async def done() -> bool:
            await acknowledge(message)
            return True

        if await notes.attempt(done) and receipts and message.message_id().batch_index < 0:
            notes.acknowledged.add(message.data())
    elif step == "last":
        await notes.attempt(consumer.get_last_message_ids)
    elif step == "again":
        await notes.attempt(consumer.redeliver_unacknowledged_messages)
    elif step == "seek":
        if await notes.attempt(lambda: _true(consumer.seek(MessageId.earliest))) is None:
            notes.tried.update(notes.received)
        notes.acknowledged.clear()
    elif step == "unsubscribe":
        await notes.attempt(consumer.unsubscribe)
        notes.acknowledged.clear()
    else:
        await anyio.sleep(0.3)


async def _true(call: Awaitable[object]) -> bool:
    await call
    return True


async def read(reading: Reading, client: Client, notes: Notes) -> None:
    async with client.create_reader("t", MessageId.earliest, **reading.options) as reader:
        for step in reading.steps:
            if step == "view":
                await notes.attempt(lambda: _view(client))
            else:
                await _read(step, reader, notes)


async def _view(client: Client) -> None:
    """Open a table view and refresh it, within a time limit.

    The view would wait for ever for messages that a broker sent to an unknown consumer.
    """
    with anyio.move_on_after(10 * PATIENCE):
        async with client.create_table_view("t") as view:
            await view.refresh()


async def _read(step: str, reader: Reader[bytes], notes: Notes) -> None:
    if step == "next":
        message = await _next(reader.read_next, notes)
        if message is not None:
            notes.read.append(message.data())
    elif step == "more":
        await notes.attempt(reader.has_message_available)
    elif step == "last":
        await notes.attempt(reader.get_last_message_ids)
    elif step == "seek":
        if await notes.attempt(lambda: _true(reader.seek(MessageId.earliest))):
            notes.read.clear()
    else:
        await anyio.sleep(0.3)


async def _next(receive: Callable[[], Awaitable[Message[bytes]]], notes: Notes) -> Message[bytes] | None:
    with anyio.move_on_after(PATIENCE):
        return await notes.attempt(receive)
    return None


_STYLES: list[dict[str, Any]] = [
    {"batching_enabled": False},
    {"batching_enabled": True, "batching_max_messages": 3},
    {"batching_enabled": True, "compression_type": CompressionType.ZLib},
    {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 2},
]
WRITING = st.builds(
    Writing,
    st.sampled_from(_STYLES),
    st.lists(st.one_of(st.integers(1, 6), st.sampled_from(["flush", "wait"])), min_size=1, max_size=5),
)
_QUEUES = st.sampled_from([1, 2, 1000])
CONSUMING = st.builds(
    Reading,
    st.fixed_dictionaries(
        {
            "receiver_queue_size": _QUEUES,
            "ack_receipt_enabled": st.booleans(),
            "batch_index_ack_enabled": st.booleans(),
            "consumer_type": st.sampled_from(ConsumerType),
            "negative_ack_redelivery_delay": st.just(0.2),
        }
    ),
    st.lists(
        st.sampled_from(["ack", "ack", "ack", "nack", "cumulative", "last", "again", "seek", "wait", "unsubscribe"]),
        max_size=8,
    ),
)
READING = st.builds(
    Reading,
    st.fixed_dictionaries({"receiver_queue_size": _QUEUES}),
    st.lists(st.sampled_from(["next", "next", "next", "more", "last", "seek", "wait", "view"]), max_size=8),
)
PROGRAMS = st.builds(Program, WRITING, CONSUMING, READING)
