"""Serve one HTTP connection with h11: the site answers one request after the other.

General-purpose servers give each request a task, channels and three writes. That takes longer than the site's own work.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing, suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import quote_from_bytes

import h11
import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.accepting import HandshakeStream, PlainStream
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.net.wrong_port import at_http_port
from pulsarium.broker.web.http.reply import Headers, HttpReply, Upgrade, encoded, gathered, reason
from pulsarium.broker.web.http.request import PIECE as FILE_PIECE
from pulsarium.broker.web.http.request import ClientGone, HttpClient, HttpRequest

log = PartLog("admin")

IDLE_SECONDS = 300.0  # how long a connection may idle between requests; admin clients pool theirs
FIRST_SECONDS = 10.0  # from the connection's beginning to its first request
HEAD_SECONDS = 30.0  # from the first byte of a request to the last of its head: Jetty's own idle timeout
SEND_SECONDS = 30.0  # for a client to take the next piece of its answer: the same timeout
LEAVE_SECONDS = 1.0  # for a client to read the answer before the close, which would discard it
PIECE = 64 << 10  # bytes of an answer that a client must take within SEND_SECONDS; the same number is read at once
ASCII: Final = bytes(range(128))
PHRASES: Final = {  # Java's admin client shows them where a body has no reason
    **{status.value: status.phrase for status in HTTPStatus},
    413: "Payload Too Large",  # Jetty's names, for every version of Python
    500: "Server Error",
}


class Answering(Protocol):
    """A site, as its connections see it."""

    @property
    def broker(self) -> Broker:
        """Return the broker that answers."""
        ...

    async def answer(self, request: HttpRequest, until_sent: ExitStack) -> HttpReply:
        """Answer a request. Raise `ClientGone` when the client goes away.

        `until_sent` holds resources that the answer needs.
        """
        ...


class HttpConnection:
    """An HTTP connection to one client over `stream`."""

    def __init__(
        self, site: Answering, stream: PlainStream | trio.SSLStream[HandshakeStream], caller: HttpClient
    ) -> None:
        self._site = site
        self._stream = stream
        self._caller = caller
        self._slice = Slice()  # of the current answer
        self._http = self._new()
        self._begin = b""  # of the next request; h11 may have taken it from broken bytes
        self._is_head = False
        self._patience = FIRST_SECONDS  # for the next request

    def _new(self) -> h11.Connection:
        return h11.Connection(h11.SERVER, max_incomplete_event_size=self._site.broker.config.httpMaxRequestHeaderSize)

    async def serve(self) -> None:
        """Answer requests until the client or the broker ends the connection."""
        try:
            while await self._serve_request():
                self._http.start_next_cycle()
                self._patience = IDLE_SECONDS
            if self._http.their_state in (h11.SEND_BODY, h11.ERROR):
                await self._leave()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return  # the client is gone

    async def turn_away(self, why: str) -> None:
        """Answer 503 with a reason to any request, and close."""
        reply = reason(503, why)
        length, kind = str(len(reply.body)).encode(), (reply.content_type or "").encode()
        headers = [(b"content-length", length), (b"content-type", kind), (b"connection", b"close")]
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self._write(_head_of(reply.status, headers), h11.Data(data=reply.body), h11.EndOfMessage())
            await self._leave()

    async def _serve_request(self) -> bool:
        """Answer one request. Return whether another request may follow on the connection."""
        try:
            request = await self._head()
        except h11.RemoteProtocolError as error:
            broker = self._site.broker
            reason = at_http_port(self._begin, broker.listener_at(broker.advertised_address))
            if reason is not None:
                log.warning("closing connection", peer=self._caller, reason=reason)
            await self._refuse(error.error_status_hint)
            return False
        await self._site.broker.cluster.admission.enter()  # thousands of clients may ask or leave at the same moment
        if request is None:
            return False
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
            await self._refuse(400)  # the end of the body is ambiguous (RFC 9112, 6.1)
            return False
        self._is_head = request.method == b"HEAD"
        method, headers = request.method.decode("ascii"), list(request.headers)
        asked = HttpRequest(method, request.target, headers, self._caller, self._receive)
        try:
            with ExitStack() as until_sent, suppress(ClientGone):
                reply = await self._site.answer(asked, until_sent)
                if isinstance(reply, Upgrade):
                    await reply.serve(self._stream, self._http.trailing_data[0])
                    return False
                await self._send(reply)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise
        except Exception as error:
            log.error("the site failed to answer a request", exception=error, peer=self._caller)
            await self._refuse(500)
            return False
        await self._refuse(400)  # a client that broke off its request has no answer yet
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _head(self) -> h11.Request | None:
        """Return the next request, or None when the client sends none in time."""
        with trio.CancelScope(deadline=trio.current_time() + self._patience) as patience:
            self._mend()
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(bytes(await self._stream.receive_some(PIECE)))
                self._mend()
                patience.deadline = min(patience.deadline, trio.current_time() + HEAD_SECONDS)
            return event if isinstance(event, h11.Request) else None
        return None

    def _mend(self) -> None:
        """Mend request lines that Jetty accepts and h11 does not: empty lines before, a query beyond ASCII."""
        waiting, _ = self._http.trailing_data
        self._begin = waiting[:16]
        if waiting.isascii() and not waiting.startswith((b"\r", b"\n")):
            return
        line, end, rest = waiting.lstrip(b"\r\n").partition(b"\n")
        path, mark, query = line.partition(b"?")
        mended = path + mark + quote_from_bytes(query, ASCII).encode() + end + rest
        if mended != waiting:
            self._http = self._new()
            if mended:  # an empty text would mean the end of the stream
                self._http.receive_data(mended)

    async def _receive(self) -> bytes:
        """Return the next part of the request's body, joined from chunks, which may be tiny. Return b"" at its end."""
        body, work = bytearray(), Slice()
        try:
            while self._http.their_state is h11.SEND_BODY:
                event = self._http.next_event()
                if isinstance(event, h11.Data):
                    body += event.data
                    await work.pause()
                elif event is h11.NEED_DATA:
                    if body:
                        break
                    if self._http.they_are_waiting_for_100_continue:
                        await self._write(h11.InformationalResponse(status_code=100, headers=[], reason=_phrase(100)))
                    self._http.receive_data(bytes(await self._stream.receive_some(PIECE)))
        except (h11.RemoteProtocolError, trio.BrokenResourceError):
            raise ClientGone from None
        return bytes(body)

    async def _send(self, reply: HttpReply) -> None:
        """Send an answer. Send a file, or a body in pieces, piece by piece, and free each piece."""
        self._slice = Slice()
        if reply.stream is not None and not self._is_head:
            head = _head_of(reply.status, reply.head(0))
            if reply.trailers is None:
                await self._send_until_gone(head, reply.stream)
            else:
                await self._send_stream(head, reply.stream, reply.trailers)
            return
        pieces = await gathered(reply.pieces)
        size = len(reply.body) + sum(map(len, pieces)) if reply.file is None else reply.file.stat().st_size
        waiting: list[h11.Event] = [_head_of(reply.status, reply.head(size))]  # head and body are one write
        if not self._is_head:
            if reply.file is not None:
                async with await trio.open_file(reply.file, "rb") as file:
                    while piece := await file.read(FILE_PIECE):
                        await self._write(*waiting, h11.Data(data=piece))
                        waiting.clear()
            while pieces:
                await self._write(*waiting, h11.Data(data=bytes(pieces.popleft())))
                waiting.clear()
            waiting.append(h11.Data(data=reply.body))
        await self._write(*waiting, h11.EndOfMessage())

    async def _send_stream(
        self, head: h11.Response, stream: AsyncGenerator[bytes, None], trailers: Callable[[], Headers]
    ) -> None:
        """Send a body as it is made, until its end."""
        async with aclosing(stream):
            await self._write(head)
            async for piece in stream:
                await self._write(h11.Data(data=piece))
        takes_trailers = (self._http.their_http_version or b"") >= b"1.1"
        await self._write(h11.EndOfMessage(headers=encoded(trailers()) if takes_trailers else []))

    async def _send_until_gone(self, head: h11.Response, stream: AsyncGenerator[bytes, None]) -> None:
        """Send a body that may have no end, until the client closes the connection."""

        async def until_gone() -> None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while await self._stream.receive_some(PIECE):
                    pass
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_gone)
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._send_stream(head, stream, lambda: ())
            nursery.cancel_scope.cancel()

    async def _refuse(self, status: int) -> None:
        """Answer a status without a body, for a request that the site cannot answer."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            await self._write(_head_of(status, headers), h11.EndOfMessage())

    async def _write(self, *events: h11.Event) -> None:
        data = b"".join(self._http.send(event) or b"" for event in events)
        for start in range(0, len(data), PIECE):
            with trio.move_on_after(SEND_SECONDS) as patience:
                await self._stream.send_all(data[start : start + PIECE])
            if patience.cancelled_caught:
                log.warning(
                    "closing an HTTP connection whose client does not read its answer",
                    peer=self._caller,
                    bytes=len(data),
                )
                raise trio.BrokenResourceError
            await self._slice.pause()  # a client that reads fast would take a large answer in one step

    async def _leave(self) -> None:
        """Let a client that is still sending read its answer before the connection closes."""
        stream = self._stream
        await (stream.transport_stream if isinstance(stream, trio.SSLStream) else stream).send_eof()
        with trio.move_on_after(LEAVE_SECONDS):
            while await self._stream.receive_some(PIECE):
                pass


def _head_of(status: int, headers: list[tuple[bytes, bytes]]) -> h11.Response:
    dated = any(name.lower() == b"date" for name, _ in headers)
    date = [] if dated else [(b"date", formatdate(usegmt=True).encode())]
    return h11.Response(status_code=status, headers=[*headers, *date], reason=_phrase(status))


def _phrase(status: int) -> bytes:
    return PHRASES.get(status, "").encode()
