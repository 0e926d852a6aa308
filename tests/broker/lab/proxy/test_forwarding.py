"""HTTP that a proxy forwards: long bodies, answers without an end, redirects and TLS."""

from __future__ import annotations

import json
import ssl
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import h11
import pytest
import trio
import trio.testing

from pulsarium.broker.auth.tls import context_of
from pulsarium.broker.config import Config
from pulsarium.broker.lab.proxy.upstream import context_to_brokers
from pulsarium.broker.web import forwarding
from tests.broker.auth.secured import Authority
from tests.broker.lab.proxy.behind import in_front_of
from tests.broker.loopback import HANGS, MB, until

NOBODY = "pulsar://127.0.0.1:1"
PIECE = bytes(MB)
LONG = 32
"""Pieces of a body that may not be in memory as a whole."""
MOST = 20 * MB
SMALL = 20_000


class Talk:
    """An end of an HTTP connection."""

    def __init__(self, stream: trio.abc.Stream, role: type[h11.CLIENT | h11.SERVER]) -> None:
        self.stream = stream
        self.http = h11.Connection(role)
        self.pieces = 0  # chunks of the body that was read last
        self.trailers: list[tuple[bytes, bytes]] = []

    async def send(self, *events: h11.Event) -> None:
        await self.stream.send_all(b"".join(self.http.send(event) or b"" for event in events))

    async def next(self) -> h11.Event:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(bytes(await self.stream.receive_some(65536)))
        assert isinstance(event, h11.Event)
        return event

    async def ask(self, method: str, *headers: tuple[str, str], path: str = "/admin/v2/x") -> None:
        await self.send(h11.Request(method=method, target=path, headers=[("host", "localhost"), *headers]))

    async def answer(self, status: int, *headers: tuple[str, str]) -> None:
        await self.send(h11.Response(status_code=status, headers=[*headers]))

    async def head(self) -> h11.Response:
        """Return the head of an answer."""
        event = await self.next()
        assert isinstance(event, h11.Response)
        return event

    async def body(self) -> int:
        """Read a body and its trailers, and return the size of the body."""
        size = self.pieces = 0
        while isinstance(event := await self.next(), h11.Data):
            size += len(event.data)
            self.pieces += event.chunk_end
        assert isinstance(event, h11.EndOfMessage)
        self.trailers = list(event.headers)
        return size


