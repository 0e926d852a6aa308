"""Keeps a producer or a consumer open on its topic, whatever happens to connections and brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.lowlevel

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.service_url import Address, BrokerUrls
from pulsarium.client.errors import (
    FATAL,
    AlreadyClosed,
    ConnectError,
    InvalidUrl,
    OperationNotSupported,
    PulsarError,
    copy_of,
)

T = TypeVar("T")


class Link:
    """Calls `open` on a connection to the topic's broker, and again after each `lost`, with backoff between."""

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        open: Callable[[Connection], Awaitable[None]],
        *,
        on_failed: Callable[[PulsarError], None] | None = None,
    ) -> None:
        """`open` sends SUBSCRIBE or PRODUCER and attaches its handler.

        `on_failed` is told when something happened after which no further try makes sense (errors.FATAL), or the
        client was closed.
        """
        self.topic = topic
        self._brokers = brokers
        self._open = open
        self._on_failed = on_failed
        self._backoff = brokers.new_backoff()
        self._connection: Connection | None = None
        self._owner: BrokerUrls | None = None
        self._cluster: BrokerUrls | None = None  # where the topic migrated to (PIP-188)
        self._opening: anyio.CancelScope | None = None
        self._proxy: Address | None = None  # through which the last connection led
        self._error: PulsarError | None = None
        self._lost = anyio.Event()
        self._opened_at = 0.0
        self._settled = anyio.Event()  # open, or failed for good
        self._scope = anyio.CancelScope()
        self._running: anyio.Event | None = None

    @property
    def current(self) -> Connection | None:
        """The connection on which it is open now."""
        return self._connection

    async def start(self) -> None:
        """Open for the first time, `patiently`."""
        await self._brokers.patiently(self._try, self._backoff)
        self._running = anyio.Event()
        self._brokers.task_group.start_soon(self._keep_open)

    def lost(self, owner: BrokerUrls | None = None) -> None:
        """What was open is not any more: open it again, at once where `owner` has the topic, and without a lookup.

        A cluster to which it migrated is from now on the one where it is looked up.
        """
        if owner is not None and owner.migrated:
            self._cluster = owner
        self._owner = owner
        if self._connection is not None:
            self._connection = None
            self._settled = anyio.Event()
            self._backoff.worked(anyio.current_time() - self._opened_at)
        self._lost.set()
        if self._opening is not None:  # the answer does not come any more
            self._opening.cancel()

    async def connection(self) -> Connection:
        """Return the connection on which it is open, as soon as it is; raise what it failed with for good.

        It is always a checkpoint.
        """
        await anyio.lowlevel.checkpoint()
        while self._connection is None:
            if self._error is not None:
                raise copy_of(self._error)
            await self._settled.wait()
        return self._connection

    def close_nowait(self) -> None:
        """Do not open it again; who waits for the connection gets AlreadyClosed. What is open stays for the owner."""
        self._fail(AlreadyClosed(f"{self.topic}: closed"))
        self._scope.cancel()

    async def aclose(self) -> None:
        """`close_nowait`, and wait until its task is gone."""
        self.close_nowait()
        if self._running is not None:
            await self._running.wait()

    async def _try(self) -> None:
        self._lost = anyio.Event()
        connection = await self._connect()
        self._proxy = connection.proxy
        with anyio.CancelScope() as self._opening:
            try:
                await self._open(connection)
            finally:
                self._opening = None
        if self._lost.is_set() or connection.is_lost:
            raise ConnectError(f"{self.topic}: lost while it was opened")
        self._connection = connection
        self._opened_at = anyio.current_time()
        self._settled.set()

    async def _connect(self) -> Connection:
        owner, self._owner = self._owner, None
        if owner is not None and not owner.migrated:
            with suppress(PulsarError):
                return await self._brokers.connect_to_broker(owner, self._proxy)
        try:
            return await self._brokers.connect_to(self.topic, self._cluster)
        except (InvalidUrl, OperationNotSupported):
            if self._cluster is None:
                raise
            self._cluster = None  # nowhere to go: the one it comes from may say better
            return await self._brokers.connect_to(self.topic)

    async def _keep_open(self) -> None:
        assert self._running is not None
        try:
            with self._scope:
                while self._error is None:
                    await self._lost.wait()
                    at_once = self._owner is not None and self._backoff.is_first
                    delay = self._backoff.next()
                    await anyio.sleep(0 if at_once else delay)
                    await self._try_again()
        finally:
            if self._error is None:  # its owner did not close it
                self._give_up(AlreadyClosed("the client was closed"))
            self._running.set()

    async def _try_again(self) -> None:
        try:
            await self._try()
        except FATAL as error:
            self._give_up(error)
        except PulsarError as error:
            self._brokers.waiting.tell(error)
            self._lost.set()

    def _give_up(self, error: PulsarError) -> None:
        self._fail(error)
        if self._on_failed is not None:
            self._on_failed(error)

    def _fail(self, error: PulsarError) -> None:
        if self._error is None:
            self._error = error
        self._connection = None
        self._settled.set()
