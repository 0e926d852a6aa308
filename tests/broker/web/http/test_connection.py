"""HTTP connections: framing, the order of answers, and the end."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from unittest.mock import AsyncMock, patch

import h11
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from pulsarium.broker.config import Config
from pulsarium.broker.net import slices
from pulsarium.broker.net.accepting import PlainStream
from pulsarium.broker.web.http import connection
from pulsarium.broker.web.http.reply import HttpReply
from pulsarium.broker.web.http.site import Site
from tests.broker.auth.secured import Authority
from tests.broker.passes import passes_of_the_loop
from tests.broker.web.http.served import GET, TENANTS, answer, context_of, everything, rest_of, served, shake_hands

TENANT = json.dumps({"adminRoles": [], "allowedClusters": ["standalone"]}).encode()
PUT = b"PUT /admin/v2/tenants/t HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


async def test_an_answer_has_a_date_and_no_more_than_it_needs() -> None:
    async with served() as http, await http.connect() as stream:
        head, _ = await answer(stream)
    names = [line.split(b":")[0] for line in head.lower().split(b"\r\n")[1:]]
    assert names == [b"content-length", b"content-type", b"date"]


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(PUT + b"Content-Length: %d\r\n\r\n%s" % (len(TENANT), TENANT) + GET)
        data = b""
        while b"]" not in data:
            data += await stream.receive_some(1 << 16)
        assert data.startswith(b"HTTP/1.1 204")
        assert data.endswith(b'["public","pulsar","t"]')


@pytest.mark.parametrize(
    ("request_", "status", "end"),
    [
        (b"GET /admin/v2/tenants HTTP/1.0\r\n\r\n", 200, TENANTS),
        (GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), 200, TENANTS),
        # A whole URL, as proxies send it.
        (b"GET http://x:8080/admin/v2/tenants HTTP/1.0\r\n\r\n", 200, TENANTS),
        (b"GET http://x:8080 HTTP/1.0\r\n\r\n", 200, b""),
        (b"GET http://x:8080/ HTTP/1.0\r\n\r\n", 200, b""),
        (b"GET http://x:8080/nothing HTTP/1.0\r\n\r\n", 404, b""),
        (PUT + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", 413, b""),
    ],
    ids=["1.0", "close", "url", "url without path", "url of the page", "url of nothing", "100-continue with too much"],
)
async def test_a_connection_closes_after_its_answer(request_: bytes, status: int, end: bytes) -> None:
    async with served() as http:
        said = await everything(http, request_)
    assert said.startswith(b"HTTP/1.1 %d" % status)
    assert b"connection: close" in said.lower()
    assert said.endswith(end)


async def test_a_client_that_has_half_closed_is_answered() -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(GET)
        await stream.send_eof()
        assert (await rest_of(stream)).endswith(TENANTS)


async def test_head_has_the_length_and_no_body() -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(b"HEAD /admin/v2/tenants HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        data = b""
        while TENANTS not in data:
            data += await stream.receive_some(1 << 16)
    assert data.count(b"content-length: %d" % len(TENANTS)) == 2
    assert data.count(TENANTS) == 1


async def test_a_body_comes_in_chunks() -> None:
    half = len(TENANT) // 2
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (TENANT[:half], TENANT[half:]))
    async with served() as http, await http.connect() as stream:
        await stream.send_all(PUT + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n" + GET)
        data = b""
        while b"]" not in data:
            data += await stream.receive_some(1 << 16)
    assert data.startswith(b"HTTP/1.1 204")
    assert data.endswith(b'["public","pulsar","t"]')


async def test_tiny_chunks_let_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0.0)
    next_event = h11.Connection.next_event
    events = most = 0

    def counted(self: h11.Connection) -> object:
        nonlocal events
        events += 1
        return next_event(self)

    async def other() -> None:
        nonlocal events, most
        while True:
            most, events = max(most, events), 0
            await trio.lowlevel.checkpoint()

    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in TENANT + b" " * 2000)
    async with served() as http, await http.connect() as stream, trio.open_nursery() as nursery:
        monkeypatch.setattr(h11.Connection, "next_event", counted)
        nursery.start_soon(other)
        await stream.send_all(PUT + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert (await stream.receive_some(1 << 16)).startswith(b"HTTP/1.1 204")
        nursery.cancel_scope.cancel()
    assert 0 < most < 10


@pytest.mark.parametrize("length", [0, 4, 99_999_999])
async def test_a_body_with_two_lengths_is_none(length: int) -> None:
    """A proxy in between may believe the other length, and take the following bytes for a request."""
    lengths = b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % length
    async with served() as http:
        said = await everything(http, PUT + lengths + b"%x\r\n%s\r\n0\r\n\r\n" % (len(TENANT), TENANT) + GET)
        assert "t" not in http.broker.metadata.tenants
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in said.lower()
    assert said.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("empty", [b"\r\n", b"\n", b"\r\n\r\n", b"\r\n" * 30_000])
async def test_empty_lines_before_a_request_are_passed_over(empty: bytes) -> None:
    """Old clients send an empty line after a body."""
    put = PUT + b"Content-Length: %d\r\n\r\n%s" % (len(TENANT), TENANT)
    async with served() as http, await http.connect() as stream:
        for each in (empty + GET, empty + GET):
            assert (await answer(stream, each))[1] == TENANTS
        await stream.send_all(put + empty + GET)
        data = b""
        while b"]" not in data:
            data += await stream.receive_some(1 << 16)
        assert data.endswith(b'["public","pulsar","t"]')
        for byte in empty[:4]:
            await stream.send_all(b"%c" % byte)
            await wait_all_tasks_blocked(0.01)
        assert (await answer(stream))[0].startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("pieces", [1, 3, 1000])
async def test_a_query_beyond_ascii_is_taken(pieces: int) -> None:
    """Curl sends such queries. A path beyond ASCII is refused, as in Jetty."""
    url = b"/admin/v2/persistent/public/default/t/partitions?%s&checkAllowAutoCreation=true"
    request = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % (url % "é=\N{SNOWMAN}".encode())
    async with served() as http, await http.connect() as stream:
        assert (await answer(stream, GET + request))[1] == TENANTS
        assert (await answer(stream, b""))[0].startswith(b"HTTP/1.1 200")
        size = max(1, len(request) // pieces)
        for start in range(0, len(request), size):
            await stream.send_all(request[start : start + size])
            await wait_all_tasks_blocked()
        assert (await answer(stream, b""))[0].startswith(b"HTTP/1.1 200")
        assert (await everything(http, "GET /é?é HTTP/1.1\r\nHost: x\r\n\r\n".encode())).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (GET, b"200 OK"),
        (PUT + b"Content-Length: %d\r\n\r\n%s" % (len(TENANT), TENANT), b"204 No Content"),
        (b"HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n", b"404 Not Found"),
        (PUT + b"Content-Length: 99999999\r\n\r\n", b"413 Payload Too Large"),
        (PUT + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n", b"100 Continue"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request"),
    ],
)
async def test_a_status_has_its_phrase(request_: bytes, line: bytes) -> None:
    """Java's admin client shows the phrase when the body has no reason."""
    async with served() as http, await http.connect() as stream:
        await stream.send_all(request_)
        assert (await stream.receive_some(1 << 16)).startswith(b"HTTP/1.1 %s\r\n" % line)


