"""Call the admin REST API over HTTP, one call after the other.

The module uses http.client and not the async client's httpx, because a command must start fast, in a small install too.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from pulsarium.cli.admin.errors import AdminError, NotConnected, ServerError, Unreachable
from pulsarium.proto.first_bytes import NO_TLS
from pulsarium.rest.exchange import NO_HTTP, Exchange, RestReply, origin

T = TypeVar("T")


class Api(Exchange):
    """Calls of one broker: `Topics(api)` has the calls of a group. `urls` are tried in turn until one connects.

    A call raises `ServerError` when the broker refuses it, and `Unreachable` when no broker answers.
    """

    unreachable = NotConnected

    def __init__(
        self,
        urls: Sequence[str],
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None,
        timeout: float,
        *,
        read_only: bool = False,
    ) -> None:
        super().__init__(urls)
        self._headers = headers
        self._tls = tls
        self._timeout = timeout
        self._read_only = read_only

    async def _credentials(self) -> Mapping[str, str]:
        return self._headers

    def refused(self, reply: RestReply) -> ServerError:
        return ServerError(reply.status, reply.reason)

    def failed(self, message: str) -> AdminError:
        return AdminError(message)

    async def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> RestReply:
        connection = self._connection(url)
        parts = urlsplit(url)
        if self._read_only and method != "GET":
            raise AdminError(
                f"{method} {parts.path} may change the broker, and --read-only forbids that; nothing was sent"
            )
        try:
            try:
                connection.connect()
            except OSError as error:
                raise NotConnected(_said(origin(url), error, self._timeout)) from None
            connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers)
            response = connection.getresponse()
            return RestReply(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(_said(origin(url), error, self._timeout)) from None
        finally:
            connection.close()

    def _connection(self, url: str) -> http.client.HTTPConnection:
        check_url(url)
        parts = urlsplit(url)
        if parts.scheme == "https":
            return http.client.HTTPSConnection(
                parts.netloc.rpartition("@")[2], timeout=self._timeout, context=self._tls
            )
        return http.client.HTTPConnection(parts.netloc.rpartition("@")[2], timeout=self._timeout)


def check_url(url: str) -> None:
    """Raise click.UsageError, without any password, for a text that is no HTTP URL."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port >= 0)
    except ValueError:
        good = False
    if not good:
        what = "is the URL of Pulsar's clients" if url.startswith(("pulsar:", "pulsar+ssl:")) else "is no URL"
        raise click.UsageError(f"--admin-url: '{origin(url)}' {what}; write http://HOST:PORT or https://HOST:PORT")


def _plain(where: str) -> str:
    return where.replace("https:", "http:")


def done(calls: Coroutine[Any, Any, T]) -> T:
    """Return the result of calls of an `Api`, which block and never wait for a loop."""
    try:
        calls.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a call waits for a loop")


def _said(where: str, error: Exception, timeout: float) -> str:
    """Return an error message for `error`, with advice."""
    if isinstance(error, ssl.SSLCertVerificationError):
        found = error.verify_message.rstrip(".")
        helps = "trust its authority with --tls-trust-cert-path, or pass --tls-allow-insecure"
        return f"the certificate of {where} is not trusted: {found}; {helps}"
    ended = isinstance(error, ConnectionResetError)
    if isinstance(error, http.client.BadStatusLine) or (ended and where.startswith("http:")):
        return f"{where} does not answer in HTTP; {NO_HTTP}; compare --admin-url"
    if isinstance(error, ssl.SSLEOFError) or ended:
        return f"{where} closed the connection in the TLS handshake; for a port without TLS, use {_plain(where)}"
    if isinstance(error, ssl.SSLError) and error.reason in NO_TLS:
        return f"{where} does not speak TLS; use {_plain(where)}, or pass an https:// URL with --admin-url"
    if isinstance(error, socket.gaierror):
        return f"cannot connect to {where}: no such host; pass the broker's URL with --admin-url"
    if isinstance(error, ConnectionRefusedError):
        helps = "start a broker with `pulsarium serve`, or pass the URL of another with --admin-url"
        return f"cannot connect to {where}: connection refused; {helps}"
    if isinstance(error, TimeoutError):
        return (
            f"{where} did not answer within {timeout:g} s; wait longer with --request-timeout, or compare --admin-url"
        )
    words = str(error) or type(error).__name__
    return f"cannot talk to {where}: {words}; check --admin-url"
