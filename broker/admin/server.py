"""Serves the admin API on a listening socket."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, cast

import trio
from anycorn import Config
from anycorn.app_wrappers import ASGIWrapper
from anycorn.tcp_server import tcp_server_handler
from anycorn.typing import ConnectionState
from anycorn.worker_context import WorkerContext
from anyio.abc import SocketStream

from pulsarium.broker.admin.app import AdminApp
from pulsarium.broker.logs import Log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anycorn.typing import ASGIFramework

    from pulsarium.broker.broker import Broker

log = Log("admin")

IDLE_SECONDS = 300  # a connection without requests is kept so long; admin clients pool theirs
PAUSE = 0.1  # seconds before accepting again, when the process has no file descriptor left


async def serve_http(
    broker: Broker, sock: socket.socket, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer HTTP on `sock`, which is bound, listening and non-blocking, until cancelled. It stays the caller's."""
    handle = tcp_server_handler(
        ASGIWrapper(cast("ASGIFramework", AdminApp(broker))), _config(), WorkerContext(None), ConnectionState({})
    )
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


async def _serve(
    handle: Callable[[SocketStream], Awaitable[None]], connection: socket.socket, connections: set[socket.socket]
) -> None:
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
