"""Requests and answers of the REST API; redirects and several service URLs, for every transport."""

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

NO_HTTP: Final = "the port may be for Pulsar clients or for https://; HTTP is by default at port 8080"
"""What to think of a server that ends the connection, or says something else than HTTP."""

_PREFIX: Final = "/admin/v2/"


@dataclass(frozen=True, slots=True)
class RestRequest:
    """A REST call. `path` begins with a slash, or is below /admin/v2/. `body` is sent as JSON, bytes as they are."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: object = NO_BODY
    content_type: str = JSON
    known: tuple[int, ...] = ()
    """Statuses of refusals that the caller expects, which raise no error."""

    @property
    def target(self) -> str:
        """Return path and query."""
        path = self.path if self.path.startswith("/") else _PREFIX + self.path
        parameters = _parameters(self.query)
        return f"{path}{'&' if '?' in path else '?'}{parameters}" if parameters else path

    @property
    def content(self) -> bytes | None:
        """Return the bytes of the body, or None."""
        # Bytes are sent as they are: some routes take the body raw, and JSON would add quotes.
        if self.body is NO_BODY:
            return None
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the request."""
        typed = {"Content-Type": self.content_type} if self.method in ("POST", "PUT") else {}
        return {"Accept": JSON, **typed}


NO_CALL: Final = (
    ": nothing has this name, or the release of the broker has no such call: `pulsarium admin brokers version` shows it"
)


@dataclass(frozen=True, slots=True)
class RestReply:
    """An answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self) -> str | None:
        """Return the body as text, or None if it is empty."""
        return self.body.decode(errors="replace") or None

    def data(self) -> Any:
        """Return the body as JSON, as text if it is no JSON, or None if it is empty."""
        text = self.text()
        try:
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError):  # nested deeper than any answer
            return text

    @property
    def reason(self) -> str:
        """Return the words of a refusal: `reason` of Pulsar, `message` of its servlet container, or the status."""
        data = self.data()
        if isinstance(data, dict):
            if said := data.get("reason"):
                return str(said)
            if said := data.get("message"):
                return f"{said}{NO_CALL if self.status in (404, 405) else ''}"
        status = f"HTTP {self.status} {_phrase(self.status)}".strip()
        if isinstance(data, str) and "<html" not in data[:500].lower():
            return data.strip() or status
        return status


class Exchange(ABC):
    """Send requests to one of `urls`: the first that connects, in their order.

    A redirect keeps method, body and credentials, because the owner of a topic needs them too.
    """

    unreachable: type[Exception]
    """The error that `_send` raises without a connection: nothing was sent."""

    def __init__(self, urls: Sequence[str], redirects: int = 10) -> None:
        """Send to `urls`, and follow up to `redirects` redirects in a row."""
        self.urls = urls
        self._redirects = redirects

    @abstractmethod
    async def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        """Send one request, and return the answer of any status."""

    @abstractmethod
    async def _credentials(self) -> Mapping[str, str]:
        """Return the headers that prove the caller's role now."""

    @abstractmethod
    def refused(self, reply: RestReply) -> Exception:
        """Return the error for a refusal."""

    @abstractmethod
    def failed(self, message: str) -> Exception:
        """Return the error for a call that cannot continue."""

    def invalid(self, error: ValueError) -> Exception:
        """Return the error for an invalid name."""
        return error

    async def send(self, request: RestRequest) -> RestReply:
        """Return an answer of 2xx, or of a status in `known`.

        Raise the errors of `refused`, `failed` and `unreachable`.
        """
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

    async def _follow(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        for _ in range(self._redirects + 1):
            reply = await self._send(method, url, body, headers)
            if reply.status not in (301, 302, 303, 307, 308) or "location" not in reply.headers:
                return reply
            try:
                where = urljoin(url, reply.headers["location"])
                schemes = urlsplit(url).scheme, urlsplit(where).scheme
            except ValueError:
                raise self.failed(f"The broker at {origin(url)} redirects to an invalid address") from None
            if schemes not in (("http", "http"), ("http", "https"), ("https", "https")):
                raise self.failed(f"The broker at {origin(url)} redirects to {origin(where)}, which is not safe")
            url = where
        raise self.failed(f"The broker at {origin(url)} redirects in a circle")


def origin(url: str) -> str:
    """Return scheme, host and port, without credentials before an `@`."""
    scheme, separator, rest = url.partition("://")
    where = rest.partition("/")[0].rpartition("@")[2]
    return f"{scheme}{separator}{where}"


def places(url: str) -> list[str]:
    """Return the URLs of a service URL with several hosts, such as `http://a:1,b:2`."""
    scheme, separator, rest = url.partition("://")
    hosts, slash, path = rest.partition("/")
    return [f"{scheme}{separator}{host}{slash}{path}" for host in hosts.split(",")]


def _parameters(query: Mapping[str, object]) -> str:
    """Return a query string. A list gives one parameter for each element, None none, and a boolean true or false."""
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
