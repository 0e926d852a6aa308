"""Requests and answers of the REST API, and what every transport does with them: places in turn and redirects."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

NO_BODY: Final = object()
JSON: Final = "application/json"

_PREFIX: Final = "/admin/v2/"


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `path` begins after /admin/v2/, or with a slash; `body` is sent as JSON, bytes as they are."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: object = NO_BODY
    content_type: str = JSON
    known: tuple[int, ...] = ()
    """Refusals that are answers to who asks, and no errors."""

    @property
    def target(self) -> str:
        """Path and query."""
        path = self.path if self.path.startswith("/") else _PREFIX + self.path
        parameters = _parameters(self.query)
        return f"{path}{'&' if '?' in path else '?'}{parameters}" if parameters else path

    @property
    def content(self) -> bytes | None:
        """What is sent as the body."""
        # Bytes go as they are: a JSON string would be one with quotes for whom takes the body raw.
        if self.body is NO_BODY:
            return None
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    @property
    def headers(self) -> dict[str, str]:
        typed = {"Content-Type": self.content_type} if self.method in ("POST", "PUT") else {}
        return {"Accept": JSON, **typed}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. Header names are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self) -> str | None:
        """The body, None if it is empty."""
        return self.body.decode(errors="replace") or None

    def data(self) -> Any:
        """The body as JSON, or as text where it is none; None if it is empty."""
        text = self.text()
        try:
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError):  # nested deeper than any answer is
            return text

    @property
    def reason(self) -> str:
        """The words of a refusal: `reason` of the application, `message` of the container, else the status."""
        data = self.data()
        if isinstance(data, dict):
            said = data.get("reason") or data.get("message")
            if said:
                return str(said)
        status = f"HTTP {self.status} {_phrase(self.status)}".strip()
        if isinstance(data, str) and "<html" not in data[:500].lower():
            return data.strip() or status
        return status


class Exchange(ABC):
    """Sends requests to one of `urls`: they are tried in turn until one connects.

    A redirect keeps method, body and credentials: the owner of a topic wants them as well.
    """

    unreachable: type[Exception]
    """What `_send` raises if there is no connection: nothing was sent."""

    def __init__(self, urls: Sequence[str], redirects: int = 10) -> None:
        """`redirects`: how many may follow each other."""
        self.urls = urls
        self._redirects = redirects

    @abstractmethod
    async def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        """One request and its answer, whatever it says."""

    @abstractmethod
    async def _credentials(self) -> Mapping[str, str]:
        """Headers that prove who calls, now."""

    @abstractmethod
    def refused(self, reply: Reply) -> Exception:
        """The error for a refusal."""

    @abstractmethod
    def failed(self, message: str) -> Exception:
        """The error for a call that cannot go on."""

    def invalid(self, error: ValueError) -> Exception:
        """The error for a name that is none."""
        return error

    async def send(self, request: Request) -> Reply:
        """An answer of 2xx, or one of `known`. Raises what `refused`, `failed` and `unreachable` say."""
        headers = {**request.headers, **await self._credentials()}
        content = request.content
        for url in self.urls:
            try:
                reply = await self._follow(request.method, url.rstrip("/") + request.target, content, headers)
            except self.unreachable:
                if url == self.urls[-1]:
                    raise
            else:
                if reply.status < 300 or reply.status in request.known:
                    return reply
                raise self.refused(reply)
        raise AssertionError("no URL")

    async def _follow(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        for _ in range(self._redirects + 1):
            reply = await self._send(method, url, body, headers)
            if reply.status not in (301, 302, 303, 307, 308) or "location" not in reply.headers:
                return reply
            try:
                where = urljoin(url, reply.headers["location"])
                schemes = urlsplit(url).scheme, urlsplit(where).scheme
            except ValueError:
                raise self.failed(f"The broker at {origin(url)} redirects to nowhere") from None
            if schemes not in (("http", "http"), ("http", "https"), ("https", "https")):
                raise self.failed(f"The broker at {origin(url)} redirects to {origin(where)}, which is not safe")
            url = where
        raise self.failed(f"The broker at {origin(url)} redirects in a circle")


def origin(url: str) -> str:
    """Scheme, host and port: never what stands before an `@`."""
    scheme, separator, rest = url.partition("://")
    where = rest.partition("/")[0].rpartition("@")[2]
    return f"{scheme}{separator}{where}"


def places(url: str) -> list[str]:
    """`http://a:1,b:2` is two places to try."""
    scheme, separator, rest = url.partition("://")
    hosts, slash, path = rest.partition("/")
    return [f"{scheme}{separator}{host}{slash}{path}" for host in hosts.split(",")]


def _parameters(query: Mapping[str, object]) -> str:
    """Query parameters; a list gives one for each element, None none, and a boolean is true or false."""
    return urlencode(
        [
            (name, str(value).lower() if isinstance(value, bool) else str(value))
            for name, given in query.items()
            for value in (given if isinstance(given, list | tuple) else () if given is None else (given,))
        ]
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
