"""Counters of producers and consumers."""

from __future__ import annotations

import dataclasses

import anyio
import pytest
import trio.testing
from trio.testing import MockClock

from pulsarium.client import ConsumerStatistics, ConsumerType, MessageId, ProducerStatistics
from pulsarium.client.errors import MessageTooBig
from tests.client.consumer.started import data_of, started


async def test_a_producer_counts_messages_bytes_and_errors() -> None:
    async with started() as (inside, client), client.create_producer("t", batching_max_publish_delay=10) as producer:
        assert producer.statistics() == ProducerStatistics(0, 0, 0, 0, 0, 0, 0.0, 0.0)
        producer.send_nowait(b"123")
        producer.send_nowait(b"4567")
        found = producer.statistics()
        assert (found.messages_sent, found.pending_messages, found.pending_bytes) == (0, 2, 7)
        await producer.flush()
        with pytest.raises(MessageTooBig):
            await producer.send(bytes(6 * 1024 * 1024))
        await inside.cut()
        await anyio.sleep(1)
        await producer.send(b"8")
        found = producer.statistics()
        assert (found.messages_sent, found.bytes_sent, found.send_errors) == (3, 8, 1)
        assert (found.pending_messages, found.pending_bytes, found.reconnections) == (0, 0, 1)
        assert 0 < found.mean_latency <= found.max_latency
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.messages_sent = 0  # type: ignore[misc]


async def test_messages_that_fail_with_the_producer_are_counted_once() -> None:
    async with started() as (_, client):
        async with client.create_producer("t", batching_max_publish_delay=10) as producer:
            producer.send_nowait(b"123")
            producer.abandon()
        found = producer.statistics()
        assert (found.send_errors, found.pending_messages, found.pending_bytes) == (1, 0, 0)


async def test_a_consumer_counts_messages_acknowledgements_and_queue(autojump_clock: MockClock) -> None:
    async with (
        started() as (inside, client),
        client.subscribe("t", "s", consumer_type=ConsumerType.Shared) as consumer,
        client.create_producer("t") as producer,
    ):
        assert consumer.statistics() == ConsumerStatistics(0, 0, 0, 0, 0, 0, 0, 0)
        for content in (b"1", b"22", b"333"):
            await producer.send(content)
        await trio.testing.wait_all_tasks_blocked()
        found = consumer.statistics()
        assert (found.messages_received, found.bytes_received) == (3, 6)
        assert (found.queued_messages, found.queued_bytes) == (3, 6)
        first, second = await consumer.receive(), await consumer.receive()
        await consumer.acknowledge(first)
        consumer.negative_acknowledge(second)
        found = consumer.statistics()
        assert (found.queued_messages, found.acknowledgements_sent, found.pending_acknowledgements) == (1, 0, 1)
        assert found.negative_acknowledgements == 1
        await anyio.sleep(0.1)
        found = consumer.statistics()
        assert (found.acknowledgements_sent, found.pending_acknowledgements) == (1, 0)
        await inside.cut()
        assert sorted(await data_of(consumer, 2)) == [b"22", b"333"]
        found = consumer.statistics()
        assert (found.messages_received, found.reconnections) == (5, 1)


async def test_partitions_are_counted_together() -> None:
    async with started() as (inside, client):
        inside.partitioned("p", 3)
        async with client.create_producer("p") as producer, client.subscribe("p", "s") as consumer:
            for number in range(9):
                await producer.send(b"%d" % number)
            await data_of(consumer, 9)
            assert producer.statistics().messages_sent == 9
            assert consumer.statistics().messages_received == 9
            assert isinstance((await consumer.get_last_message_ids())[0], MessageId)
