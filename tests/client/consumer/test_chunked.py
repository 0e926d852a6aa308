"""Messages in chunks (PIP-37), against our broker in this process."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerType, InitialPosition
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.options import CompressionType
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC
from tests.client.consumer.test_reader import all_of
from tests.client.entry.encrypted import Keys
from tests.client.in_process import InProcess, in_process

CHUNKING: dict[str, Any] = {"batching_enabled": False, "chunking_enabled": True, "chunk_max_message_size": 100}
SMALL = [b"first", b"second"]
LARGE = random.Random(0).randbytes(250)
ALL = [SMALL[0], LARGE, SMALL[1], LARGE[::-1]]
ENTRIES = 1 + 3 + 1 + 3


@asynccontextmanager
async def setup(**options: Any) -> AsyncIterator[tuple[InProcess, Client, list[MessageId]]]:
    """A topic with two small messages and two of three chunks."""
    async with in_process() as inside, inside.client() as client:
        async with client.create_producer("t", **{**CHUNKING, **options}) as producer:
            ids = [await producer.send(content) for content in ALL]
        yield inside, client, ids


def reading(client: Client, **options: Any) -> Consumer[bytes]:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options)


async def received(consumer: Consumer[bytes], count: int) -> list[Message[bytes]]:
    with anyio.fail_after(10):
        return [await consumer.receive() for _ in range(count)]


async def data(consumer: Consumer[bytes], count: int) -> list[bytes]:
    return [message.data() for message in await received(consumer, count)]


async def backlog(inside: InProcess) -> int:
    await anyio.sleep(0.1)
    await trio.testing.wait_all_tasks_blocked()
    topic = inside.bed.broker.topics.find(TopicName.parse(TOPIC))
    assert isinstance(topic, PersistentTopic)
    return topic.subscriptions["s"].cursor.backlog()


@pytest.mark.parametrize("encryption_keys", [[], ["rsa"]], ids=["plain", "encrypted"])
@pytest.mark.parametrize("compression_type", CompressionType)
@pytest.mark.parametrize("consumer_type", ConsumerType)
async def test_received_whole_and_acknowledged_whole(
    autojump_clock: MockClock,
    compression_type: CompressionType,
    consumer_type: ConsumerType,
    encryption_keys: list[str],
) -> None:
    options = {"encryption_keys": encryption_keys, "crypto_key_reader": Keys()} if encryption_keys else {}
    async with (
        setup(compression_type=compression_type, **options) as (inside, client, ids),
        reading(client, consumer_type=consumer_type, crypto_key_reader=Keys()) as consumer,
    ):
        messages = await received(consumer, 4)
        assert [message.data() for message in messages] == ALL
        found = [message.message_id() for message in messages]
        assert found == ids
        assert [one.first_chunk for one in found] == [one.first_chunk for one in ids]
        assert [len(one.entries) for one in found] == [1, 3, 1, 3]
        assert await backlog(inside) == ENTRIES
        await consumer.acknowledge(messages[1])
        assert await backlog(inside) == ENTRIES - 3
        for message in messages:
            await consumer.acknowledge(message)
        assert await backlog(inside) == 0


async def test_cumulative(autojump_clock: MockClock) -> None:
    async with setup() as (inside, client, _), reading(client) as consumer:
        await consumer.acknowledge_cumulative((await received(consumer, 2))[1])
        assert await backlog(inside) == ENTRIES - 4


@pytest.mark.parametrize("consumer_type", [ConsumerType.Exclusive, ConsumerType.Shared])
async def test_after_a_loss(autojump_clock: MockClock, consumer_type: ConsumerType) -> None:
    async with setup() as (inside, client, _), reading(client, consumer_type=consumer_type) as consumer:
        for _ in range(3):
            await received(consumer, 2)
            await inside.cut()
            assert sorted(await data(consumer, 4)) == sorted(ALL)
            await consumer.redeliver_unacknowledged_messages()
        assert sorted(await data(consumer, 4)) == sorted(ALL)


@pytest.mark.parametrize("inclusive", [False, True])
async def test_seek_and_start_at_a_chunked_message(autojump_clock: MockClock, inclusive: bool) -> None:
    async with setup() as (inside, client, ids):
        expected = ALL[1:] if inclusive else ALL[2:]
        where = MessageId.deserialize(ids[1].serialize())
        async with reading(client, start_message_id_inclusive=inclusive) as consumer:
            await consumer.seek(where)
            messages = await received(consumer, len(expected))
            assert [message.data() for message in messages] == expected
            for message in messages:
                await consumer.acknowledge(message)
            assert await backlog(inside) == 0
        async with client.create_reader("t", where, start_message_id_inclusive=inclusive) as reader:
            assert await all_of(reader) == expected
            await reader.seek(where)
            assert await all_of(reader) == expected
            await inside.cut()
            assert await all_of(reader) == []


async def test_a_reader_that_begins_in_the_middle(autojump_clock: MockClock) -> None:
    """Chunks without their beginning are left out."""
    async with setup() as (_, client, ids):
        first = ids[1].first_chunk
        assert first is not None
        second = MessageId(first.ledger_id, first.entry_id + 1)
        async with client.create_reader("t", second) as reader:
            assert await all_of(reader) == ALL[2:]


async def test_a_reader_goes_on_in_the_middle(autojump_clock: MockClock) -> None:
    async with (
        setup() as (inside, client, _),
        client.create_reader("t", MessageId.earliest, receiver_queue_size=1) as reader,
    ):
        seen = []
        for _ in range(4):
            seen.append((await reader.read_next()).data())
            await inside.cut()
        assert seen == ALL
        assert not await reader.has_message_available()
