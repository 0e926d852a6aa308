"""Clients at the wrong port get an answer that they can show, are closed at once, and are named in the log."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.config import Config
from pulsarium.broker.net.accepting import shake_hands
from pulsarium.broker.net.slices import Admission
from tests.broker.auth.secured import Authority
from tests.broker.loopback import HANGS, listening
from tests.broker.web.http.served import everything, served
from tests.broker.wire import Type, frame_of

CONNECT = frame_of(Type.CONNECT, client_version="a client", protocol_version=21)
GET = b"GET /admin/v2/clusters HTTP/1.1\r\nHost: broker\r\n\r\n"


def client_hello() -> bytes:
    """Return the first bytes of a TLS client."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="broker")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


async def all_of(stream: trio.abc.Stream) -> bytes:
    """Return all that comes until the other side closes."""
    received = bytearray()
    while data := await stream.receive_some():
        received += data
    return bytes(received)


async def said_at_the_binary_port(first: bytes) -> bytes:
    async with listening() as loopback:
        wire = await loopback.dial()
        await wire.write(first)
        with trio.fail_after(HANGS):
            return await all_of(wire.stream)


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [one.partition("reason=")[2].strip('"') for one in said]


async def test_http_at_the_binary_port_is_told_where_http_is(caplog: pytest.LogCaptureFixture) -> None:
    answer = await said_at_the_binary_port(GET)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"This is the port of Pulsar clients; HTTP is answered at http://" in answer
    (reason,) = reasons(caplog)
    assert reason.startswith("HTTP came to the port of Pulsar clients; HTTP is answered at http://")


async def test_tls_at_a_port_without_tls_fails_as_such(caplog: pytest.LogCaptureFixture) -> None:
    """TLS libraries report that the broker's bytes are not TLS. Without bytes, they report only a closed connection."""
    answer = await said_at_the_binary_port(client_hello())
    incoming = ssl.MemoryBIO()
    incoming.write(answer)
    client = ssl.create_default_context().wrap_bio(incoming, ssl.MemoryBIO(), server_hostname="broker")
    with pytest.raises(ssl.SSLError, match=r"WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|RECORD_LAYER_FAILURE"):
        client.do_handshake()
    (reason,) = reasons(caplog)
    assert reason.startswith("TLS came to pulsar://")
    assert reason.endswith("--tls-port opens a port with TLS")


async def test_after_connect_such_bytes_are_a_broken_frame(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as loopback:
        wire = await loopback.connect()
        await wire.write(GET)
        assert await wire.closed() == []
    assert reasons(caplog) == ["frame of 1195725856 bytes is over the limit of 5253116"]


@asynccontextmanager
async def port_with_tls(folder: Path) -> AsyncIterator[trio.SocketStream]:
    """Connect to a port with TLS. The handshake has not begun."""
    authority = Authority(folder)
    certificate, key = authority.sign("broker")
    context = context_of(Config(tlsCertificateFilePath=str(certificate), tlsKeyFilePath=str(key)))
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def serve() -> None:
        raw = await listener.accept()
        assert await shake_hands(raw, context, "/peer", Admission()) is None
        await raw.aclose()

    async with listener, trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        with trio.fail_after(HANGS):
            async with await trio.open_tcp_stream(*listener.socket.getsockname()) as stream:
                yield stream


async def test_a_client_without_tls_gets_an_alert_at_a_port_with_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with port_with_tls(tmp_path) as stream:
        await stream.send_all(CONNECT)
        assert (await all_of(stream)).startswith(b"\x15\x03")
    said = "a client without TLS came to a port with TLS; its URL begins with pulsar+ssl:// or https://"
    assert reasons(caplog) == [said]


async def test_http_at_a_port_with_tls_is_told_of_https(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with port_with_tls(tmp_path) as stream:
        await stream.send_all(GET)
        assert (await all_of(stream)).endswith(b"This port speaks TLS; the URL begins with https://\n")
    assert reasons(caplog) == ["http:// came to a port with TLS; the URL begins with https://"]


async def test_a_client_that_does_not_trust_the_certificate_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with port_with_tls(tmp_path) as raw:
        stream = trio.SSLStream(raw, ssl.create_default_context(), server_hostname="broker")
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()
        await raw.send_eof()
        await all_of(raw)
    (reason,) = reasons(caplog)
    assert "does not trust the certificate" in reason or "may not trust the certificate" in reason


@pytest.mark.parametrize(
    ("first", "says"),
    [
        (client_hello(), "TLS came to http://"),
        (client_hello() + b"\n\n" + bytes(8), "TLS came to http://"),
        (CONNECT, "a Pulsar client came to the port of HTTP; its service URL is pulsar://"),
    ],
    ids=["TLS", "TLS with an empty line in it", "a Pulsar client"],
)
async def test_at_the_port_of_http_the_log_says_where_to_go(
    first: bytes, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served() as http:
        assert (await everything(http, first)).startswith(b"HTTP/1.1 400")
    (reason,) = reasons(caplog)
    assert reason.startswith(says)


async def test_a_broken_request_of_http_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as http:
        await everything(http, b"GET\r\n\r\n")
    assert reasons(caplog) == []
