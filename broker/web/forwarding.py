"""Ask a server over HTTP. Neither the body of the request nor that of the answer is in memory as a whole."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import h11
import trio

from pulsarium.broker.lab.proxy.upstream import trust_of_the_machine
from pulsarium.broker.net import dialling
from pulsarium.broker.net.dialling import Dialled, dial, plain
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.http.browser import HARMLESS
from pulsarium.broker.web.http.reply import Headers, encoded

MOST_HEAD: Final = 1 << 18  # bytes of the head of an answer
PATIENCE: Final = 120.0  # seconds for a server to accept a connection, for the head of its answer, and without a byte
PIECE: Final = 64 << 10
SWITCHED: Final = 101
MOST_KEPT: Final = 32
"""Connections that wait for the next request."""
KEPT_SECONDS: Final = 20.0
"""How long a connection waits. Pulsar's brokers wait for 30 s."""
ENDED: Final = (OSError, trio.BrokenResourceError, h11.ProtocolError)
"""What a request on a connection raises that the server has ended meanwhile."""
FAILURES: Final = (*dialling.FAILURES, h11.ProtocolError)
"""What `Servers.ask` and `Answer.piece` raise for a server that does not answer."""
Place = tuple[bool, str, int]  # whether TLS is used, the host and the port
_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class Question(NamedTuple):
    """A request without the place that is asked. The body is bytes, or in a file.

    With an Upgrade among the headers, the answer may have the status 101. Then `Answer.carry` carries the new protocol.
    """

    method: str
    headers: Headers
    body: bytes | Path


class Answer:
    """The answer of a server, whose body is read piece by piece."""

    def __init__(self, stream: Dialled, http: h11.Connection, head: h11.Response | h11.InformationalResponse) -> None:
        self.status = head.status_code
        self.headers = _decoded(head.headers.raw_items())
        self.trailers: Headers = ()
        """What follows the body, once `piece` has returned nothing."""
        self._stream = stream
        self._http = http

    def header(self, name: str) -> str:
        """Return the first value of a header, or ""."""
        return next((value for each, value in self.headers if each.lower() == name), "")

    async def piece(self) -> bytes:
        """Return the next piece of the body, joined from chunks, which may be tiny. Return nothing at its end."""
        body, work = bytearray(), Slice()
        while self._http.their_state is h11.SEND_BODY and len(body) < PIECE:
            if (event := self._http.next_event()) is h11.NEED_DATA:
                if body:
                    break
                await _receive(self._stream, self._http)
            elif isinstance(event, h11.Data):
                body += event.data
                await work.pause()
            elif isinstance(event, h11.EndOfMessage):
                self.trailers = _decoded(event.headers.raw_items())
        return bytes(body)

    async def carry(self, head: bytes, client: trio.abc.Stream, first: bytes) -> None:
        """Carry another protocol until one side ends. `head` begins it, and `first` is what the client sent already."""

        async def pump(data: bytes, source: trio.abc.Stream, sink: trio.abc.Stream) -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await sink.send_all(data)
                while piece := await source.receive_some(PIECE):
                    await sink.send_all(piece)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pump, head + self._http.trailing_data[0], self._stream, client)
            nursery.start_soon(pump, first, client, self._stream)


class _Connection(NamedTuple):
    """A connection to a server, and when its last answer was read."""

    place: Place
    stream: Dialled
    http: h11.Connection
    since: float = 0.0


