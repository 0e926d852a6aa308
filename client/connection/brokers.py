"""Find the brokers of a cluster, and connect to them."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.lookup import BinaryLookup, Lookup, connection_to
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import BrokerAddress, BrokerUrls, is_http, parse
from pulsarium.client.connection.settings import Settings
from pulsarium.client.connection.waiting import Backoff, WaitingLog
from pulsarium.client.errors import TRANSIENT, AlreadyClosed, PulsarError, Timeout, WrongProtocol
from pulsarium.client.topics import bounded
from pulsarium.proto.generated import PulsarApi_pb2 as pb

T = TypeVar("T")

logger: logging.Logger = logging.getLogger(__name__)


class Brokers:
    """The brokers of one service URL: lookups, connections, and ids that are unique in this client."""

    def __init__(self, service_url: str, tasks: TaskGroup, settings: Settings) -> None:
        """Raise `InvalidUrl` for an invalid URL, and `InvalidConfiguration` for TLS files that cannot be read."""
        self.settings = settings
        self.task_group = tasks
        self.operation_timeout: float = settings.operation_timeout
        self._pool = Pool(tasks, settings)
        self.waiting: WaitingLog = self._pool.waiting
        """The log of the brokers that this client waits for."""
        self._lookup = self._lookup_at(service_url)
        self._producer_ids = itertools.count()
        self._consumer_ids = itertools.count()
        self._watcher_ids = itertools.count()
        self._session_ids = itertools.count()
        self._closed = False

    def next_producer_id(self) -> int:
        """Return a producer id that is unique in this client."""
        return next(self._producer_ids)

    def next_consumer_id(self) -> int:
        """Return a consumer id that is unique in this client."""
        return next(self._consumer_ids)

    def next_watcher_id(self) -> int:
        """Return a watcher id that is unique in this client."""
        return next(self._watcher_ids)

    def next_session_id(self) -> int:
        """Return an id of a session of a scalable topic, unique in this client."""
        return next(self._session_ids)

    def new_backoff(self) -> Backoff:
        """Return the backoff of one producer, consumer or request."""
        return Backoff(self.settings.starting_backoff_interval, self.settings.max_backoff_interval)

    async def connect_to(self, topic: str, cluster: BrokerUrls | None = None) -> Connection:
        """Connect to the broker that serves a topic (a full name), found in `cluster` if given.

        Raise `Timeout` when the lookup, with all redirects, takes longer than `operation_timeout`.
        """
        lookup = self._open_lookup()
        if cluster is not None:
            lookup = self._binary(cluster.addresses(tls=lookup.tls))
        with anyio.move_on_after(self.operation_timeout):
            connection = await lookup.connection_for(topic)
            logger.info("%s: served by %s", topic, connection.address)
            return connection
        raise Timeout(f"{topic}: the lookup found no broker within {self.operation_timeout:g} s")

    async def connect_to_broker(self, broker: BrokerUrls, proxy: BrokerAddress | None) -> Connection:
        """Connect to this broker, through the proxy if there is one."""
        return await connection_to(self._pool, broker, tls=self._open_lookup().tls, proxy=proxy)

    async def connect_to_any(self) -> Connection:
        """Connect to any broker. Raise `OperationNotSupported` if the service URL is of HTTP."""
        return await self._open_lookup().connection()

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        """Return the number of partitions of a topic (a full name), or 0 if it is not partitioned.

        With `create`, a missing topic is created with the partitions that its namespace gives to new topics. Raise
        `OperationNotSupported` for more partitions than can be open.
        """
        return bounded(await self._open_lookup().partitions(topic, create=create), topic)

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        """Return the topics of a namespace (`tenant/namespace`). Each partition counts as a topic."""
        return await self._open_lookup().topics(namespace, mode)

    async def patiently(
        self,
        attempt: Callable[[], Awaitable[T]],
        backoff: Backoff | None = None,
        *,
        passing: tuple[type[PulsarError], ...] = TRANSIENT,
    ) -> T:
        """Repeat an attempt for up to `operation_timeout` seconds while it fails with an error of `passing`.

        Raise the last of these errors then, and any other error at once.
        """
        backoff = backoff or self.new_backoff()
        deadline = anyio.current_time() + self.operation_timeout
        while True:
            try:
                return await attempt()
            except passing as error:
                delay = backoff.next()
                if isinstance(error, WrongProtocol) or anyio.current_time() + delay >= deadline:
                    raise
                self.waiting.tell(error)
                await anyio.sleep(delay)

    def check_open(self) -> None:
        """Raise `AlreadyClosed` after `aclose`."""
        if self._closed:
            raise AlreadyClosed("the client was closed")

    async def aclose(self) -> None:
        """Close all connections. Everything that is open on them ends with `AlreadyClosed`."""
        self._closed = True
        try:
            await self._pool.aclose()
        finally:
            await self._lookup.aclose()

    def _open_lookup(self) -> Lookup:
        self.check_open()
        return self._lookup

    def _lookup_at(self, url: str) -> Lookup:
        if is_http(url):
            from pulsarium.client.connection.http_lookup import HttpLookup  # its libraries are an extra

            return HttpLookup(self._pool, url, self.settings)
        service = parse(url)
        if service[0].tls:
            self.settings.tls.context()  # raises the error of a bad file now, not at the first connection
        return self._binary(service)

    def _binary(self, service: list[BrokerAddress]) -> BinaryLookup:
        settings = self.settings
        return BinaryLookup(
            self._pool, service, listener_name=settings.listener_name, max_redirects=settings.max_lookup_redirects
        )
