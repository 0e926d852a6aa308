"""Share connections: one to each broker, or `connections_per_broker`."""

from __future__ import annotations

import itertools
import logging
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.connection import tls, wrong_port
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.protocol import ClientProtocol
from pulsarium.client.connection.service_url import BrokerAddress
from pulsarium.client.connection.settings import Settings
from pulsarium.client.connection.waiting import WaitingLog, shortened
from pulsarium.client.errors import AlreadyClosed, ConnectError
from pulsarium.client.together import together

logger: logging.Logger = logging.getLogger(__name__)

SLOW = 0.7  # seconds without an answer after which a warning is logged


class _Target(NamedTuple):
    """The broker of a pooled connection, and the connection's number among those to that broker."""

    address: BrokerAddress
    proxy_to: BrokerAddress | None
    number: int


class Pool:
    """The connections of a client. Each is opened when it is needed, and shared until it is lost."""

    def __init__(self, tasks: TaskGroup, settings: Settings) -> None:
        self.waiting: WaitingLog = WaitingLog()
        self._tasks = tasks
        self._settings = settings
        self._connections: dict[_Target, Connection] = {}
        self._opening: dict[_Target, anyio.Lock] = {}
        self._numbers = itertools.cycle(range(settings.connections_per_broker))
        self._closed = False

    async def get(self, address: BrokerAddress, proxy_to: BrokerAddress | None = None) -> Connection:
        """Return a connection to `address`. With `proxy_to`, `address` is a proxy in front of that broker.

        Raise `ConnectError` if no connection can be made, and `AlreadyClosed` after `aclose`.
        """
        target = _Target(address, proxy_to if proxy_to != address else None, next(self._numbers))
        opening = self._opening.setdefault(target, anyio.Lock())
        try:
            async with opening:
                if self._closed:
                    raise AlreadyClosed("the client was closed")
                connection = self._connections.get(target)
                if connection is None or connection.is_lost:
                    connection = self._connections[target] = await self._open(target)
                    self._tasks.start_soon(self._run, target, connection)
                connection.touch()
                return connection
        finally:
            if not opening.locked():  # keeps the table small, because brokers may name any number of others
                self._opening.pop(target, None)

    async def aclose(self) -> None:
        """Close all connections, and open no more."""
        self._closed = True
        await together([connection.aclose for connection in self._connections.values()])
        self._connections.clear()

    async def _run(self, target: _Target, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            if self._connections.get(target) is connection:
                del self._connections[target]

    async def _open(self, target: _Target) -> Connection:
        settings, (address, proxy_to, _) = self._settings, target
        protocol = ClientProtocol(
            max_protocol_version=settings.max_protocol_version,
            proxy_to_broker_url=None if proxy_to is None else str(proxy_to),
            description=settings.description,
        )
        slow = anyio.CancelScope()
        stream = connection = None
        self._tasks.start_soon(self._tell_if_slow, address, slow)
        try:
            with anyio.fail_after(settings.connection_timeout):
                stream = await settings.dial(address)
                if address.tls:
                    stream = await tls.wrap(stream, address, settings.tls)
                connection = Connection(
                    stream,
                    str(address),
                    protocol,
                    authentication=settings.authentication,
                    proxy=None if proxy_to is None else address,
                    operation_timeout=settings.operation_timeout,
                    keep_alive=settings.keep_alive_interval,
                    max_idle=settings.connection_max_idle,
                )
                try:
                    await connection.handshake()
                except ConnectError as error:
                    raise wrong_port.answered(address, protocol.first, error) from error
                there = address if proxy_to is None else f"{proxy_to} through {address}"
                logger.info("connected to %s, broker %s", there, shortened(connection.server_version))
                return connection
        except TimeoutError:
            if connection is not None and not connection.introduced:
                within = f"within {settings.connection_timeout:g} s (connection_timeout)"
                raise ConnectError(f"{address}: the authentication gave no credentials {within}") from None
            if stream is not None:
                raise wrong_port.silent(address, settings.connection_timeout) from None
            raise ConnectError(f"{address}: no connection within {settings.connection_timeout:g} s") from None
        except (OSError, ValueError) as error:  # ValueError for an invalid host name
            raise wrong_port.unreachable(str(address), error) from error
        finally:
            slow.cancel()

    async def _tell_if_slow(self, address: BrokerAddress, patience: anyio.CancelScope) -> None:
        with patience:
            await anyio.sleep(SLOW)
            self.waiting.tell(ConnectError(f"{address}: no answer yet"))
