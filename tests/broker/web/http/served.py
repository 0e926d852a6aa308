"""A broker's HTTP port on a socket, and helpers for its clients."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock

from pulsarium.broker.auth.tls import TlsContext
from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import PIP, Config, Profile
from pulsarium.broker.net.accepting import bind
from pulsarium.broker.storage.interface import Storage
from pulsarium.broker.web.http.server import serve_http
from pulsarium.broker.web.routes import site_of
from tests.broker.auth.secured import Authority, Files
from tests.broker.loopback import HANGS
from tests.broker.wire import serving

GET = b"GET /admin/v2/tenants HTTP/1.1\r\nHost: x\r\n\r\n"
TENANTS = b'["public","pulsar"]'
UNDERWAY = 0.1  # seconds within which a busy kernel brings the bytes that it carries


class Served:
    """A broker's HTTP port, until `stop`."""

    def __init__(self, broker: Broker, port: int, scope: trio.CancelScope) -> None:
        self.broker = broker
        self.port = port
        self._scope = scope
        self.stopped = trio.Event()

    async def connect(self, receive_buffer: int = 0) -> trio.SocketStream:
        sock = trio.socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await sock.connect(("127.0.0.1", self.port))
        return trio.SocketStream(sock)

    async def stop(self) -> None:
        """Stop the server, and wait for its end. The server ends even while the clock stands still."""
        self._scope.cancel()
        await self.stopped.wait()


@asynccontextmanager
async def served(
    config: Config | None = None,
    tls: TlsContext | None = None,
    storage: Storage | None = None,
    profile: Profile = PIP,
) -> AsyncIterator[Served]:
    clock = trio.lowlevel.current_clock()
    if isinstance(clock, MockClock) and clock.autojump_threshold < UNDERWAY:
        clock.autojump_threshold = UNDERWAY  # all tasks wait while bytes are under way, and time may not jump then
    with trio.fail_after(HANGS), bind("127.0.0.1", 0, "--http-port") as sock:
        async with serving(config, storage=storage, profile=profile) as bed, trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            served = Served(bed.broker, sock.getsockname()[1], scope)

            async def run(task_status: trio.TaskStatus[None]) -> None:
                with scope:
                    await serve_http(site_of(bed.broker), sock, task_status, tls=tls)
                served.stopped.set()

            await nursery.start(run)
            yield served
            nursery.cancel_scope.cancel()


async def answer(stream: trio.abc.Stream, request: bytes = GET) -> tuple[bytes, bytes]:
    """Send a request, and return head and body of its answer. Read nothing of the next answer."""
    await stream.send_all(request)
    head, body = b"", b""
    while not head.endswith(b"\r\n\r\n"):
        head += await read(stream, 1)
    head = head.removesuffix(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(body) < length:
        body += await read(stream, length - len(body))
    return head, body


async def read(stream: trio.abc.Stream, most: int = 1 << 20) -> bytes:
    data = bytes(await stream.receive_some(most))
    assert data, "the server closed the connection"
    return data


def context_of(authority: Authority) -> TlsContext:
    files = authority.sign("server")
    config = Config(
        webServicePortTls=0,
        tlsCertificateFilePath=str(files.certificate),
        tlsKeyFilePath=str(files.key),
        tlsTrustCertsFilePath=str(authority.path),
    )
    return TlsContext(config, lambda: 0.0)


async def shake_hands(http: Served, authority: Authority, client: Files | None = None) -> trio.abc.Stream:
    context = ssl.create_default_context(cafile=str(authority.path))
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    stream = trio.SSLStream(await http.connect(), context, server_hostname="localhost", https_compatible=True)
    await stream.do_handshake()
    return stream


async def everything(http: Served, request: bytes) -> bytes:
    """Send a request on a new connection, and return all bytes until the server closes the connection."""
    async with await http.connect() as stream:
        await stream.send_all(request)
        return await rest_of(stream)


async def rest_of(stream: trio.abc.Stream) -> bytes:
    data = b""
    while piece := await stream.receive_some(1 << 16):
        data += piece
    return data
