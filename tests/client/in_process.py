"""A broker in this process, without ports, and clients of it: under trio, on the test's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import trio
from anyio.abc import ByteStream

from pulsarium.broker.config import Config
from pulsarium.client.client import Client, open_client
from pulsarium.client.pool import Settings
from pulsarium.client.service_url import Address
from tests.broker.wire import Bed, Wire, serving


class TrioStream(ByteStream):
    """A trio stream as anyio has them."""

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
    """The broker, and the connections of its clients."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self._streams: list[trio.abc.Stream] = []

    async def _dial(self, address: Address) -> ByteStream:
        stream = self.bed.dial().stream
        self._streams.append(stream)
        return TrioStream(stream)

    def client(self, **settings: Any) -> AbstractAsyncContextManager[Client]:
        return open_client("pulsar://here:6650", Settings(dial=self._dial, **settings))

    async def wire(self) -> Wire:
        """A raw connection with a producer 0 on the usual topic."""
        wire = await self.bed.connect()
        await wire.producer()
        return wire

    async def cut(self) -> None:
        """Every connection of the clients breaks."""
        for stream in self._streams:
            await stream.aclose()
        self._streams.clear()


@asynccontextmanager
async def in_process(config: Config | None = None) -> AsyncIterator[InProcess]:
    async with serving(config) as bed:
        yield InProcess(bed)
