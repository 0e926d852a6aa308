"""Tests of the client against our broker: each message once or more, in the order of its key, while segments change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.client import Checkpoint, ConsumerDeadLetterPolicy, InitialPosition, QueueConsumer, StreamConsumer
from pulsarium.client.errors import InvalidConfiguration, InvalidTxnStatusError, TopicNotFound
from pulsarium.client.scalable.receiving import ScalableConsumer
from tests.client.scalable.layouts import TOPIC
from tests.client.scalable.started import World, world

KEYS = 17
Earliest = InitialPosition.Earliest


class Reading:
    """The messages that a consumer receives, acknowledged at once."""

    def __init__(self, consumer: ScalableConsumer[bytes]) -> None:
        self.consumer = consumer
        self.arrived = anyio.Event()
        self.found: list[tuple[str, int]] = []

    async def run(self) -> None:
        async for message in self.consumer:
            self.found.append((message.partition_key(), int(message.data())))
            self.arrived.set()
            if isinstance(self.consumer, QueueConsumer):
                await self.consumer.acknowledge(message)
            elif isinstance(self.consumer, StreamConsumer):
                await self.consumer.acknowledge_cumulative(message)


@asynccontextmanager
async def reading(*consumers: ScalableConsumer[bytes]) -> AsyncIterator[list[Reading]]:
    """Let consumers receive all the time, and yield the messages of each."""
    found = [Reading(consumer) for consumer in consumers]
    async with anyio.create_task_group() as tasks:
        for one in found:
            tasks.start_soon(one.run)
        yield found
        tasks.cancel_scope.cancel()


async def until_all(count: int, *found: Reading) -> None:
    """Wait until these consumers together have so many different messages."""
    arrived = anyio.Event()
    for reader in found:
        reader.arrived = arrived  # any of them wakes this task
    with anyio.fail_after(300):
        while len({one for reader in found for one in reader.found}) < count:
            await arrived.wait()
            arrived = anyio.Event()
            for reader in found:
                reader.arrived = arrived


def in_order(found: Iterable[tuple[str, int]]) -> bool:
    """Return whether the first deliveries of each key are in order."""
    by_key: dict[str, list[int]] = {}
    for key, number in dict.fromkeys(found):
        by_key.setdefault(key, []).append(number)
    return all(numbers == sorted(numbers) for numbers in by_key.values())


async def publish_while_the_layout_changes(inside: World, count: int = 500) -> None:
    async with inside.client.scalable.create_producer(TOPIC) as producer:
        for number in range(count):
            await producer.submit(b"%d" % number, partition_key=f"k{number % KEYS}")
            if number == 150:
                inside.split(0)
            if number == 300:
                inside.merge(3, 1)
        await producer.flush()


async def test_consumers_of_each_kind_follow_splits_and_merges(autojump_clock: MockClock) -> None:
    async with world(2) as inside:
        scalable = inside.client.scalable
        async with (
            scalable.subscribe_queue(TOPIC, "q", initial_position=Earliest) as queue,
            scalable.subscribe_stream(TOPIC, "s", initial_position=Earliest) as stream,
            scalable.create_checkpoint_consumer(TOPIC, Checkpoint.earliest) as reader,
            reading(queue, stream, reader) as found,
        ):
            await publish_while_the_layout_changes(inside)
            for one in found:
                await until_all(500, one)
            assert in_order(found[1].found)
            assert in_order(found[2].found)


async def test_a_checkpoint_continues_after_the_layout_has_changed(autojump_clock: MockClock) -> None:
    async with world(2) as inside:
        async with inside.client.scalable.create_checkpoint_consumer(TOPIC, Checkpoint.earliest) as first:
            await publish_while_the_layout_changes(inside, 100)
            before = [(await first.receive()).data() for _ in range(40)]
            stored = first.checkpoint().serialize()
        await publish_while_the_layout_changes(inside, 200)
        checkpoint = Checkpoint.deserialize(stored)
        async with inside.client.scalable.create_checkpoint_consumer(TOPIC, checkpoint) as second:
            with anyio.fail_after(60):
                after = [(await second.receive()).data() for _ in range(260)]
            expected = [*range(100), *range(200)]
            assert sorted(map(int, before + after)) == sorted(expected)


async def test_the_latest_checkpoint_begins_behind_all_messages(autojump_clock: MockClock) -> None:
    async with world(2) as inside, inside.client.scalable.create_producer(TOPIC) as producer:
        await producer.send(b"before", partition_key="a")
        async with inside.client.scalable.create_checkpoint_consumer(TOPIC) as reader:
            await producer.send(b"after", partition_key="a")
            with anyio.fail_after(10):
                assert (await reader.receive()).data() == b"after"


async def test_two_stream_consumers_share_the_segments_and_the_rest_takes_over(autojump_clock: MockClock) -> None:
    async with world(4) as inside:
        scalable = inside.client.scalable
        async with scalable.subscribe_stream(TOPIC, "s", initial_position=Earliest) as stays:
            leaves = scalable.subscribe_stream(TOPIC, "s", initial_position=Earliest)
            async with leaves, reading(stays, leaves) as found, scalable.create_producer(TOPIC) as producer:
                for number in range(100):
                    await producer.submit(b"%d" % number, partition_key=f"k{number % KEYS}")
                await until_all(100, *found)
                assert len(stays.segment_ids()) == len(leaves.segment_ids()) == 2
            async with reading(stays) as found, scalable.create_producer(TOPIC) as producer:
                for number in range(100, 200):
                    await producer.submit(b"%d" % number, partition_key=f"k{number % KEYS}")
                await until_all(100, *found)
            assert len(stays.segment_ids()) == 4


async def test_a_lost_connection_loses_nothing(autojump_clock: MockClock) -> None:
    async with world(2) as inside:
        scalable = inside.client.scalable
        async with (
            scalable.subscribe_stream(TOPIC, "s", initial_position=Earliest) as stream,
            reading(stream) as found,
            scalable.create_producer(TOPIC) as producer,
        ):
            for number in range(300):
                await producer.submit(b"%d" % number, partition_key=f"k{number % KEYS}")
                if number % 100 == 50:
                    await inside.inside.cut()
            await producer.flush()
            await until_all(300, *found)
            assert in_order(found[0].found)


async def test_a_transaction_is_delivered_as_a_whole(autojump_clock: MockClock) -> None:
    async with world(2) as inside:
        scalable = inside.client.scalable
        async with (
            scalable.subscribe_queue(TOPIC, "q", initial_position=Earliest) as queue,
            scalable.create_producer(TOPIC) as producer,
        ):
            async with scalable.transaction() as txn:
                for number in range(10):
                    await producer.send(b"%d" % number, partition_key=f"k{number}", txn=txn)
                with anyio.move_on_after(1):
                    raise AssertionError(f"too early: {await queue.receive()}")
            with anyio.fail_after(10):
                messages = [await queue.receive() for _ in range(10)]
            undone = await scalable.begin_transaction()
            await queue.acknowledge(messages[0], txn=undone)
            await undone.abort()
            with anyio.fail_after(10):
                assert (await queue.receive()).data() == messages[0].data()


async def test_a_transaction_of_other_topics_is_refused(autojump_clock: MockClock) -> None:
    config = Config(transactionCoordinatorEnabled=True)
    async with world(config=config) as inside, inside.client.scalable.create_producer(TOPIC) as producer:
        other: Any = inside.client.transaction()
        async with other as txn:
            with pytest.raises(InvalidTxnStatusError):
                await producer.send(b"", txn=txn)


async def test_a_missing_topic_is_created_or_refused(autojump_clock: MockClock) -> None:
    async with world(0) as inside:
        with pytest.raises(TopicNotFound):
            async with inside.client.scalable.create_checkpoint_consumer(TOPIC):
                pass
        async with inside.client.scalable.create_producer(TOPIC) as producer:
            await producer.send(b"")
        assert len(inside.topic.layout.segments) == 1


async def test_a_message_that_is_refused_too_often_becomes_a_dead_letter(
    autojump_clock: MockClock,
) -> None:
    async with world(2) as found:
        topics = found.client.scalable
        consume = topics.subscribe_queue(
            TOPIC,
            "queue",
            initial_position=Earliest,
            negative_ack_redelivery_delay=0.1,
            dead_letter_policy=ConsumerDeadLetterPolicy(1),
        )
        async with topics.create_producer(TOPIC) as producer, consume as consumer:
            await producer.send(b"bad", partition_key="k", properties={"own": "1"})
            for _ in range(2):
                consumer.negative_acknowledge(await consumer.receive())
            async with topics.subscribe_queue(f"{TOPIC}-DLQ", "dead", initial_position=Earliest) as dead:
                letter = await dead.receive()
        assert (letter.data(), letter.partition_key()) == (b"bad", "k")
        assert (letter.properties()["REAL_TOPIC"], letter.properties()["own"]) == (TOPIC, "1")


async def test_a_queue_consumer_has_no_retry_letter_topic(autojump_clock: MockClock) -> None:
    async with world() as found:
        with pytest.raises(InvalidConfiguration, match="no retry letter topic"):
            found.client.scalable.subscribe_queue(
                TOPIC, "queue", dead_letter_policy=ConsumerDeadLetterPolicy(1, retry_letter_topic="retry")
            )