Broker = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def served(broker: Broker, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Let `broker` talk with each client of an admin URL."""

    async def talks(raw: trio.SocketStream) -> None:
        stream = raw if tls is None else trio.SSLStream(raw, tls, server_side=True, https_compatible=True)
        with suppress(trio.BrokenResourceError, h11.ProtocolError):
            async with raw:
                await broker(Talk(stream, h11.SERVER))

    with trio.fail_after(HANGS):
        async with trio.open_nursery() as nursery:
            [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, talks, [listener])
            yield f"http{'s' if tls else ''}://localhost:{listener.socket.getsockname()[1]}"
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def through(broker: Broker) -> AsyncIterator[Talk]:
    """Open a connection to a proxy in front of a broker."""
    async with served(broker) as url, asking(url) as client:
        yield client


@asynccontextmanager
async def asking(admin_url: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[Talk]:
    async with in_front_of(NOBODY, admin_url, tls=tls) as it:
        place = urlsplit(it.proxy.admin_url)
        async with await trio.open_tcp_stream(place.hostname or "", place.port or 0) as stream:
            yield Talk(stream, h11.CLIENT)


def with_tls(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS of a broker, and that of a proxy which trusts it."""
    authority = Authority(folder)
    files = authority.sign("server")
    keys = Config(tlsCertificateFilePath=str(files.certificate), tlsKeyFilePath=str(files.key))
    return context_of(keys), context_to_brokers(authority.path)


@pytest.mark.parametrize("kind", ["application/octet-stream", "text/event-stream"])
async def test_the_beginning_of_an_answer_goes_on_before_the_rest_is_there(kind: str) -> None:
    """The broker sends the rest only once the client has the beginning."""
    there = trio.Event()
    begin = b"data: 1\n\n" if kind.startswith("text") else PIECE

    async def broker(talk: Talk) -> None:
        assert isinstance(await talk.next(), h11.Request)
        await talk.answer(200, ("content-type", kind))
        await talk.send(h11.Data(data=begin))
        await there.wait()
        await talk.send(h11.Data(data=b"rest"), h11.EndOfMessage())

    async with through(broker) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        await client.head()
        assert isinstance(await client.next(), h11.Data)
        there.set()
        await client.body()


async def test_a_long_upload_and_a_long_download_take_little_memory() -> None:
    got = 0

    async def broker(talk: Talk) -> None:
        nonlocal got
        await talk.next()
        got = await talk.body()
        await talk.answer(200, ("content-length", str(LONG * MB)))
        for _ in range(LONG):
            await talk.send(h11.Data(data=PIECE))
        await talk.send(h11.EndOfMessage())

    async with through(broker) as client:
        tracemalloc.start()
        try:
            await client.ask("PUT", ("transfer-encoding", "chunked"))
            for _ in range(LONG):
                await client.send(h11.Data(data=PIECE))
            await client.send(h11.EndOfMessage())
            head = await client.head()
            assert (b"content-length", b"%d" % (LONG * MB)) in head.headers
            assert (got, await client.body()) == (LONG * MB, LONG * MB)
            assert tracemalloc.get_traced_memory()[1] < MOST
        finally:
            tracemalloc.stop()


async def test_a_client_that_does_not_read_an_answer_holds_the_broker_back() -> None:
    sent = 0

    async def broker(talk: Talk) -> None:
        nonlocal sent
        await talk.next()
        await talk.answer(200)
        while True:
            await talk.send(h11.Data(data=PIECE))
            sent += 1

    async with through(broker) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        await until(lambda: sent)
        await trio.testing.wait_all_tasks_blocked(0.2)
        assert sent < LONG


async def test_an_answer_that_the_broker_breaks_off_is_broken_off() -> None:
    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(200, ("content-length", str(3 * MB)))
        await talk.send(h11.Data(data=PIECE))

    async with through(broker) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        await client.head()
        with pytest.raises(h11.RemoteProtocolError):
            await client.body()


async def test_a_connection_stays_after_a_long_answer() -> None:
    """The second request is sent before the first answer was read."""

    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(200)
        await talk.send(h11.Data(data=PIECE), h11.EndOfMessage())

    async with through(broker) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        await client.stream.send_all(b"GET /admin/v2/x HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await client.head()
        assert await client.body() == MB
        client.http.start_next_cycle()
        client.http.send(h11.Request(method="GET", target="/admin/v2/x", headers=[("host", "localhost")]))
        await client.head()
        assert await client.body() == MB


@pytest.mark.parametrize("size", [0, 1, MB], ids=str)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_trailers_and_the_date_go_on(size: int, version: str) -> None:
    """Trailers need HTTP/1.1."""
    dated, after = (b"date", b"Thu, 01 Jan 1970 00:00:00 GMT"), (b"x-after", b"1")

    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(200, ("date", dated[1].decode()), ("trailer", "x-after"), ("transfer-encoding", "chunked"))
        await talk.send(h11.Data(data=bytes(size)), h11.EndOfMessage(headers=[after]))

    async with through(broker) as client:
        await client.stream.send_all(b"GET /admin/v2/x HTTP/%s\r\nhost: localhost\r\n\r\n" % version.encode())
        client.http.send(h11.Request(method="GET", target="/", headers=[("host", "localhost")]))
        head = await client.head()
        assert [header for header in head.headers if header[0] == b"date"] == [dated]
        assert await client.body() == size
        assert client.trailers == ([after] if version == "1.1" else [])


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"x: 1\r\n"),
        (b"HTTP/1.1 200 OK\r\nx: ", b"1"),
    ],
    ids=["heads", "headers", "one header"],
)
async def test_a_head_without_an_end_is_no_answer(begin: bytes, again: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "PATIENCE", 0.2)

    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.stream.send_all(begin)
        while True:
            await talk.stream.send_all(again * 100)

    async with through(broker) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        head = await client.head()
        assert head.status_code == 502


