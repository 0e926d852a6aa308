"""Connections to other servers: the reasons why they cannot be opened."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import trio

from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.config import Config
from pulsarium.broker.lab.proxy.upstream import context_to_brokers
from pulsarium.broker.net.dialling import FAILURES, dial, plain, why
from tests.broker.auth.secured import Authority
from tests.broker.loopback import HANGS, until


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"no TLS here", "it does not speak TLS ("),
        (b"HTTP/1.1 400 \r\n\r\n", "it does not speak TLS ("),
        (b"", "it ended the handshake of TLS; if its port is without TLS, name it as pulsar:// or http://"),
    ],
    ids=["text", "HTTP", "nothing"],
)
async def test_a_server_that_may_be_without_tls(answer: bytes, said: str) -> None:
    async def server(stream: trio.SocketStream) -> None:
        await stream.receive_some(65536)
        await stream.send_all(answer)

    with trio.fail_after(HANGS):
        async with trio.open_nursery() as nursery:
            [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, server, [listener])
            with pytest.raises(FAILURES) as caught:
                await dial("127.0.0.1", listener.socket.getsockname()[1], context_to_brokers())
            nursery.cancel_scope.cancel()
    assert said in why(caught.value)


@pytest.mark.parametrize(
    ("host", "trusts", "said"),
    [
        ("elsewhere", True, "certificate is not valid for 'elsewhere'; connect to a name of its certificate"),
        ("localhost", False, "; name the authority of its certificate with --tls-trust-cert-path FILE"),
    ],
)
async def test_a_server_whose_certificate_is_not_accepted(
    host: str, trusts: bool, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    files = authority.sign("server")
    keys = Config(tlsCertificateFilePath=str(files.certificate), tlsKeyFilePath=str(files.key))

    async def server(stream: trio.SSLStream[trio.SocketStream]) -> None:
        with suppress(trio.BrokenResourceError):
            await stream.do_handshake()

    with trio.fail_after(HANGS):
        async with trio.open_nursery() as nursery:
            [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
            secure = trio.SSLListener(listener, context_of(keys))
            nursery.start_soon(trio.serve_listeners, server, [secure])
            here = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])

            async def opened(*_: object) -> trio.SocketStream:
                return here

            monkeypatch.setattr(trio, "open_tcp_stream", opened)
            with pytest.raises(FAILURES) as caught:
                await dial(host, 0, context_to_brokers(authority.path if trusts else None))
            nursery.cancel_scope.cancel()
    assert said in why(caught.value)


async def test_a_server_that_is_not_there() -> None:
    with pytest.raises(FAILURES) as caught:
        await dial("127.0.0.1", 1)
    assert why(caught.value) == "connection refused; compare the URL, and look whether the broker runs"


@pytest.mark.parametrize("last", [b"x", b""], ids=["something came", "the server ended it"])
async def test_a_connection_is_idle_until_the_server_sends_or_ends_it(last: bytes) -> None:
    with trio.fail_after(HANGS):
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with (
            listener,
            plain(await dial("127.0.0.1", listener.socket.getsockname()[1])) as stream,
            await listener.accept() as server,
        ):
            assert stream.is_idle
            if last:
                await server.send_all(last)
            else:
                await server.send_eof()
            await until(lambda: not stream.is_idle)
            assert await stream.receive_some(2) == last
