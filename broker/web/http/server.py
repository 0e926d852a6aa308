"""Serve a site on a listening socket."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import trio

from pulsarium.broker.auth.tls import TlsContext, certificate_of
from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.accepting import PlainStream, Shortage, accept_one, shake_hands
from pulsarium.broker.web.http.connection import Answering, HttpConnection
from pulsarium.broker.web.http.request import HttpClient

log = PartLog("admin")

MANY = 2**31 - 1
KEY = "maxHttpServerConnectionsPerIp"


class Addresses:
    """Counts of connections by address. An address may have at most `most` of them; 0 for any number."""

    def __init__(self, most: int) -> None:
        self._most = most or MANY
        self._counts: Counter[str] = Counter()
        self._warned: set[str] = set()

    @contextmanager
    def one_of(self, host: str) -> Iterator[str]:
        """Count a connection while the block runs. Yield the reason to refuse it, or ""."""
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
        why = f"{host} has {self._most} HTTP connections to this port already; close some, or set {KEY} higher"
        if host not in self._warned:  # once per address, not for each of thousands
            self._warned.add(host)
            log.warning("refusing HTTP connections", reason=why)
        return why


async def serve_http(
    site: Answering,
    sock: socket.socket,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    *,
    tls: TlsContext | None = None,
) -> None:
    """Answer HTTP, or HTTPS with `tls`, until canceled.

    `sock` is bound, listening and non-blocking. The caller closes it.
    """
    room = trio.Semaphore(site.broker.config.maxHttpServerConnections or MANY)
    addresses = Addresses(site.broker.config.maxHttpServerConnectionsPerIp)
    shortage = Shortage(log)
    async with trio.open_nursery() as nursery:
        task_status.started()
        while True:
            await room.acquire()  # without room, new connections wait to be accepted
            connection, host, port = await accept_one(sock, shortage)
            nursery.start_soon(
                _alone, site, connection, HttpClient(host, port, secure=tls is not None), tls, room, addresses
            )


async def _alone(
    site: Answering,
    sock: socket.socket,
    caller: HttpClient,
    tls: TlsContext | None,
    room: trio.Semaphore,
    addresses: Addresses,
) -> None:
    """Serve one connection. Its errors affect no other connection."""
    raw = PlainStream(sock)
    try:
        with addresses.one_of(caller.host) as refusal:
            if tls is None:
                connection = HttpConnection(site, raw, caller)
                await (connection.turn_away(refusal) if refusal else connection.serve())
            elif not refusal:
                stream = await shake_hands(raw, tls.current(), str(caller), site.broker.cluster.admission)
                if stream is not None:
                    await HttpConnection(site, stream, replace(caller, certificate=certificate_of(stream))).serve()
    except Exception as error:
        log.error("an HTTP connection failed", exception=error, peer=caller)
    finally:
        await trio.aclose_forcefully(raw)
        room.release()
