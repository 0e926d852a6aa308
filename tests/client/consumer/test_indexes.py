"""Messages by their index (PIP-415), against our broker and its REST API in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from trio.testing import MockClock

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.client import Client, Consumer, ConsumerType, InitialPosition, Message, MessageId
from pulsarium.client.admin.errors import NotFound, PreconditionFailed
from pulsarium.client.errors import InvalidConfiguration
from tests.broker.web.admin.rest import Rest
from tests.client.consumer.started import all_of
from tests.client.in_process import InProcess, in_process

STAMPS = ",".join(
    f"org.apache.pulsar.common.intercept.Append{what}MetadataInterceptor" for what in ("BrokerTimestamp", "Index")
)
STAMPING: dict[str, Any] = {"brokerEntryMetadataInterceptors": STAMPS, "acknowledgmentAtBatchIndexLevelEnabled": True}
ALL = [b"0", b"1", b"2", b"3", b"4", b"5"]


class Within(httpx.AsyncBaseTransport):
    """A transport that calls a broker without a port."""

    def __init__(self, broker: Broker) -> None:
        self._rest = Rest(broker)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        headers = {name.replace("-", "_"): value for name, value in request.headers.items()}
        body = await request.aread()
        answer = await self._rest.call(request.method, request.url.raw_path.decode(), body=body, **headers)
        return httpx.Response(answer.status, headers=answer.headers, content=answer.body)


@asynccontextmanager
async def setup(**config: Any) -> AsyncIterator[tuple[InProcess, Client]]:
    """Publish a batch of three messages, a batch of two, and a single message."""
    async with (
        in_process(Config(**{**STAMPING, **config})) as inside,
        inside.client(admin_url="http://broker.internal:8080") as client,
    ):
        client.admin._transport._http[False] = httpx.AsyncClient(transport=Within(inside.bed.broker))
        async with client.create_producer("t", batching_enabled=True) as producer:
            for batch in (ALL[:3], ALL[3:5]):
                for content in batch:
                    producer.send_nowait(content)
                await producer.flush()
        async with client.create_producer("t", batching_enabled=False) as producer:
            await producer.send(ALL[5])
        yield inside, client


def reading(client: Client, **options: Any) -> Consumer[bytes]:
    return client.subscribe("t", "s", initial_position=InitialPosition.Earliest, **options)


async def everything(consumer: Consumer[bytes]) -> list[Message[bytes]]:
    messages: list[Message[bytes]] = []
    with anyio.move_on_after(1):
        while True:
            messages.append(await consumer.receive())
    return messages


async def data(consumer: Consumer[bytes]) -> list[bytes]:
    return [message.data() for message in await everything(consumer)]


@pytest.mark.req("S415-29", "S415-30")
@pytest.mark.parametrize("exposing", [True, False])
async def test_messages_tell_their_index_where_the_broker_exposes_it(autojump_clock: MockClock, exposing: bool) -> None:
    async with setup(exposingBrokerEntryMetadataToClientEnabled=exposing) as (_, client), reading(client) as consumer:
        messages = await everything(consumer)
        assert [message.data() for message in messages] == ALL
        assert [message.index() for message in messages] == ([0, 1, 2, 3, 4, 5] if exposing else [None] * 6)
        times = {message.broker_publish_time() for message in messages}
        if exposing:
            assert all(time is not None and time > 1_000_000_000_000 for time in times)
        else:
            assert times == {None}


@pytest.mark.req("S415-28", "S415-41")
@pytest.mark.parametrize("index", [0, 2, 3, 5])
@pytest.mark.parametrize("exposing", [True, False])
async def test_seeking_an_index_drops_what_is_before(autojump_clock: MockClock, index: int, exposing: bool) -> None:
    async with setup(exposingBrokerEntryMetadataToClientEnabled=exposing) as (inside, client):
        async with reading(client) as consumer:
            assert await data(consumer) == ALL
            await consumer.seek_to_index(index)
            assert await data(consumer) == ALL[index:]
        async with reading(client) as consumer:
            assert await data(consumer) == ALL[index:]
        async with client.create_reader("t", MessageId.latest) as reader:
            await reader.seek_to_index(index)
            assert (await reader.read_next()).data() == ALL[index]
            await inside.cut()
            assert await all_of(reader) == ALL[index + 1 :]


@pytest.mark.req("S415-41")
@pytest.mark.parametrize("received", [False, True])
@pytest.mark.parametrize("index", [0, 2, 3, 5])
async def test_acknowledging_an_index_acknowledges_one_message(
    autojump_clock: MockClock, index: int, received: bool
) -> None:
    left = ALL[:index] + ALL[index + 1 :]
    async with setup() as (_, client):
        options: dict[str, Any] = {"consumer_type": ConsumerType.Shared, "batch_index_ack_enabled": received}
        async with reading(client, start_paused=not received, **options) as consumer:
            if received:
                assert await data(consumer) == ALL
            await consumer.acknowledge_index(index)
        async with reading(client, **options) as consumer:
            assert await data(consumer) == left


async def test_queued_messages_acknowledged_by_index_are_skipped(autojump_clock: MockClock) -> None:
    async with setup() as (_, client), reading(client) as consumer:
        assert (await consumer.receive()).data() == b"0"
        for index in (1, 4, 5):
            await consumer.acknowledge_index(index)
        assert await data(consumer) == [b"2", b"3"]


async def test_there_is_no_such_index(autojump_clock: MockClock) -> None:
    async with setup() as (_, client), reading(client) as consumer:
        for index in (6, -1):
            with pytest.raises(NotFound):
                await consumer.seek_to_index(index)
            with pytest.raises(NotFound):
                await consumer.acknowledge_index(index)
        assert await data(consumer) == ALL


async def test_the_broker_does_not_count(autojump_clock: MockClock) -> None:
    async with setup(brokerEntryMetadataInterceptors="") as (_, client), reading(client) as consumer:
        with pytest.raises(PreconditionFailed):
            await consumer.seek_to_index(0)


async def test_seek_to_index_needs_an_admin_url_and_one_topic(autojump_clock: MockClock) -> None:
    async with in_process() as inside, inside.client() as client:
        async with reading(client) as consumer:
            with pytest.raises(InvalidConfiguration, match="admin_url"):
                await consumer.seek_to_index(0)
        inside.partitioned("p", 2)
        async with client.subscribe("p", "s") as consumer:
            with pytest.raises(InvalidConfiguration, match="which topic"):
                await consumer.acknowledge_index(0)
