"""HTTP on a socket."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker import accepting
from pulsarium.broker.auth.tls import TlsContext
from pulsarium.broker.broker import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.http.server import serve_http
from pulsarium.broker.server import bind
from pulsarium.broker.web import site_of
from tests.broker.auth.secured import TLS, Authority, Files, by_token
from tests.broker.loopback import HANGS
from tests.broker.wire import serving

GET = b"GET /admin/v2/tenants HTTP/1.1\r\nHost: x\r\n\r\n"
NONSENSE = (
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"\x00" * 5000,
    b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"x" * 100_000,
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
)
TENANTS = b'["public","pulsar"]'


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
        """Return when it has stopped, which it does without waiting: tests call it on a clock that stands still."""
        self._scope.cancel()
        await self.stopped.wait()


@asynccontextmanager
async def served(config: Config | None = None, tls: TlsContext | None = None) -> AsyncIterator[Served]:
    with trio.fail_after(HANGS), bind("127.0.0.1", 0, "--http-port") as sock:
        async with serving(config) as bed, trio.open_nursery() as nursery:
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
    """Head and body of one answer."""
    await stream.send_all(request)
    data = b""
    while b"\r\n\r\n" not in data:
        data += await read(stream)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(body) < length:
        body += await read(stream)
    return head, body


async def read(stream: trio.abc.Stream) -> bytes:
    data = bytes(await stream.receive_some(1 << 20))
    assert data, "the server hung up"
    return data


@pytest.mark.heavy
async def test_a_connection_serves_for_ever() -> None:
    """A server of this kind ends a connection after a thousand requests, unless it is told not to."""
    async with served() as http, await http.connect() as stream:
        for _ in range(1001):
            await answer(stream)


async def test_one_connection_many_requests() -> None:
    async with served() as http, await http.connect() as stream:
        for _ in range(3):
            head, body = await answer(stream)
            assert head.startswith(b"HTTP/1.1 200")
            assert body == TENANTS
            assert b"server:" not in head.lower()
        await stream.send_all(GET * 20)
        data = b""
        while data.count(TENANTS) < 20:
            data += await read(stream)


async def test_a_body_that_no_handler_wants_does_not_end_the_connection() -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(b"POST /admin/v2/brokers/version HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
        await wait_all_tasks_blocked(0.01)
        head, _ = await answer(stream, b"{}")
        assert head.startswith(b"HTTP/1.1 405")
        assert (await answer(stream))[1] == TENANTS


async def test_what_is_not_http_harms_nobody() -> None:
    async with served() as http, await http.connect() as good:
        for nonsense in NONSENSE:
            async with await http.connect() as bad:
                await bad.send_all(nonsense)
                with suppress(trio.BrokenResourceError):
                    await bad.send_eof()
                    while await bad.receive_some(1 << 16):
                        pass
        assert (await answer(good))[1] == TENANTS


async def test_a_fault_ends_neither_connection_nor_server() -> None:
    async with served() as http, await http.connect() as stream:
        with patch.object(type(http.broker.metadata), "tenants", property(lambda self: 1 / 0), create=True):
            head, body = await answer(stream)
        assert head.startswith(b"HTTP/1.1 500")
        assert body.startswith(b'{"reason":')
        assert (await answer(stream))[1] == TENANTS


async def test_it_stops_with_idle_connections(mock_clock: MockClock) -> None:
    async with served() as http:
        streams = [await http.connect() for _ in range(5)]
        for stream in streams[1:]:
            await answer(stream)
        await http.stop()
        for stream in streams:
            assert await stream.receive_some(1) == b""
            await stream.aclose()


async def test_it_stops_while_a_client_does_not_read(mock_clock: MockClock) -> None:
    async with served() as http:
        for index in range(300):
            http.broker.metadata.put_tenant(f"{'tenant' * 20}{index}", {})
        stream = await http.connect(receive_buffer=4096)
        await stream.send_all(GET * 100)
        await wait_all_tasks_blocked(0.01)  # the server answers until the socket is full
        await http.stop()
        await trio.aclose_forcefully(stream)


async def test_it_stops_in_the_middle_of_a_request(mock_clock: MockClock) -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await http.stop()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


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


async def test_the_certificate_of_a_connection_is_the_role_of_its_requests(authority: Authority) -> None:
    async with served(by_token(authenticationProviders=(TLS,)), context_of(authority)) as https:
        async with await shake_hands(https, authority, authority.sign("admin")) as stream:
            for _ in range(2):
                assert (await answer(stream))[1] == TENANTS
        for name, status in (("user", b" 401 "), (None, b" 401 ")):
            client = None if name is None else authority.sign(name)
            async with await shake_hands(https, authority, client) as stream:
                assert status in (await answer(stream))[0]


@pytest.mark.parametrize("data", NONSENSE, ids=range(len(NONSENSE)))
async def test_what_is_not_https_harms_nobody(
    data: bytes, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tls=context_of(authority)) as https:
        async with await https.connect() as stream:
            with suppress(trio.BrokenResourceError):
                await stream.send_all(data)
                await stream.send_eof()
                while await stream.receive_some():
                    pass
        async with await shake_hands(https, authority) as good:
            assert (await answer(good))[1] == TENANTS
    assert "a TLS handshake failed" in caplog.text
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_handshake_may_not_take_for_ever(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(accepting, "HANDSHAKE_SECONDS", 0.01)
    async with served(tls=context_of(authority)) as https, await https.connect() as stream:
        assert await stream.receive_some() == b""
    assert "no handshake within 0.01 seconds" in caplog.text


async def test_it_stops_while_a_client_shakes_no_hands(mock_clock: MockClock, authority: Authority) -> None:
    async with served(tls=context_of(authority)) as https, await https.connect():
        await wait_all_tasks_blocked()
        await https.stop()


@pytest.mark.parametrize("requests", [0, 1, 3])
async def test_a_client_that_leaves_leaves_nothing_behind(requests: int) -> None:
    async with served() as http, await http.connect() as stays:
        await answer(stays)
        await wait_all_tasks_blocked(0.01)
        before = trio.lowlevel.current_statistics().tasks_living
        async with await http.connect() as leaves:
            for _ in range(requests):
                assert (await answer(leaves))[1] == TENANTS
        await wait_all_tasks_blocked(0.01)  # the server may not have seen it come yet
        while trio.lowlevel.current_statistics().tasks_living > before:
            await wait_all_tasks_blocked()
        assert (await answer(stays))[1] == TENANTS
