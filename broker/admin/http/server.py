"""Serves the admin API on a listening socket."""

from __future__ import annotations

import socket

import trio

from pulsarium.broker.accepting import accept_one, shake_hands
from pulsarium.broker.admin.http.app import AdminApp
from pulsarium.broker.admin.http.connection import Connection
from pulsarium.broker.admin.http.credentials import CERTIFICATE
from pulsarium.broker.auth.tls import TlsContext, certificate_of
from pulsarium.broker.logs import Log

log = Log("admin")

MANY = 2**31 - 1


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
    room = trio.Semaphore(app.broker.config.maxHttpServerConnections or MANY)
    async with trio.open_nursery() as nursery:
        task_status.started()
        while True:
            await room.acquire()  # while there is none they wait to be accepted
            connection, host, port = await accept_one(sock, log)
            nursery.start_soon(_alone, app, connection, (host, port), tls, room)


async def _alone(
    app: AdminApp, sock: socket.socket, client: tuple[str, int], tls: TlsContext | None, room: trio.Semaphore
) -> None:
    """Serve one connection; whatever happens to it happens to no other."""
    peer = f"/{client[0]}:{client[1]}"
    raw = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
    try:
        if tls is None:
            await Connection(app, raw, peer, client=client, scheme="http").serve()
        elif (stream := await shake_hands(raw, tls.current(), peer)) is not None:
            known = {"client": client, "scheme": "https", CERTIFICATE: certificate_of(stream)}
            await Connection(app, stream, peer, **known).serve()
    except Exception as error:
        log.error("an HTTP connection failed", exception=error, peer=peer)
    finally:
        await trio.aclose_forcefully(raw)
        room.release()
