"""HTTP on a socket."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker.net import accepting
from tests.broker.auth.secured import TLS, Authority, by_token
from tests.broker.web.http.served import GET, TENANTS, answer, context_of, read, served, shake_hands

NONSENSE = (
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"\x00" * 5000,
    b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"x" * 100_000,
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
)


@pytest.mark.heavy
async def test_a_connection_serves_for_ever() -> None:
    """Servers of this kind close a connection after a thousand requests by default."""
    async with served() as http, await http.connect() as stream:
        for _ in range(1001):
            await answer(stream)


async def test_a_connection_takes_many_requests() -> None:
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


async def test_bytes_that_are_not_http_harm_no_other_connection() -> None:
    async with served() as http, await http.connect() as good:
        for nonsense in NONSENSE:
            async with await http.connect() as bad:
                await bad.send_all(nonsense)
                with suppress(trio.BrokenResourceError):
                    await bad.send_eof()
                    while await bad.receive_some(1 << 16):
                        pass
        assert (await answer(good))[1] == TENANTS


async def test_the_server_stops_with_idle_connections(mock_clock: MockClock) -> None:
    async with served() as http:
        streams = [await http.connect() for _ in range(5)]
        for stream in streams[1:]:
            await answer(stream)
        await http.stop()
        for stream in streams:
            assert await stream.receive_some(1) == b""
            await stream.aclose()


async def test_the_server_stops_while_a_client_does_not_read(mock_clock: MockClock) -> None:
    async with served() as http:
        for index in range(300):
            http.broker.metadata.put_tenant(f"{'tenant' * 20}{index}", {})
        stream = await http.connect(receive_buffer=4096)
        await stream.send_all(GET * 100)
        await wait_all_tasks_blocked(0.01)  # the server answers until the socket is full
        await http.stop()
        await trio.aclose_forcefully(stream)


async def test_the_server_stops_in_the_middle_of_a_request(mock_clock: MockClock) -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        await http.stop()


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
async def test_bytes_that_are_not_tls_harm_no_other_connection(
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


async def test_the_server_stops_while_a_client_shakes_no_hands(mock_clock: MockClock, authority: Authority) -> None:
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
        await wait_all_tasks_blocked(0.01)  # the server may not have accepted the connection yet
        while trio.lowlevel.current_statistics().tasks_living > before:
            await wait_all_tasks_blocked()
        assert (await answer(stays))[1] == TENANTS
