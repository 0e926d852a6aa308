"""A broker in this process, without ports, and clients of it: under trio, on the test's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import trio
import trio.testing
from anyio.abc import ByteStream

from pulsarium.broker.config import PIP, Config, Profile
from pulsarium.client.client import Client
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import Settings
from pulsarium.client.opening import open_client
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Bed, Wire, serving

FIRST_PORT = 6650  # of the first broker; the others follow


class TrioStream(ByteStream):
    """A trio stream with the interface of anyio."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    async def receive(self, max_bytes: int = 65536) -> bytes:
        try:
            data = bytes(await self._stream.receive_some(max_bytes))
        except trio.BrokenResourceError:
            raise anyio.BrokenResourceError from None
        except trio.ClosedResourceError:
            raise anyio.ClosedResourceError from None
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, item: bytes) -> None:
        try:
            await self._stream.send_all(item)
        except trio.BrokenResourceError:
            raise anyio.BrokenResourceError from None
        except trio.ClosedResourceError:
            raise anyio.ClosedResourceError from None

    async def send_eof(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        await self._stream.aclose()


class InProcess:
    """A broker in this process, and the connections of its clients."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.dialled: list[int] = []
        """Numbers of the brokers to which the clients connected, in order."""
        self._streams: list[trio.abc.Stream] = []

    async def dial(self, address: BrokerAddress) -> ByteStream:
        number = address.port - FIRST_PORT
        if not self.bed.brokers[number].alive:
            raise ConnectionRefusedError("nobody there")
        self.dialled.append(number)
        stream = self.bed.dial(number).stream
        self._streams.append(stream)
        return TrioStream(stream)

    def client(self, url: str = "pulsar://here:6650", **settings: Any) -> AbstractAsyncContextManager[Client]:
        return open_client(url, Settings(dial=self.dial, **settings))

    async def wire(self) -> Wire:
        """Open a raw connection with a producer 0 of the usual topic."""
        wire = await self.bed.connect()
        await wire.producer()
        return wire

    def partitioned(self, topic: str, partitions: int) -> None:
        """Create a partitioned topic, or add partitions to it."""
        self.bed.broker.topics.create_partitions(TopicName.parse(topic), partitions)
        self.bed.broker.turn.finish()

    async def cut(self) -> None:
        """Break every connection of the clients, and wait until they notice."""
        for stream in self._streams:
            await stream.aclose()
        self._streams.clear()
        await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def in_process(
    config: Config | None = None, brokers: int = 1, profile: Profile = PIP
) -> AsyncIterator[InProcess]:
    async with serving(config, brokers=brokers, profile=profile) as bed:
        for index, broker in enumerate(bed.brokers):
            broker.listening(FIRST_PORT + index, 8080 + index)
        yield InProcess(bed)
