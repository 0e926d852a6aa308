"""Serves the admin API on a listening socket."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from pulsarium.broker.accepting import accept_one, shake_hands
from pulsarium.broker.auth.tls import TlsContext, certificate_of
from pulsarium.broker.http.app import AdminApp
from pulsarium.broker.http.connection import Connection
from pulsarium.broker.http.credentials import CERTIFICATE
from pulsarium.broker.logs import Log

log = Log("admin")

MANY = 2**31 - 1
KEY = "maxHttpServerConnectionsPerIp"


class Addresses:
    """Counts the connections of each address, of which none may have more than `most`; 0 for any number."""

    def __init__(self, most: int) -> None:
        self._most = most or MANY
        self._counts: Counter[str] = Counter()
        self._warned: set[str] = set()

    @contextmanager
    def one_of(self, host: str) -> Iterator[str]:
        """Count a connection until the block is left; yield why it is one too many, "" when it is not."""
        self._counts[host] += 1
        try:
            yield self._refusal(host)
        finally:
            self._counts[host] -= 1
            if self._counts[host] < self._most:
                self._warned.discard(host)
            if not self._counts[host]:
                del self._counts[host]

    def _refusal(self, host: str) -> str:
        if self._counts[host] <= self._most:
            return ""
        why = f"{host} has {self._most} HTTP connections to this port already; end some, or set {KEY}"
        if host not in self._warned:  # once, and not for each of thousands
            self._warned.add(host)
            log.warning("refusing HTTP connections", reason=why)
        return why


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
    addresses = Addresses(app.broker.config.maxHttpServerConnectionsPerIp)
    async with trio.open_nursery() as nursery:
        task_status.started()
        while True:
            await room.acquire()  # while there is none they wait to be accepted
            connection, host, port = await accept_one(sock, log)
            nursery.start_soon(_alone, app, connection, (host, port), tls, room, addresses)


async def _alone(
    app: AdminApp,
    sock: socket.socket,
    client: tuple[str, int],
    tls: TlsContext | None,
    room: trio.Semaphore,
    addresses: Addresses,
) -> None:
    """Serve one connection; whatever happens to it happens to no other."""
    peer, door = f"/{client[0]}:{client[1]}", app.broker.cluster.door
    raw = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
    try:
        with addresses.one_of(client[0]) as refusal:
            if tls is None:
                connection = Connection(app, raw, peer, client=client, scheme="http")
                await (connection.turn_away(refusal) if refusal else connection.serve())
            elif not refusal and (stream := await shake_hands(raw, tls.current(), peer, door)) is not None:
                known = {"client": client, "scheme": "https", CERTIFICATE: certificate_of(stream)}
                await Connection(app, stream, peer, **known).serve()
    except Exception as error:
        log.error("an HTTP connection failed", exception=error, peer=peer)
    finally:
        await trio.aclose_forcefully(raw)
        room.release()
