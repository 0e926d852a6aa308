"""Answers, in the forms that Pulsar gives them."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Final

import trio

from pulsarium.broker.net.slices import Slice

JSON = "application/json"
HTML = "text/html;charset=iso-8859-1"
WRITTEN = 64 << 10  # bytes of a body that are gathered for one write
AT_ONCE = 1000  # JSON values that are encoded at once: about half a millisecond
SERVLET = "org.glassfish.jersey.servlet.ServletContainer"
NAMES = {
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Payload Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Request failed.",
}

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A finished answer.

    Without `content_type` there is no such header. A `file` is sent in place of `body`. A long body is in `pieces`: the
    broker makes and sends one after the other, and other tasks run between two. `raw_headers` keep their case, and may
    repeat a name. Their Content-Length is that of an answer to HEAD, or of a `stream`. A `stream` has no end that is
    known: the connection closes behind it. One with `trailers`, which are asked for at its end, has an end.
    """

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw_headers: Headers = ()
    file: Path | None = None
    pieces: Iterable[bytes | bytearray] = ()
    stream: AsyncGenerator[bytes, None] | None = None
    trailers: Callable[[], Headers] | None = None

    def head(self, size: int) -> list[tuple[bytes, bytes]]:
        """Return the headers of an answer whose body has `size` bytes."""
        headers = [(name.lower(), value) for name, value in self.headers.items()]
        if self.stream is not None:
            headers += [("connection", "close")] if self.trailers is None else []
        elif self.status not in (204, 304) and not self._is_sized:
            headers.append(("content-length", str(size)))
        if self.content_type is not None:
            headers.append(("content-type", self.content_type))
        headers += self.raw_headers
        return encoded(headers)

    @property
    def _is_sized(self) -> bool:
        return any(name.lower() == "content-length" for name, _ in self.raw_headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(HttpReply):
    """The end of HTTP on a connection: `serve` answers the request and carries the new protocol.

    `serve` gets the bytes that the client sent behind its request.
    """

    serve: Callable[[trio.abc.Stream, bytes], Awaitable[None]]


def encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers as they are sent."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def json_bytes(value: Any) -> bytes:
    """Return JSON as Jackson writes it: without spaces, and without needless escapes."""
    try:
        return ENCODER.encode(value).encode(errors="replace")
    except ValueError:
        return ENCODER.encode(_finite(value)).encode(errors="replace")


def _finite(value: Any) -> Any:
    """Return a value with Java's names of numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def json_reply(value: Any, status: int = 200) -> HttpReply:
    """Return a JSON answer, in pieces if it has many values."""
    if _count(value) <= AT_ONCE:
        return HttpReply(status, json_bytes(value), JSON)
    return HttpReply(status, content_type=JSON, pieces=json_pieces(value))


class WrittenJson:
    """A JSON object that encodes small members when they are set.

    Encoded members are small, and no work for the garbage collector. Each name is set once.
    """

    def __init__(self) -> None:
        self._members: deque[tuple[bytes, Iterable[bytes]]] = deque()  # begin, other pieces

    def __setitem__(self, name: str, value: Any) -> None:
        if _count(value) <= AT_ONCE:
            self._members.append((json_bytes({name: value})[1:-1], ()))
        else:
            self._members.append((json_bytes({name: 0})[1:-2], json_pieces(value)))

    def pieces(self) -> Iterator[bytes]:
        """Yield the object, and free each member."""
        before = b"{"
        while self._members:
            begin, rest = self._members.popleft()
            yield before + begin
            yield from rest
            before = b","
        yield b"}" if before == b"," else b"{}"


def json_pieces(value: Any) -> Iterator[bytes]:
    """Yield the JSON of a value, in pieces of about AT_ONCE values. Lists and objects may change between two pieces."""
    if isinstance(value, WrittenJson):
        yield from value.pieces()
        return
    if _count(value) <= AT_ONCE:
        yield json_bytes(value)
        return
    is_object = isinstance(value, dict)
    before, end = (b"{", b"}") if is_object else (b"[", b"]")
    for group in _groups(list(value.items() if is_object else value)):
        yield before
        before = b","
        if len(group) > 1:
            yield json_bytes(dict(group) if is_object else group)[1:-1]
        elif is_object:
            yield json_bytes({group[0][0]: 0})[1:-2]
            yield from json_pieces(group[0][1])
        else:
            yield from json_pieces(group[0])
    yield end


def _groups(members: list[Any]) -> Iterator[list[Any]]:
    """Yield groups of members with at most AT_ONCE values. A member with more values is a group of its own."""
    group: list[Any] = []
    count = 0
    for member in members:
        counted = _count(member)
        if group and count + counted > AT_ONCE:
            yield group
            group, count = [], 0
        group.append(member)
        count += counted
    yield group


CONTAINERS: Final = frozenset((dict, list, tuple, WrittenJson))


def _count(value: Any, most: int = AT_ONCE) -> int:
    """Count the values in a value, up to a little over `most`. A `WrittenJson` counts as more than `most`."""
    kind = type(value)
    if kind is WrittenJson:
        return most + 1
    if kind not in CONTAINERS:
        return 1
    inner = value.values() if kind is dict else value
    count = 1 + len(inner)
    if count <= most:
        for each in inner:
            if type(each) in CONTAINERS:
                count += _count(each, most - count)
                if count > most:
                    break
    return count


async def gathered(pieces: Iterable[bytes | bytearray]) -> deque[bytearray]:
    """Make all pieces of a body, each large enough for a write, and let other tasks run in between."""
    made: deque[bytearray] = deque()
    slice_ = Slice()
    for piece in pieces:
        if made and len(made[-1]) + len(piece) <= WRITTEN:
            made[-1] += piece
        else:
            made.append(bytearray(piece))
        await slice_.pause()
    return made


def text_reply(text: str, status: int = 200, content_type: str = JSON) -> HttpReply:
    """Return a plain text, which most of Pulsar's routes label as JSON."""
    return HttpReply(status, text.encode(errors="replace"), content_type)


def done() -> HttpReply:
    """Return a 204: the change was made."""
    return HttpReply(204)


def nothing() -> HttpReply:
    """Return a 200 without a body, for a policy that is not set and from some older setters."""
    return HttpReply(200)


def reason(status: int, text: str) -> HttpReply:
    """Return Pulsar's own form of an error."""
    return json_reply({"reason": text}, status)


def unexpected(error: BaseException) -> HttpReply:
    """Return a 500 for a fault of the broker, which its log explains."""
    name = f"{type(error).__name__}: {error}"
    return reason(500, f"\n --- An unexpected error occurred in the server ---\n\nMessage: {name}\n")


def page(status: int, message: str, url: str, accept: str, headers: Mapping[str, str] | None = None) -> HttpReply:
    """Return an error of the servlet container: JSON if the client accepts JSON, else HTML."""
    if JSON in accept:
        value = {"servlet": SERVLET, "message": message, "url": url, "status": str(status)}
        lines = ",\n".join(f'"{name}":{json.dumps(text, ensure_ascii=False)}' for name, text in value.items())
        return HttpReply(status, f"{{\n{lines}\n}}".encode(errors="replace"), JSON, headers or {})
    html = _older_page(status, message, url)
    return HttpReply(status, html.encode("latin-1", "xmlcharrefreplace"), HTML, headers or {})


def _older_page(status: int, message: str, url: str) -> str:
    rows = _rows(("URI", url), ("STATUS", str(status)), ("MESSAGE", message), ("SERVLET", SERVLET))
    body = f"<body><h2>HTTP ERROR {status} {escape(message)}</h2>\n<table>\n{rows}</table>\n"
    return f"{_head(status, message)}{body}</body>\n</html>\n"


def newer_page(status: int, message: str, url: str, headers: Mapping[str, str] | None = None) -> HttpReply:
    """Return an error of the servlet container of Pulsar 5.0."""
    rows = _rows(("URI", url), ("STATUS", str(status)), ("MESSAGE", message))
    body = f"<body>\n<h2>HTTP ERROR {status} {escape(message)}</h2>\n<table>\n{rows}</table>\n"
    html = f'{_head(status, message)}{body}<hr/><a href="https://jetty.org/">Powered by Jetty://</a><hr/>\n\n</body>\n</html>\n'
    return HttpReply(status, html.encode("latin-1", "xmlcharrefreplace"), HTML, headers or {})


def _head(status: int, message: str) -> str:
    meta = '<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>'
    return f"<html>\n<head>\n{meta}\n<title>Error {status} {escape(message)}</title>\n</head>\n"


def _rows(*rows: tuple[str, str]) -> str:
    return "".join(f"<tr><th>{name}:</th><td>{escape(value)}</td></tr>\n" for name, value in rows)
