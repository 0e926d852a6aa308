"""Sessions over TLS, on sockets."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.net import accepting
from pulsarium.broker.net.accepting import bind
from pulsarium.broker.session.session import sessions_of
from pulsarium.broker.session.transport import accept, over_tls
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.auth.secured import TLS, Authority, Files, by_token
from tests.broker.held import HeldStorage
from tests.broker.loopback import HANGS, until
from tests.broker.wire import TOPIC, Type, Wire, frame_of, plain, serving

MB = 1 << 20

pytestmark = pytest.mark.req("B-46")


class Secure:
    """A broker behind TLS, and the authority that its clients trust."""

    def __init__(self, broker: Broker, port: int, authority: Authority) -> None:
        self.broker = broker
        self.port = port
        self.authority = authority
        self.streams: list[trio.abc.Stream] = []

    async def raw(self) -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        self.streams.append(stream)
        return stream

    async def dial(self, client: Files | None = None) -> Wire:
        """Open a connection, and complete the client's side of the handshake."""
        context = ssl.create_default_context(cafile=str(self.authority.path))
        if client is not None:
            context.load_cert_chain(client.certificate, client.key)
        stream = trio.SSLStream(await self.raw(), context, server_hostname="localhost", https_compatible=True)
        await stream.do_handshake()
        return Wire(stream)

    async def connect(self, client: Files | None = None, **fields: Any) -> Wire:
        wire = await self.dial(client)
        await wire.connect(**fields)
        return wire


@asynccontextmanager
async def listening(folder: Path, config: Config, storage: HeldStorage | None = None) -> AsyncIterator[Secure]:
    authority = Authority(folder)
    context = context_of(with_tls(config, authority))
    with trio.fail_after(HANGS), bind("127.0.0.1", 0, "--tls-port") as listener:
        async with serving(config, storage=storage) as bed, trio.open_nursery() as nursery:
            nursery.start_soon(accept, bed.broker, listener, over_tls(lambda: context))
            secure = Secure(bed.broker, listener.getsockname()[1], authority)
            try:
                yield secure
            finally:
                for stream in secure.streams:
                    await trio.aclose_forcefully(stream)
            nursery.cancel_scope.cancel()


def with_tls(config: Config, authority: Authority) -> Config:
    files = authority.sign("server")
    return replace(
        config,
        tlsCertificateFilePath=str(files.certificate),
        tlsKeyFilePath=str(files.key),
        tlsTrustCertsFilePath=str(authority.path),
    )


async def test_large_messages_pass_both_ways_over_tls(tmp_path: Path) -> None:
    async with listening(tmp_path, Config()) as secure:
        wire = await secure.connect()
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        payloads = [bytes([i]) * MB * 2 for i in range(3)]
        for payload in payloads:
            await wire.write(wire.sends(plain(payload)))
        found: list[Any] = [await wire.next() for _ in range(6)]
        kinds = [each.command.type for each in found]
        assert kinds.count(Type.MESSAGE) == kinds.count(Type.SEND_RECEIPT) == 3


async def test_the_certificate_of_a_client_is_its_role(tmp_path: Path) -> None:
    async with listening(tmp_path, by_token(authenticationProviders=(TLS,))) as secure:
        wire = await secure.connect(secure.authority.sign("admin"), auth_method_name="tls")
        await wire.producer()
        user = await secure.connect(secure.authority.sign("user"), auth_method_name="tls")
        code, _ = await user.refused(Type.PRODUCER, topic=TOPIC, producer_id=0)
        assert code == pb.AuthorizationError
        nobody = await secure.dial()
        await nobody.write(frame_of(Type.CONNECT, client_version="x", protocol_version=21, auth_method_name="tls"))
        (received,) = await nobody.closed()
        assert received.command.error.error == pb.AuthenticationError


async def test_the_certificate_of_a_stranger_ends_the_handshake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(tmp_path, Config()) as secure:
        stranger = Authority(tmp_path, "stranger").sign("admin-of-nothing")
        wire = await secure.dial(stranger)  # TLS 1.3: the client notices the refusal at its first read
        assert await wire.closed() == []
        assert "a TLS handshake failed" in caplog.text
        await (await secure.connect()).alive()


async def test_a_client_that_only_knocks_is_no_failed_handshake(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(tmp_path, Config()) as secure:
        await (await secure.raw()).aclose()
        await (await secure.connect()).alive()
        assert "a TLS handshake failed" not in caplog.text


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", frame_of(Type.PING), b"\x16\x03\x01\x05\x00\x01"])
async def test_bytes_that_are_no_tls_harm_no_other_connection(
    data: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(tmp_path, Config()) as secure:
        stream = await secure.raw()
        await stream.send_all(data)
        if data[0] == 0x16:  # an incomplete handshake
            await stream.aclose()
        else:
            while await stream.receive_some():
                pass
        await (await secure.connect()).alive()
        await until(lambda: "a TLS handshake failed" in caplog.text)


async def test_a_tls_handshake_may_not_take_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(accepting, "HANDSHAKE_SECONDS", 0.01)
    async with listening(tmp_path, Config()) as secure:
        stream = await secure.raw()
        assert await stream.receive_some() == b""
    assert "no handshake within 0.01 seconds" in caplog.text


async def test_the_broker_says_goodbye(tmp_path: Path) -> None:
    """The broker sends close_notify, so that a client knows that it has all bytes."""
    async with listening(tmp_path, Config()) as secure:
        wire = await secure.connect()
        await wire.send(Type.SEND, plain(b"of no producer"), producer_id=5, sequence_id=0)
        stream = wire.stream
        assert isinstance(stream, trio.SSLStream)
        context = ssl.create_default_context(cafile=str(secure.authority.path))
        strict = trio.SSLStream(await secure.raw(), context, server_hostname="localhost")
        other = Wire(strict)
        await other.connect()
        await other.send(Type.CONNECT, client_version="again", protocol_version=21)
        assert await other.closed() == []


async def test_reading_over_tls_pauses_while_too_many_sends_wait(tmp_path: Path) -> None:
    store = HeldStorage()
    async with listening(tmp_path, Config(maxPendingPublishRequestsPerConnection=10), store) as secure:
        wire = await secure.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.sends(*[plain(b"x")] * 10))
        await until(lambda: any(not session.may_read for session in sessions_of(secure.broker)))
        await wire.write(frame_of(Type.PING))
        await wire.quiet(0.02)  # the broker does not even read the PING
        store.release()
        assert len(await wire.receipts(10)) == 10
        await wire.expect(Type.PONG)
        await wire.publish(*[plain(b"y")] * 100)


async def test_a_client_over_tls_that_vanishes_is_let_go(tmp_path: Path) -> None:
    async with listening(tmp_path, Config()) as secure:
        await secure.connect()
        (session,) = sessions_of(secure.broker)
        raw = secure.streams[0]
        assert isinstance(raw, trio.SocketStream)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        await trio.aclose_forcefully(raw)
        await until(lambda: not sessions_of(secure.broker))
        assert session.left