async def test_tiny_chunks_are_joined() -> None:
    """The first chunk is so long that the answer goes on before its end is there."""

    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(200, ("transfer-encoding", "chunked"))
        await talk.send(h11.Data(data=PIECE))
        await talk.stream.send_all(b"1\r\nx\r\n" * SMALL + b"0\r\n\r\n")

    async with through(broker) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        await client.head()
        assert await client.body() == MB + SMALL
        assert 0 < client.pieces < SMALL / 100


async def test_a_body_goes_again_to_the_broker_to_which_the_first_one_leads() -> None:
    async def owner(talk: Talk) -> None:
        await talk.next()
        size = b"%d" % await talk.body()
        await talk.answer(200, ("content-length", str(len(size))))
        await talk.send(h11.Data(data=size), h11.EndOfMessage())

    async with served(owner) as url:

        async def other(talk: Talk) -> None:
            await talk.next()
            await talk.answer(307, ("location", f"{url}/admin/v2/x"), ("content-length", "0"))
            await talk.send(h11.EndOfMessage())

        async with through(other) as client:
            await client.ask("PUT", ("content-length", str(MB)))
            await client.send(h11.Data(data=PIECE), h11.EndOfMessage())
            await client.head()
            data = await client.next()
            assert isinstance(data, h11.Data)
            assert data.data == b"%d" % MB


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("http://localhost:no/", b"redirects to an invalid address"),
        ("http://me:secret@localhost:1/x", b"redirects to http://localhost:1, where credentials would travel"),
    ],
    ids=["invalid", "without TLS"],
)
async def test_a_redirect_to_no_safe_address_is_refused(location: str, told: bytes, tmp_path: Path) -> None:
    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(307, ("location", location), ("content-length", "0"))
        await talk.send(h11.EndOfMessage())

    of_broker, of_proxy = with_tls(tmp_path)
    async with served(broker, of_broker) as url, asking(url, of_proxy) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        assert (await client.head()).status_code == 502
        said = await client.next()
        assert isinstance(said, h11.Data)
        assert told in said.data


@pytest.mark.parametrize(("path", "reads"), [("/lookup/v2/topic/persistent/a/b/c", True), ("/admin/v2/x", False)])
async def test_the_broker_may_compress_all_but_the_lookups_that_the_proxy_changes(path: str, reads: bool) -> None:
    allowed: list[bool] = []

    async def broker(talk: Talk) -> None:
        asked = await talk.next()
        assert isinstance(asked, h11.Request)
        allowed.append((b"accept-encoding", b"gzip") in asked.headers)
        await talk.answer(204)
        await talk.send(h11.EndOfMessage())

    async with through(broker) as client:
        await client.ask("GET", ("accept-encoding", "gzip"), path=path)
        await client.send(h11.EndOfMessage())
        await client.head()
    assert allowed == [not reads]


async def plain_answer(talk: Talk) -> h11.Request:
    """Answer a request with 204, and return the request."""
    asked = await talk.next()
    assert isinstance(asked, h11.Request)
    await talk.body()
    await talk.answer(204)
    await talk.send(h11.EndOfMessage())
    return asked


@pytest.mark.parametrize("header", [("content-length", "19"), ("transfer-encoding", "chunked")], ids=str)
async def test_an_answer_to_head_tells_of_the_body_that_get_would_have(header: tuple[str, str]) -> None:
    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(200, header)
        await talk.send(h11.EndOfMessage())

    async with through(broker) as client:
        await client.ask("HEAD")
        await client.send(h11.EndOfMessage())
        head = await client.head()
        told = {name.decode(): value.decode() for name, value in head.headers}
        assert {name: told.get(name) for name in ("content-length", "transfer-encoding")} == {
            "content-length": None,
            "transfer-encoding": None,
            **dict([header]),
        }
        assert await client.body() == 0


async def test_headers_and_the_path_go_on_as_the_client_sent_them() -> None:
    """The headers that Connection names belong to the connection with the proxy."""
    asked: list[h11.Request] = []

    async def broker(talk: Talk) -> None:
        asked.append(await plain_answer(talk))

    async with through(broker) as client:
        sent = b"GET /admin/v2/x/?a=%2F&b HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nX-A: \xc3\xa9\r\n"
        await client.stream.send_all(sent + b"Connection: keep-alive, X-B\r\nX-B: 1\r\n\r\n")
        client.http.send(h11.Request(method="GET", target="/", headers=[("host", "localhost")]))
        await client.head()
    [request] = asked
    assert request.target == b"/admin/v2/x/?a=%2F&b"
    assert [pair for pair in request.headers if pair[0] != b"host"] == [(b"x-a", b"1"), (b"x-a", b"\xc3\xa9")]


