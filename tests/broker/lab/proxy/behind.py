"""A broker behind a proxy, over loopback, and raw clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import trio

from pulsarium.broker.config import Config, ServeOptions
from pulsarium.broker.lab.lab import Lab
from pulsarium.broker.lab.proxy.upstream import Upstream
from pulsarium.broker.proxying import ProxyOptions, RunningProxy, open_proxy
from pulsarium.broker.server import RunningCluster, open_broker
from tests.broker.loopback import HANGS
from tests.broker.wire import Wire


class Behind:
    """A proxy in front of a broker. `broker` is None for a broker of another process."""

    def __init__(self, proxy: RunningProxy, broker: RunningCluster | None) -> None:
        self.proxy = proxy
        self.broker = broker
        self.wires: list[Wire] = []

    @property
    def lab(self) -> Lab:
        return self.proxy.lab

    async def dial(self, url: str | None = None) -> Wire:
        """Open a connection through the proxy, and send nothing."""
        target = Upstream.of(url or self.proxy.service_url)
        self.wires.append(Wire(await trio.open_tcp_stream(target.host, target.port)))
        return self.wires[-1]

    async def connect(self, **fields: Any) -> Wire:
        wire = await self.dial()
        await wire.connect(**fields)
        return wire

    async def sender(self, topic: str) -> Wire:
        """Return a client with a producer of the topic."""
        wire = await self.connect()
        await wire.producer(topic)
        return wire


@asynccontextmanager
async def behind(**options: Any) -> AsyncIterator[Behind]:
    """Serve a broker and a proxy in front of it until the block ends."""
    every_host = frozenset({"*"})  # so that only the proxy refuses pages of strangers
    serve = ServeOptions(config=Config(brokerServicePort=0, webServicePort=0, httpAllowedHosts=every_host))
    with trio.fail_after(HANGS):
        async with open_broker(serve) as running, in_front_of(running.service_url, running.admin_url, **options) as it:
            it.broker = running
            yield it


@asynccontextmanager
async def in_front_of(service_url: str, admin_url: str | None, **options: Any) -> AsyncIterator[Behind]:
    """Run a proxy in front of a broker that runs already."""
    asked = ProxyOptions(upstream=Upstream.of(service_url), admin_url=admin_url, **options)
    async with open_proxy(asked) as proxy:
        it = Behind(proxy, None)
        try:
            yield it
        finally:
            for each in it.wires:
                await trio.aclose_forcefully(each.stream)


class Sides:
    """A client and a broker of raw sockets, with the proxy between them."""

    def __init__(self, it: Behind, client: trio.SocketStream, broker: trio.SocketStream) -> None:
        self.it = it
        self.client = client
        self.broker = broker
        self.sent = 0

    async def send(self, side: trio.SocketStream, data: bytes) -> None:
        """Send the same bytes again and again, and count them."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                await side.send_all(data)
                self.sent += len(data)


@asynccontextmanager
async def two_sides() -> AsyncIterator[Sides]:
    with trio.fail_after(HANGS):
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener, in_front_of(f"pulsar://127.0.0.1:{listener.socket.getsockname()[1]}", None) as it:
            client = (await it.dial()).stream
            assert isinstance(client, trio.SocketStream)
            async with await listener.accept() as broker:
                yield Sides(it, client, broker)
