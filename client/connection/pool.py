"""Connections, one for each broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

import anyio
from anyio.abc import ByteStream, TaskGroup

from pulsarium.client.connection import tls
from pulsarium.client.connection.authentication import Authentication
from pulsarium.client.connection.connection import KEEP_ALIVE, Connection
from pulsarium.client.connection.protocol import MAX_PROTOCOL_VERSION, ClientProtocol
from pulsarium.client.connection.service_url import Address
from pulsarium.client.errors import AlreadyClosed, ConnectError

Dial: TypeAlias = Callable[[Address], Awaitable[ByteStream]]


async def dial_tcp(address: Address) -> ByteStream:
    """A TCP connection; OSError if there is none."""
    return await anyio.connect_tcp(address.host, address.port)


class Settings(NamedTuple):
    """What holds for every connection; times in seconds."""

    operation_timeout: float = 30.0
    connection_timeout: float = 10.0
    max_protocol_version: int = MAX_PROTOCOL_VERSION
    keep_alive: float = KEEP_ALIVE
    dial: Dial = dial_tcp
    authentication: Authentication | None = None
    tls: tls.Tls = tls.Tls()


class Pool:
    """Opens a connection where there is none, and hands out the same one until it is lost."""

    def __init__(self, tasks: TaskGroup, settings: Settings) -> None:
        self._tasks = tasks
        self._settings = settings
        self._connections: dict[tuple[Address, Address | None], Connection] = {}
        self._opening: dict[tuple[Address, Address | None], anyio.Lock] = {}
        self._closed = False

    async def get(self, address: Address, proxy_to: Address | None = None) -> Connection:
        """The connection to `address`, and through a proxy there to `proxy_to`; ConnectError if there is none."""
        key = (address, proxy_to if proxy_to != address else None)
        async with self._opening.setdefault(key, anyio.Lock()):
            if self._closed:
                raise AlreadyClosed("the client was closed")
            connection = self._connections.get(key)
            if connection is None or connection.is_lost:
                connection = self._connections[key] = await self._open(*key)
                self._tasks.start_soon(connection.run)
            return connection

    async def aclose(self) -> None:
        """Close them all and open none."""
        self._closed = True
        for connection in self._connections.values():
            await connection.aclose()
        self._connections.clear()

    async def _open(self, address: Address, proxy_to: Address | None) -> Connection:
        settings = self._settings
        try:
            with anyio.fail_after(settings.connection_timeout):
                stream = await settings.dial(address)
                if address.tls:
                    stream = await tls.wrap(stream, address.host, settings.tls)
                protocol = ClientProtocol(
                    max_protocol_version=settings.max_protocol_version,
                    proxy_to_broker_url=None if proxy_to is None else str(proxy_to),
                )
                connection = Connection(
                    stream,
                    str(address),
                    protocol,
                    authentication=settings.authentication,
                    proxy=None if proxy_to is None else address,
                    operation_timeout=settings.operation_timeout,
                    keep_alive=settings.keep_alive,
                )
                await connection.handshake()
                return connection
        except TimeoutError:
            raise ConnectError(f"{address}: no connection within {settings.connection_timeout:g} s") from None
        except OSError as error:
            raise ConnectError(f"{address}: {error}") from error