async def test_a_question_about_the_whole_server_goes_on() -> None:
    asked: list[h11.Request] = []

    async def broker(talk: Talk) -> None:
        asked.append(await plain_answer(talk))

    async with through(broker) as client:
        await client.ask("OPTIONS", path="*")
        await client.send(h11.EndOfMessage())
        await client.head()
    assert [request.target for request in asked] == [b"*"]


async def test_a_lookup_at_a_broker_that_has_tls_only_leads_to_the_proxy() -> None:
    """Pulsar leaves out what a broker does not have."""
    found = {"brokerUrlTls": "pulsar+ssl://b:6651", "httpUrlTls": "https://b:8443", "brokerUrlSsl": ""}

    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(200)
        await talk.send(h11.Data(data=json.dumps(found).encode()), h11.EndOfMessage())

    async with served(broker) as url, asking(url, context_to_brokers()) as client:
        await client.ask("GET", path="/lookup/v2/topic/persistent/a/b/c")
        await client.send(h11.EndOfMessage())
        await client.head()
        said = await client.next()
        assert isinstance(said, h11.Data)
        told = json.loads(said.data)
        assert told["brokerUrl"].startswith("pulsar://localhost:")
        assert (told["brokerUrlTls"], told["httpUrlTls"]) == (None, None)


@pytest.mark.parametrize("target", ["@localhost:{port}/x", ".localhost:{port}/x", "localhost:{port}"])
async def test_a_target_that_is_no_path_leads_to_no_other_server(target: str) -> None:
    asked: list[h11.Request] = []

    async def other(talk: Talk) -> None:
        asked.append(await plain_answer(talk))

    async with served(other) as url, asking("http://localhost") as client:
        await client.ask("GET", path=target.format(port=urlsplit(url).port))
        await client.send(h11.EndOfMessage())
        head = await client.head()
        assert (head.status_code, asked) == (400, [])


async def test_early_hints_of_a_broker_are_no_answer() -> None:
    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.send(h11.InformationalResponse(status_code=103, headers=[]))
        await talk.answer(204)
        await talk.send(h11.EndOfMessage())

    async with through(broker) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        head = await client.head()
        assert head.status_code == 204


@pytest.mark.parametrize("path", ["/lab/clock", "/admin/v2/x"])
async def test_a_connection_stays_after_a_refusal_of_the_proxy(path: str) -> None:
    """The body of the refused request is read."""
    async with asking("http://localhost:1") as client:
        for _ in range(2):
            await client.ask("POST", ("content-type", "application/json"), ("content-length", "2"), path=path)
            await client.send(h11.Data(data=b"{}"), h11.EndOfMessage())
            head = await client.head()
            assert head.status_code in (501, 502)
            await client.body()
            client.http.start_next_cycle()


async def test_a_long_body_of_a_request_that_the_proxy_refuses_is_in_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    async with asking("http://localhost:1") as client:
        kind = ("content-type", "application/octet-stream")
        await client.ask("POST", kind, ("transfer-encoding", "chunked"), path="/lab/restore")
        await client.send(h11.Data(data=bytes(MB)), h11.EndOfMessage())
        head = await client.head()
        assert head.status_code == 501


@pytest.mark.parametrize("trusts", [True, False], ids=["trusted", "not trusted"])
async def test_an_https_url_of_the_admin_api_needs_trust(trusts: bool, tmp_path: Path) -> None:
    async def broker(talk: Talk) -> None:
        await talk.next()
        await talk.answer(204)
        await talk.send(h11.EndOfMessage())

    of_broker, of_proxy = with_tls(tmp_path)
    async with served(broker, of_broker) as url, asking(url, of_proxy if trusts else None) as client:
        await client.ask("GET")
        await client.send(h11.EndOfMessage())
        head = await client.head()
        if trusts:
            assert head.status_code == 204
        else:
            assert head.status_code == 502
            said = await client.next()
            assert isinstance(said, h11.Data)
            assert b"name the authority of its certificate with --tls-trust-cert-path FILE" in said.data


