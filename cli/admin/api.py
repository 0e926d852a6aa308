"""The admin REST API over HTTP: one call after the other, on one connection at most.

http.client and not urllib.request: it sends any method, and redirects are ours to follow, because a 307 to the owner of
a topic keeps the method, the body and the credentials.
"""

import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

import click

from .errors import AdminError, ServerError, Unreachable

NO_BODY: Final = object()

_PREFIX: Final = "/admin/v2/"
_JSON: Final = "application/json"
_REDIRECTS: Final = 10


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of 2xx. Header names are in small letters."""

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
        except ValueError:
            return text


class Api:
    """Calls of one broker; `urls` are tried in turn until one connects."""

    def __init__(
        self, urls: Sequence[str], headers: Mapping[str, str], tls: ssl.SSLContext | None, timeout: float
    ) -> None:
        self.urls = urls
        self._headers = headers
        self._tls = tls
        self._timeout = timeout

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = NO_BODY,
        content_type: str = _JSON,
        text: bool = False,
    ) -> Any:
        """What the broker answered: JSON decoded, other text as it is, None for nothing; with `text` only text.

        Raises ServerError for a refusal, Unreachable if nobody answered.
        """
        reply = self.reply(method, path, query=query, body=body, content_type=content_type)
        if text and reply.status != 204:
            return reply.text() or ""
        return reply.data()

    def reply(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = NO_BODY,
        content_type: str = _JSON,
    ) -> Reply:
        """The answer itself, with its headers. Raises as `call`."""
        target = path if path.startswith("/") else _PREFIX + path
        if parameters := _parameters(query or {}):
            target += ("&" if "?" in target else "?") + parameters
        # Text goes as it is: a JSON string would be one with quotes for whom takes the body raw.
        sent = None if body is NO_BODY else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Accept": _JSON, **self._headers}
        if method in ("POST", "PUT"):
            headers["Content-Type"] = content_type
        for url in self.urls:
            try:
                return self._follow(method, url.rstrip("/") + target, sent, headers)
            except Unreachable:
                if url == self.urls[-1]:
                    raise
        raise AssertionError("no URL")

    def _follow(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        for _ in range(_REDIRECTS):
            reply = self._send(method, url, body, headers)
            if reply.status in (301, 302, 303, 307, 308) and "location" in reply.headers:
                url = urljoin(url, reply.headers["location"])
            elif reply.status < 300:
                return reply
            else:
                raise ServerError(reply.status, _refusal(reply))
        raise AdminError(f"The broker at {_origin(url)} redirects in a circle")

    def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        connection = self._connection(url)
        parts = urlsplit(url)
        try:
            connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers)
            response = connection.getresponse()
            return Reply(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(_origin(url), error, self._timeout) from None
        finally:
            connection.close()

    def _connection(self, url: str) -> http.client.HTTPConnection:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        if not host or parts.scheme not in ("http", "https"):
            raise click.UsageError(
                f"--admin-url: '{_origin(url)}' is no URL; say http://HOST:PORT or https://HOST:PORT"
            )
        if parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)


def _parameters(query: Mapping[str, object]) -> str:
    """Query parameters; a list gives one for each element, None none, and a boolean is true or false."""
    return urlencode(
        [
            (name, str(value).lower() if isinstance(value, bool) else str(value))
            for name, given in query.items()
            for value in (given if isinstance(given, list | tuple) else () if given is None else (given,))
        ]
    )


def _refusal(reply: Reply) -> str:
    """The broker's own words: `reason` of the application, `message` of the container, else the status."""
    data = reply.data()
    if isinstance(data, dict):
        said = data.get("reason") or data.get("message")
        if said:
            return str(said)
    status = f"HTTP {reply.status} {http.client.responses.get(reply.status, '')}".strip()
    if isinstance(data, str) and "<html" not in data[:500].lower():
        return data.strip() or status
    return status


def _origin(url: str) -> str:
    """Scheme, host and port: never what stands before an `@`."""
    scheme, separator, rest = url.partition("://")
    where = rest.partition("/")[0].rpartition("@")[2]
    return f"{scheme}{separator}{where}"


def _unreachable(origin: str, error: Exception, timeout: float) -> Unreachable:
    if isinstance(error, ssl.SSLCertVerificationError):
        found = error.verify_message.rstrip(".")
        reason = f"{found}. Trust its authority with --tls-trust-cert-path, or say --tls-allow-insecure."
        return Unreachable(f"The certificate of {origin} is not trusted", reason)
    if isinstance(error, ConnectionRefusedError):
        reason = "no broker listens there. Start one with `pulsarium serve`, or name another with --admin-url."
        return Unreachable(f"Cannot connect to {origin}: connection refused", reason)
    if isinstance(error, TimeoutError):
        return Unreachable(f"{origin} did not answer within {timeout:g} s", "--request-timeout says how long to wait.")
    words = str(error) or type(error).__name__
    return Unreachable(f"Cannot talk to {origin}: {words}", "--admin-url says where the broker is.")
