"""An HTTP request and its body, which is bounded in size and in time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from urllib.parse import parse_qsl

import trio

from pulsarium.broker.auth.identity import Certificate
from pulsarium.broker.web.http.errors import AdminError

PIECE = 1 << 20  # bytes of a file that are written or read at once
BODY_SECONDS = 30.0  # without a byte of an announced body: Jetty's own idle timeout


class ClientGone(Exception):
    """Error for a client that went away during its request, or sent an invalid one."""


class BodyTooLarge(Exception):
    """Error for a body larger than the limit, which is maxMessageSize and its padding on most routes."""


class BodyTooSlow(Exception):
    """Error for a body of which no byte came for BODY_SECONDS."""


@dataclass(frozen=True, slots=True)
class HttpClient:
    """The client's end of a connection. `certificate` is the client's, verified by TLS."""

    host: str
    port: int
    secure: bool = False
    certificate: Certificate | None = None

    def __str__(self) -> str:
        return f"/{self.host}:{self.port}"


class HttpRequest:
    """A request of a client. The path stays encoded, so that an encoded slash stays inside its part.

    `receive` returns the next part of the body, and nothing at its end; it raises `ClientGone`.
    """

    def __init__(
        self,
        method: str,
        target: bytes,
        headers: Sequence[tuple[bytes, bytes]],
        caller: HttpClient,
        receive: Callable[[], Awaitable[bytes]],
    ) -> None:
        path, mark, self._query = target.partition(b"?")
        if path.startswith((b"http://", b"https://")):  # as proxies send it (RFC 9112, 3.2.2)
            path = b"/" + path.split(b"/", 3)[3] if path.count(b"/") > 2 else b"/"
        self.method = method
        self.target = (path + mark + self._query).decode("latin-1")
        """The path as the client sent it, and the query."""
        self.path = _tidy(path.decode("latin-1"))
        self.all_headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        self.headers = _first_of(self.all_headers)
        self.caller = caller
        # bytes of the request line and the headers
        self.head_size = len(method) + len(path) + len(self._query)
        self.head_size += sum(len(name) + len(value) + 4 for name, value in headers)
        self._receive = receive

    @property
    def url(self) -> str:
        """Return the whole URL, as the client sees it."""
        query = f"?{self._query.decode('latin-1')}" if self._query else ""
        return f"{'https' if self.caller.secure else 'http'}://{self.headers.get('host', '')}{self.path}{query}"

    @cached_property
    def query(self) -> Mapping[str, str]:
        """Return the values of the query by name. The first of several counts, as with JAX-RS's @QueryParam."""
        return _first_of(self.pairs)

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """Return all values of the query, each with its name."""
        return parse_qsl(self._query.decode("latin-1"), keep_blank_values=True)

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raise `BodyTooLarge` or `BodyTooSlow`."""
        body = bytearray()
        await self._each_piece(limit, body.extend)
        return bytes(body)

    async def drop(self, limit: int) -> None:
        """Read and discard a body. An unread body would end the connection."""
        await self._each_piece(limit, lambda piece: None)

    async def spool(self, limit: int, path: Path) -> int:
        """Write the body to a file, and return its size. Raise `AdminError` 507 when the disk is full."""
        size, waiting = 0, bytearray()

        def take(piece: bytes) -> Awaitable[object] | None:
            nonlocal size
            size += len(piece)
            waiting.extend(piece)
            if len(waiting) < PIECE:
                return None
            gathered = bytes(waiting)
            waiting.clear()
            return file.write(gathered)

        try:
            async with await trio.open_file(path, "wb") as file:
                await self._each_piece(limit, take)
                await file.write(bytes(waiting))
        except OSError as error:
            why = f"the body could not be written to {path.parent.parent}: {error.strerror or error}"
            remedy = "make room there, or start the broker with another folder in TMPDIR"
            raise AdminError(507, f"{why}; {remedy}") from None
        return size

    async def _each_piece(self, limit: int, take: Callable[[bytes], Awaitable[object] | None]) -> None:
        """Pass a body to `take` as it arrives. Raise `BodyTooLarge` or `BodyTooSlow`.

        Nothing is allocated or awaited for a claimed length. The result of `take` is awaited before more is read.
        """
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise BodyTooLarge
        size = 0
        with trio.move_on_after(BODY_SECONDS) as patience:
            while piece := await self._receive():
                size += len(piece)
                if size > limit:
                    raise BodyTooLarge
                if (taking := take(piece)) is not None:
                    patience.deadline = inf  # a disk may take its time
                    await taking
                patience.deadline = trio.current_time() + BODY_SECONDS
        if patience.cancelled_caught:
            raise BodyTooSlow


def _first_of(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Return values by name, in their order. The first of several counts."""
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def _tidy(path: str) -> str:
    """Return a path without a slash at its end.

    The path stays encoded, as an encoded slash or plus is not a plain one.
    """
    if path.count("/") > 1 and not path.startswith("/metrics"):
        return path.removesuffix("/")
    return path