class Counted:
    """A broker that answers requests, and notes the methods that came over each of its connections.

    `answers` is how many requests of a connection it answers before it ends the connection, at the next request.
    """

    def __init__(self, *headers: tuple[str, str], answers: int = 100) -> None:
        self.seen: list[list[str]] = []
        self._headers = headers
        self._answers = answers

    async def __call__(self, talk: Talk) -> None:
        seen = list[str]()
        self.seen.append(seen)
        while True:
            while not isinstance(event := await talk.next(), h11.EndOfMessage):
                if isinstance(event, h11.ConnectionClosed):
                    return
                if isinstance(event, h11.Request):
                    seen.append(event.method.decode())
            if len(seen) > self._answers:
                return
            await talk.answer(200, ("content-length", "2"), *self._headers)
            await talk.send(h11.Data(data=b"ok"), h11.EndOfMessage())
            if talk.http.our_state is h11.MUST_CLOSE:
                return
            talk.http.start_next_cycle()


async def ask_each(client: Talk, *methods: str) -> None:
    """Ask one request after the other, and read each answer."""
    for method in methods:
        await client.ask(method, *([("content-length", "0")] if method == "POST" else []))
        await client.send(h11.EndOfMessage())
        assert (await client.head()).status_code == 200
        assert await client.body() == 2
        client.http.start_next_cycle()


async def test_requests_that_read_share_a_connection_to_the_broker() -> None:
    broker = Counted()
    async with through(broker) as client:
        await ask_each(client, "GET", "GET", "GET")
    assert broker.seen == [["GET"] * 3]


async def test_requests_that_read_share_a_connection_with_tls(tmp_path: Path) -> None:
    of_broker, of_proxy = with_tls(tmp_path)
    broker = Counted()
    async with served(broker, of_broker) as url, asking(url, of_proxy) as client:
        await ask_each(client, "GET", "GET", "GET")
    assert broker.seen == [["GET"] * 3]


async def test_a_request_that_changes_something_has_a_connection_of_its_own() -> None:
    """Requests that read take its connection afterwards."""
    broker = Counted()
    async with through(broker) as client:
        await ask_each(client, "GET", "POST", "DELETE", "GET")
    assert broker.seen == [["GET"], ["POST"], ["DELETE", "GET"]]


async def test_a_request_over_a_connection_that_the_broker_ends_is_asked_again() -> None:
    broker = Counted(answers=1)
    async with through(broker) as client:
        await ask_each(client, "GET", "GET")
    assert broker.seen == [["GET", "GET"], ["GET"]]


async def test_a_connection_that_the_broker_wants_to_end_is_not_kept() -> None:
    broker = Counted(("connection", "close"))
    async with through(broker) as client:
        await ask_each(client, "GET", "GET")
    assert broker.seen == [["GET"], ["GET"]]


async def test_a_connection_is_kept_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "KEPT_SECONDS", -1.0)
    broker = Counted()
    async with through(broker) as client:
        await ask_each(client, "GET", "GET")
    assert broker.seen == [["GET"], ["GET"]]


async def test_few_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MOST_KEPT", 1)
    broker, other = Counted(), Counted()
    async with served(broker) as url, served(other) as second:
        servers, question = forwarding.Servers(None), forwarding.Question("GET", [], b"")
        for each in (url, second, second, url):
            with ExitStack() as until_read:
                answer = await servers.ask(each, question, until_read)
                assert await answer.piece() == b"ok"
        servers.close()
    assert (broker.seen, other.seen) == ([["GET"], ["GET"]], [["GET", "GET"]])


async def test_a_connection_with_an_answer_that_was_not_read_is_not_kept() -> None:
    broker = Counted()
    async with served(broker) as url:
        servers, question = forwarding.Servers(None), forwarding.Question("GET", [], b"")
        for _ in range(2):
            with ExitStack() as until_read:
                await servers.ask(url, question, until_read)
    assert broker.seen == [["GET"], ["GET"]]
