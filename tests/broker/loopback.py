"""A broker behind a socket, for tests of behavior that streams in memory do not have."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
import trio.testing

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.net.accepting import bind
from pulsarium.broker.session.transport import accept
from pulsarium.broker.storage.interface import Storage
from tests.broker.wire import Wire, serving

MB = 1 << 20
HANGS = 50  # seconds, after which a test on the real clock counts as hanging


class Loopback:
    """A broker behind a socket."""

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker = broker
        self.port = port
        self.wires: list[Wire] = []

    async def dial(self, receive_buffer: int = 0) -> Wire:
        """Open a connection. A small `receive_buffer`, in bytes, soon fills the broker's side."""
        sock = trio.socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await sock.connect(("127.0.0.1", self.port))
        wire = Wire(trio.SocketStream(sock))
        self.wires.append(wire)
        return wire

    async def connect(self, receive_buffer: int = 0) -> Wire:
        wire = await self.dial(receive_buffer)
        await wire.connect()
        return wire

    async def hang_up(self, wire: Wire) -> None:
        self.wires.remove(wire)
        await trio.aclose_forcefully(wire.stream)

    async def sessions(self, count: int) -> None:
        """Wait until the broker has `count` connections."""
        await until(lambda: len(self.broker.sessions) == count)


async def until(holds: Callable[[], object]) -> None:
    """Wait for a condition that bytes of a socket, or a thread, bring about. A busy kernel carries bytes late."""
    for _ in range(30_000):
        if holds():
            return
        await trio.testing.wait_all_tasks_blocked(0.001)
    raise AssertionError("it does not come to that")


@asynccontextmanager
async def listening(
    config: Config | None = None, storage: Storage | None = None, hangs: float = HANGS
) -> AsyncIterator[Loopback]:
    """Serve a broker on a socket. Sockets need the real clock, so no test may sleep on it."""
    with trio.fail_after(hangs), bind("127.0.0.1", 0, "--port") as listener:
        async with serving(config, storage=storage) as bed, trio.open_nursery() as nursery:
            nursery.start_soon(accept, bed.broker, listener)
            loopback = Loopback(bed.broker, listener.getsockname()[1])
            try:
                yield loopback
            finally:
                for wire in loopback.wires:
                    await trio.aclose_forcefully(wire.stream)
            nursery.cancel_scope.cancel()
