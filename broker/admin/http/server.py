"""Serves the admin API on a listening socket."""

from __future__ import annotations

import logging
import socket
import ssl
from functools import partial
from typing import TYPE_CHECKING, cast

import trio
from anycorn import Config
from anycorn.app_wrappers import ASGIWrapper
from anycorn.tcp_server import tcp_server_handler
from anycorn.typing import ConnectionState
from anycorn.worker_context import WorkerContext
from anyio import BrokenResourceError, EndOfStream
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.streams.tls import TLSAttribute, TLSStream

from pulsarium.broker.admin.http.app import AdminApp
from pulsarium.broker.admin.http.credentials import CERTIFICATE
from pulsarium.broker.auth.tls import HANDSHAKE_SECONDS, TlsContext, certificate_of
from pulsarium.broker.logs import Log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anycorn.typing import ASGIFramework
    from starlette.types import ASGIApp, Receive, Scope, Send

    from pulsarium.broker.auth.identity import Certificate

    Handle = Callable[[SocketStream], Awaitable[None]]  # serves one connection

log = Log("admin")

IDLE_SECONDS = 300  # a connection without requests is kept so long; admin clients pool theirs
PAUSE = 0.1  # seconds before accepting again, when the process has no file descriptor left


async def serve_http(
    app: AdminApp,
    sock: socket.socket,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    *,
    tls: TlsContext | None = None,
) -> None:
    """Answer HTTP, or with `tls` HTTPS, on `sock`, which is bound, listening and non-blocking, until cancelled.

    The socket stays the caller's.
    """
    handle = _handler(app) if tls is None else partial(_over_tls, app, tls)
    connections: set[socket.socket] = set()
    async with trio.open_nursery() as nursery:
        task_status.started()
        try:
            while True:
                connection = await _accept(sock)
                connections.add(connection)
                nursery.start_soon(_serve, handle, connection, connections)
        finally:
            # anycorn shields its writes: one to a client that does not read would keep the broker from stopping
            for connection in connections:
                _hang_up(connection)


def _handler(app: ASGIApp) -> Handle:
    """What serves a connection with an application."""
    context = WorkerContext(None)
    handle: Handle = tcp_server_handler(
        ASGIWrapper(cast("ASGIFramework", app)), _config(), context, ConnectionState({})
    )
    return handle


async def _over_tls(app: ASGIApp, tls: TlsContext, connection: SocketStream) -> None:
    """Shake hands, then serve a connection whose requests come from who showed a certificate."""
    stream: ByteStream | None = None
    reason: object = f"no handshake within {HANDSHAKE_SECONDS:g} seconds"
    with trio.move_on_after(HANDSHAKE_SECONDS):
        try:
            stream = await _TlsStream.wrap(
                connection, server_side=True, ssl_context=tls.current(), standard_compatible=False
            )
        except (ssl.SSLError, BrokenResourceError, EndOfStream) as error:
            reason = error.__cause__ or error
    if stream is None:
        log.warning("a TLS handshake failed", peer=_peer(connection), reason=reason)
        return
    certificate = certificate_of(stream.extra(TLSAttribute.ssl_object))
    await _handler(_Certified(app, certificate))(cast("SocketStream", stream))


class _TlsStream(TLSStream):
    """A client that said goodbye is gone: anycorn knows that by another name than anyio gives it."""

    async def send(self, item: bytes) -> None:
        try:
            await super().send(item)
        except EndOfStream:
            raise BrokenResourceError from None


class _Certified:
    """The application, for requests of one client."""

    def __init__(self, app: ASGIApp, certificate: Certificate | None) -> None:
        self._app = app
        self._certificate = certificate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[CERTIFICATE] = self._certificate
        await self._app(scope, receive, send)


def _peer(connection: SocketStream) -> str:
    try:
        return f"/{connection.extra(SocketAttribute.remote_address)[0]}"
    except OSError:  # it is gone
        return "?"


def _config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = logging.getLogger("pulsarium.http")
    config.include_server_header = False
    config.keep_alive_timeout = IDLE_SECONDS
    config.keep_alive_max_requests = 2**63  # a connection may serve for ever
    return config


async def _accept(sock: socket.socket) -> socket.socket:
    while True:
        await trio.lowlevel.wait_readable(sock)
        try:
            connection, _ = sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            continue
        except OSError as error:
            log.warning("cannot accept connections", reason=error)
            await trio.sleep(PAUSE)
            continue
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


async def _serve(handle: Handle, connection: socket.socket, connections: set[socket.socket]) -> None:
    """Serve one connection; whatever happens to it happens to no other."""
    try:
        with connection:
            await handle(await SocketStream.from_socket(connection))
    except Exception as error:
        log.error("an HTTP connection failed", exception=error)
    finally:
        connections.discard(connection)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is closed already
        return