async def test_a_status_without_a_phrase_is_sent_without_one() -> None:
    async with served() as http:
        with patch.object(Site, "answer", AsyncMock(return_value=HttpReply(599))):
            assert (await everything(http, GET[:-2] + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 599 \r\n")


async def bodies_of(reply: HttpReply) -> tuple[bytes, list[int]]:
    """Return the bytes of an answer, and the number of body bytes in each write."""
    sizes, write = list[int](), connection.HttpConnection._write

    async def noting(self: connection.HttpConnection, *events: h11.Event) -> None:
        sizes.append(sum(len(event.data) for event in events if isinstance(event, h11.Data)))
        await write(self, *events)

    async with served() as http:
        with (
            patch.object(Site, "answer", AsyncMock(return_value=reply)),
            patch.object(connection.HttpConnection, "_write", noting),
        ):
            return await everything(http, GET[:-2] + b"Connection: close\r\n\r\n"), sizes


async def test_pieces_go_out_together_and_with_their_length() -> None:
    said, sizes = await bodies_of(HttpReply(200, pieces=(b"x" * 1000 for _ in range(200))))
    assert b"content-length: 200000" in said.lower()
    assert said.endswith(b"\r\n\r\n" + b"x" * 200_000)
    assert sizes == [65_000] * 3 + [5000, 0]


async def test_a_file_goes_out_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FILE_PIECE", 1000)
    (tmp_path / "file").write_bytes(b"x" * 2500)
    said, sizes = await bodies_of(HttpReply(200, file=tmp_path / "file"))
    assert b"content-length: 2500" in said.lower()
    assert said.endswith(b"\r\n\r\n" + b"x" * 2500)
    assert sizes == [1000, 1000, 500, 0]


async def test_a_large_answer_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads fast would take all of it at once."""
    monkeypatch.setattr(slices, "SLICE", 0.0)
    seen, send = list[int](), PlainStream._send

    def noting(stream: PlainStream, data: memoryview) -> int:
        seen.append(passes.number)
        return send(stream, data)

    monkeypatch.setattr(PlainStream, "_send", noting)
    with passes_of_the_loop() as passes:
        await bodies_of(HttpReply(200, body=b"x" * 10 * connection.PIECE))
    assert len(seen) == len(set(seen)) > 10


async def test_a_client_that_waits_for_100_continue_is_told() -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(PUT + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(TENANT))
        assert (await stream.receive_some(1 << 16)).startswith(b"HTTP/1.1 100")
        await stream.send_all(TENANT)
        assert (await stream.receive_some(1 << 16)).startswith(b"HTTP/1.1 204")
        assert b'"t"' in (await answer(stream))[1]


@pytest.mark.parametrize("upgrade", [b"websocket", b"h2c"])
async def test_an_upgrade_is_not_made(upgrade: bytes) -> None:
    async with served() as http, await http.connect() as stream:
        wish = b"\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Key: x\r\n\r\n" % upgrade
        for _ in range(2):
            assert (await answer(stream, GET.replace(b"\r\n\r\n", wish)))[1] == TENANTS


async def test_a_tunnel_is_not_made() -> None:
    async with served() as http, await http.connect() as stream:
        head, _ = await answer(stream, b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert head.split()[1][:1] == b"4"
        assert (await answer(stream))[1] == TENANTS


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (PUT + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n", 400),
        (b"GET /" + b"a" * 10_000, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 10_000, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 10_000 + b"\r\n\r\n", 431),
    ],
)
async def test_a_malformed_request_gets_its_status_and_closes_the_connection(request_: bytes, status: int) -> None:
    async with served() as http:
        said = await everything(http, request_)
    assert said.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in said.lower()


async def test_a_client_that_sends_too_much_can_read_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the connection while the client sends would reset it, and the answer would be lost."""
    monkeypatch.setattr(connection, "LEAVE_SECONDS", math.inf)
    async with served() as http, await http.connect() as stream:
        await stream.send_all(PUT + b"Content-Length: 60000000\r\n\r\n")
        for _ in range(100):
            await stream.send_all(bytes(60_000))
        assert (await rest_of(stream)).startswith(b"HTTP/1.1 413")


async def test_the_server_does_not_wait_for_ever_until_a_client_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEAVE_SECONDS", 0.05)
    async with served() as http, await http.connect() as stream:
        before = trio.lowlevel.current_statistics().tasks_living
        with suppress(trio.BrokenResourceError):
            await stream.send_all(PUT + b"Content-Length: 60000000\r\n\r\n")
            while trio.lowlevel.current_statistics().tasks_living >= before:
                await stream.send_all(bytes(60_000))
                await wait_all_tasks_blocked()


@pytest.mark.parametrize("body", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"])
async def test_a_body_that_breaks_off_changes_nothing(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with served() as http, await http.connect() as stream:
        await stream.send_all(PUT + body)
        await stream.send_eof()
        assert (await rest_of(stream)).startswith(b"HTTP/1.1 400")
        assert "t" not in http.broker.metadata.tenants
    assert caplog.records == []


async def test_a_client_may_leave_in_the_middle_of_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as http:
        for index in range(300):
            http.broker.metadata.put_tenant(f"{'tenant' * 20}{index}", {})
        await wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        stream = await http.connect(receive_buffer=4096)
        await stream.send_all(GET * 100)
        await stream.receive_some(10)
        await stream.aclose()
        while trio.lowlevel.current_statistics().tasks_living > before:
            await wait_all_tasks_blocked()
    assert caplog.records == []


async def test_a_fault_outside_the_handlers_is_answered_500(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("boom")

    async with served() as http, await http.connect() as other:
        await answer(other)
        with patch.object(Site, "answer", broken):
            assert (await everything(http, GET)).startswith(b"HTTP/1.1 500")
        assert (await answer(other))[1] == TENANTS
    assert "the site failed to answer a request" in caplog.text


async def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.05)
    async with served() as http:
        assert (await everything(http, GET)).endswith(TENANTS)


async def test_a_connection_without_a_request_is_closed_sooner_than_others(mock_clock: MockClock) -> None:
    """Admin clients open a connection only when they need it, and keep it after use."""
    async with served() as http, await http.connect() as pooled, await http.connect() as silent:
        await answer(pooled)
        await wait_all_tasks_blocked()
        mock_clock.jump(connection.FIRST_SECONDS)
        assert await silent.receive_some(1) == b""
        assert (await answer(pooled))[1] == TENANTS


async def test_no_more_connections_than_the_key_says() -> None:
    async with served(Config(maxHttpServerConnections=1)) as http:
        first = await http.connect()
        async with first, await http.connect() as second:
            await answer(first)
            await second.send_all(GET)
            with trio.move_on_after(0.05) as patience:
                await second.receive_some(1)
            assert patience.cancelled_caught
            await first.aclose()
            assert (await answer(second, b""))[1] == TENANTS


async def test_requests_are_answered_over_tls(authority: Authority) -> None:
    async with served(tls=context_of(authority)) as https:
        async with await shake_hands(https, authority) as stream:
            await stream.send_all(GET * 3)
            data = b""
            while data.count(TENANTS) < 3:
                data += await stream.receive_some(1 << 16)
        async with await shake_hands(https, authority) as stream:
            await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
            assert (await rest_of(stream)).startswith(b"HTTP/1.1 400")
