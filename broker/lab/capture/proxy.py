"""Proxy any broker, and capture the frames between its clients and the broker.

The proxy changes only the URLs of brokers in answers (`rewriting.py`). The proxy listens on a port of its own for each
broker that an answer names, so that clients stay on the proxy whatever topic they look up. The capture has the frames
as the broker sent them. Only plain connections work, without TLS.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trio

from pulsarium.broker.clock import Clock
from pulsarium.broker.lab.capture.rewriting import Rewriter
from pulsarium.broker.lab.capture.store import File
from pulsarium.broker.logs import PartLog
from pulsarium.capture.file import CaptureReader, CaptureRecord, CaptureWriter, Header
from pulsarium.proto.commands import Direction

log = PartLog("capture")

LINGER = 5.0  # seconds that one side may go on sending after the other has ended
LAST_WORDS = 0.3  # seconds for connections to end when the proxy ends
_READ = 1 << 16
_CLIENT, _BROKER = Direction.CLIENT, Direction.BROKER


class ProxiedBroker(NamedTuple):
    """The plain port of a broker."""

    host: str
    port: int

    @staticmethod
    def of(url: str) -> ProxiedBroker:
        """Parse pulsar://HOST[:PORT]. Raise `ValueError` for another URL."""
        scheme, separator, place = url.partition("://")
        if not separator or scheme != "pulsar":
            raise ValueError(f"{url}: pulsar://HOST:PORT is wanted; TLS cannot be captured, and neither can HTTP")
        first = place.partition("/")[0].partition(",")[0]
        host, colon, port = first.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = first, "6650"
        if not host or "@" in host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{url}: pulsar://HOST:PORT is wanted")
        return ProxiedBroker(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"pulsar://[{self.host}]:{self.port}" if ":" in self.host else f"pulsar://{self.host}:{self.port}"


class Proxy:
    """Listen for one broker, and for each broker that its answers name."""

    def __init__(self, file: File, writer: CaptureWriter, nursery: trio.Nursery, clock: Clock, host: str) -> None:
        self.frames = 0
        self._file = file
        self._writer = writer
        self._nursery = nursery
        self._clock = clock
        self._host = host
        self._ports: dict[ProxiedBroker, int] = {}
        self._numbers = itertools.count(1)
        self._open = 0
        self._idle = trio.Event()
        self._failed = False

    def listen(self, target: ProxiedBroker, port: int = 0) -> int:
        """Return the port where clients reach this broker through the proxy. Raise `OSError` when the port is taken."""
        if target not in self._ports:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            listener = trio.socket.from_stdlib_socket(socket.create_server((self._host, port), family=family))
            self._ports[target] = listener.getsockname()[1]
            serve = partial(trio.serve_listeners, partial(self._carry, target), [trio.SocketListener(listener)])
            self._nursery.start_soon(serve)
        return self._ports[target]

    def _through(self, host: str, url: str) -> str:
        try:
            return str(ProxiedBroker(host, self.listen(ProxiedBroker.of(url))))
        except (ValueError, OSError) as error:
            log.warning("no port for a broker: its clients bypass the proxy", broker=url, reason=error)
            return url

    async def _carry(self, target: ProxiedBroker, client: trio.SocketStream) -> None:
        self._open += 1
        try:
            async with client:
                await ProxiedConnection(self, next(self._numbers)).through(target, client)
        except Exception as error:  # a connection that fails must not end the others
            log.error("a connection failed", exception=error)
        finally:
            self._open -= 1
            self._idle.set()

    async def idle(self) -> None:
        """Wait until no connection is open."""
        while self._open:
            self._idle = trio.Event()
            await self._idle.wait()

    def now(self) -> tuple[int, int]:
        """Return the time as (monotonic_ns, wall_ns)."""
        return time.monotonic_ns(), int(self._clock.wall() * 1e9)

    @property
    def writer(self) -> CaptureWriter:
        """Return the writer of records. A failed file is logged once."""
        if self._file.trouble and not self._failed:
            self._failed = True
            log.warning("the capture ended early; the proxy goes on", reason=self._file.trouble, frames=self.frames)
        return self._writer

    def recorded(self) -> int:
        """Return the number of records so far."""
        return self._file.read(1 << 62, 0)[0] - 1

    def records(self, after: int) -> Iterator[CaptureRecord]:
        """Yield the records behind the first `after` ones. Any thread may ask."""
        _, found = self._file.read(after, 1 << 30)
        return CaptureReader().feed(b"".join([self._file.head, *found]))

    def through(self, host: str) -> Rewriter:
        """Return a rewriter of broker URLs for a client that knows the proxy as `host`, which is never 0.0.0.0."""
        return Rewriter(partial(self._through, host))


class ProxiedConnection:
    """Carry one connection in both directions."""

    def __init__(self, proxy: Proxy, number: int) -> None:
        self._proxy = proxy
        self._number = number
        self._open = True

    async def through(self, target: ProxiedBroker, client: trio.SocketStream) -> None:
        """Carry bytes until both sides have ended."""
        try:
            peer = ":".join(map(str, client.socket.getpeername()[:2]))
            host = client.socket.getsockname()[0]
        except OSError:  # the client has disconnected already
            return
        self._proxy.writer.opened(self._number, *self._proxy.now(), peer=peer, broker=str(target))
        try:
            broker = await trio.open_tcp_stream(target.host, target.port)
        except (OSError, UnicodeError) as error:  # UnicodeError: the host's name is not valid
            self._closed(_BROKER, f"cannot connect to {target}: {getattr(error, 'strerror', None) or error}")
            return
        async with broker, trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            nursery.start_soon(self._pump, _CLIENT, client, broker, Rewriter(), scope)
            nursery.start_soon(self._pump, _BROKER, broker, client, self._proxy.through(host), scope)

    def _closed(self, sender: Direction, reason: str = "") -> None:
        if self._open:
            self._open = False
            self._proxy.writer.closed(self._number, sender, *self._proxy.now(), reason)

    async def _pump(
        self,
        sender: Direction,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        passing: Rewriter,
        both: trio.CancelScope,
    ) -> None:
        reason = ""
        sink_is_there = True
        while True:
            try:
                data = bytes(await source.receive_some(_READ))
            except trio.BrokenResourceError as error:
                data, reason = b"", str(error.__cause__ or error)
            frames, going = passing.feed(data) if data else ([passing.held], passing.end())
            self._record(sender, frames)  # before sending, so that no answer is recorded before its request
            if going and sink_is_there:
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    await sink.send_all(going)
                    going = b""
                sink_is_there = not going  # the other direction records the close
            if not data:
                break
        self._closed(sender, reason)
        both.deadline = min(both.deadline, trio.current_time() + LINGER)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await sink.send_eof()

    def _record(self, sender: Direction, frames: list[bytes]) -> None:
        for came in frames:
            if came:
                self._proxy.frames += 1
                self._proxy.writer.frame(self._number, sender, *self._proxy.now(), came)


@asynccontextmanager
async def proxying(
    target: ProxiedBroker, path: Path, *, host: str = "127.0.0.1", port: int = 0, keep_entry: int | None = None
) -> AsyncIterator[tuple[Proxy, str]]:
    """Run a proxy until the block ends, and yield the proxy and its URL.

    Raise `OSError` when the file or the port cannot be used.
    """
    clock = Clock()
    file = File(path)
    try:
        header = Header(int(clock.wall() * 1e9), metadata={"proxy": str(target)})
        writer = CaptureWriter(file.write, header, keep_entry=keep_entry)
        async with trio.open_nursery() as nursery:
            proxy = Proxy(file, writer, nursery, clock, host)
            yield proxy, str(ProxiedBroker(host, proxy.listen(target, port)))
            with trio.move_on_after(LAST_WORDS):
                await proxy.idle()
            nursery.cancel_scope.cancel()
    finally:
        file.close()