class Servers:
    """Ask servers, and keep their connections for the next requests that read.

    A request that changes something has a connection of its own: when a server ends a kept one at the same moment, no
    one knows whether it did what was asked. `tls` is for https; by default the authorities of the machine are trusted.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._kept: list[_Connection] = []  # the oldest first
        self._most = MOST_KEPT

    def close(self) -> None:
        """Close the connections that are kept, and keep no other."""
        self._most = 0
        self._drop(self._kept)

    async def ask(self, url: str, question: Question, until_read: ExitStack) -> Answer:
        """Send a request to a URL, and return the answer once its head is there.

        The connection ends with `until_read`, or is kept if the answer was read to its end.
        """
        secure, host, port = place = place_of(url)
        kept = self._take(place) if question.method in HARMLESS else None
        if kept is not None:
            with suppress(*ENDED):
                return await self._ask(url, question, kept, until_read)
            self._drop([each for each in self._kept if each.place == place])  # likely ended, too
        with trio.fail_after(PATIENCE):
            context = (self._tls or trust_of_the_machine()) if secure else None
            stream = await dial(host, port, context)
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
        return await self._ask(url, question, _Connection(place, stream, http), until_read)

    def _take(self, place: Place) -> _Connection | None:
        """Return the latest connection to a server that the server has not ended."""
        old = trio.current_time() - KEPT_SECONDS
        self._drop([each for each in self._kept if each.since < old or not plain(each.stream).is_idle])
        found = next((each for each in reversed(self._kept) if each.place == place), None)
        if found is not None:
            self._kept.remove(found)
        return found

    def _drop(self, given: list[_Connection]) -> None:
        for each in list(given):
            self._kept.remove(each)
            plain(each.stream).close()

    def _end(self, connection: _Connection) -> None:
        """Keep a connection, or close it at once, without a goodbye of TLS."""
        http = connection.http
        is_done = http.our_state is h11.DONE and http.their_state is h11.DONE and not http.trailing_data[0]
        if not is_done or not self._most:
            plain(connection.stream).close()
            return
        http.start_next_cycle()
        self._kept.append(connection._replace(since=trio.current_time()))
        self._drop(self._kept[: -self._most])

    async def _ask(self, url: str, question: Question, connection: _Connection, until_read: ExitStack) -> Answer:
        until_read.callback(self._end, connection)
        return await _ask(url, question, connection.stream, connection.http)


def place_of(url: str) -> Place:
    """Return where a URL leads. Raise `ValueError` for one that is invalid."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    return secure, parts.hostname or "", parts.port or (443 if secure else 80)


async def _ask(url: str, question: Question, stream: Dialled, http: h11.Connection) -> Answer:
    parts = urlsplit(url)
    with suppress(trio.BrokenResourceError):  # a server may answer, and close, before it has read the whole body
        await _send(stream, http, question, parts.netloc.rpartition("@")[2], url)
    work = Slice()
    with trio.fail_after(PATIENCE):  # a server may send other heads before for ever
        while True:
            if (event := http.next_event()) is h11.NEED_DATA:
                await _receive(stream, http)
            elif isinstance(event, (h11.Response, h11.InformationalResponse)) and _is_last(event.status_code):
                return Answer(stream, http, event)
            await work.pause()


async def _send(stream: Dialled, http: h11.Connection, question: Question, host: str, url: str) -> None:
    method, headers, body = question
    parts = urlsplit(url)
    root = "*" if method == "OPTIONS" else "/"  # the server as a whole (RFC 9112, 3.2.4)
    target = (parts.path or root) + (f"?{parts.query}" if parts.query else "")
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    length = [("content-length", str(size))] if size or method in _WITH_BODY else []
    request = h11.Request(method=method, target=target, headers=encoded([("host", host), *headers, *length]))

    async def write(event: h11.Event) -> None:
        with trio.fail_after(PATIENCE):
            await stream.send_all(http.send(event) or b"")

    await write(request)
    if isinstance(body, bytes):
        await write(h11.Data(data=body))
    else:
        async with await trio.open_file(body, "rb") as file:
            while piece := await file.read(PIECE):
                await write(h11.Data(data=piece))
    await write(h11.EndOfMessage())


async def _receive(stream: Dialled, http: h11.Connection) -> None:
    with trio.fail_after(PATIENCE):
        http.receive_data(bytes(await stream.receive_some(PIECE)))


def _is_last(status: int) -> bool:
    """Return whether no other head follows one with this status."""
    return status == SWITCHED or status >= 200


def _decoded(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
