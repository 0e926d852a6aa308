"""Keep a producer or a consumer open on its topic, across lost connections and changes of the broker."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from enum import Enum
from types import MappingProxyType

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.service_url import BrokerAddress, BrokerUrls
from pulsarium.client.connection.waiting import shortened
from pulsarium.client.errors import (
    FATAL,
    AlreadyClosed,
    ConnectError,
    InvalidUrl,
    OperationNotSupported,
    PulsarError,
    copy_of,
)
from pulsarium.client.statistics import LinkCounts

logger: logging.Logger = logging.getLogger(__name__)


class LinkState(Enum):
    """State of a link."""

    NEW = "new"
    OPENING = "opening"
    OPEN = "open"
    LOST = "lost"  # waits to be opened again
    ENDED = "ended"  # closed, or failed for good


class LinkEvent(Enum):
    """Event that changes the state of a link."""

    TRY = "try"
    OPENED = "opened"
    LOSE = "lose"  # the connection ended, or the broker closed the producer or consumer
    FAIL = "fail"  # the attempt failed
    END = "end"


_IN_ANY_CASE = {LinkEvent.END: LinkState.ENDED}

# The next state for each state and event.
_NEXT: Mapping[LinkState, Mapping[LinkEvent, LinkState]] = MappingProxyType(
    {
        LinkState.NEW: {LinkEvent.TRY: LinkState.OPENING, LinkEvent.LOSE: LinkState.NEW} | _IN_ANY_CASE,
        LinkState.OPENING: {
            LinkEvent.TRY: LinkState.OPENING,  # a repetition of the first opening, which `start` counts
            LinkEvent.OPENED: LinkState.OPEN,
            LinkEvent.LOSE: LinkState.LOST,
            LinkEvent.FAIL: LinkState.LOST,
        }
        | _IN_ANY_CASE,
        LinkState.OPEN: {LinkEvent.LOSE: LinkState.LOST} | _IN_ANY_CASE,
        LinkState.LOST: {
            LinkEvent.TRY: LinkState.OPENING,
            LinkEvent.LOSE: LinkState.LOST,
            LinkEvent.FAIL: LinkState.LOST,
        }
        | _IN_ANY_CASE,
        LinkState.ENDED: dict.fromkeys(LinkEvent, LinkState.ENDED),
    }
)


class Link:
    """Call `open` on a connection to the topic's broker, and again after each loss, with backoff."""

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        open: Callable[[Connection], Awaitable[None]],
        counts: LinkCounts,
        *,
        on_failed: Callable[[PulsarError], None] | None = None,
        connect: Callable[[], Awaitable[Connection]] | None = None,
        what: str = "",
    ) -> None:
        """Take the function that opens and attaches a handler.

        Args:
            brokers: The brokers of the client.
            topic: The full name of the topic.
            open: Sends SUBSCRIBE or PRODUCER on a connection, and attaches a handler.
            counts: The counts of reconnections.
            on_failed: Called when an error forbids further attempts (errors.FATAL), or the client was closed.
            connect: Connects to the broker. With None, the broker that serves the topic is looked up.
            what: The name of the link in the log.
        """
        self.topic = topic
        self._counts = counts
        self._name = f"{what} {topic}".strip()
        self._brokers = brokers
        self._open = open
        self._on_failed = on_failed
        self._connect_to = connect
        self._backoff = brokers.new_backoff()
        self._state = LinkState.NEW
        self._changed = anyio.Event()  # set at the next change of the state, then replaced
        self._connection: Connection | None = None  # set while the link is open
        self._error: PulsarError | None = None  # the error that ended the link
        self._opening: anyio.CancelScope | None = None  # around `open`
        self._since = 0.0  # time at which the link was opened or lost
        self._reason = ""  # of the loss
        self._owner: BrokerUrls | None = None
        self._cluster: BrokerUrls | None = None  # the cluster to which the topic migrated (PIP-188)
        self._proxy: BrokerAddress | None = None  # of the last connection
        self._scope = anyio.CancelScope()
        self._running: anyio.Event | None = None

    @property
    def current(self) -> Connection | None:
        """Return the connection on which the link is open, or None."""
        return self._connection

    async def start(self) -> None:
        """Open for the first time, with repetitions up to `operation_timeout`."""
        await self._brokers.patiently(self._try, self._backoff)
        self._running = anyio.Event()
        self._brokers.task_group.start_soon(self._keep_open)

    def lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        """Open again after a loss. With `owner`, connect to this broker at once, without a lookup.

        An owner in another cluster, to which the topic migrated (PIP-188), is the place of all further lookups.
        """
        if owner is not None and owner.migrated:
            self._cluster = owner
        self._owner = owner
        if (connection := self._connection) is not None:
            now = anyio.current_time()
            self._backoff.worked(now - self._since)
            self._since = now
            self._reason = f"connection to {connection.address} lost: {error}" if connection.is_lost else str(error)
        self._step(LinkEvent.LOSE)
        if self._opening is not None:  # its reply cannot arrive any more
            self._opening.cancel()

    async def connection(self) -> Connection:
        """Wait until the link is open, and return its connection. Raise the error that ended the link."""
        while self._connection is None:
            if self._error is not None:
                raise copy_of(self._error)
            await self._changed.wait()
        return self._connection

    def close_nowait(self) -> None:
        """Stop reopening, and fail waiting tasks with `AlreadyClosed`.

        The owner closes the producer or consumer itself.
        """
        self._end(AlreadyClosed(f"{self.topic}: closed"))
        self._scope.cancel()

    async def aclose(self) -> None:
        """Call `close_nowait`, and wait for the end of the task."""
        self.close_nowait()
        if self._running is not None:
            await self._running.wait()

    def _step(self, event: LinkEvent, connection: Connection | None = None) -> None:
        self._state = _NEXT[self._state][event]
        self._connection = connection if self._state is LinkState.OPEN else None
        self._changed.set()
        self._changed = anyio.Event()

    async def _try(self) -> None:
        self._step(LinkEvent.TRY)
        connection = await self._connect()
        self._proxy = connection.proxy
        with anyio.CancelScope() as self._opening:
            try:
                await self._open(connection)
            finally:
                self._opening = None
        if self._state is LinkState.LOST or connection.is_lost:
            raise ConnectError(f"{self.topic}: the connection was lost during the opening")
        self._step(LinkEvent.OPENED, connection)
        now = anyio.current_time()
        if self._state is LinkState.ENDED:
            return
        if self._running is None:
            logger.info("%s: open on %s", self._name, connection.address)
        else:
            self._counts.reconnections += 1
            logger.info("%s: reconnected to %s after %.1f s", self._name, connection.address, now - self._since)
        self._since = now

    async def _connect(self) -> Connection:
        if self._connect_to is not None:
            return await self._connect_to()
        owner, self._owner = self._owner, None
        if owner is not None and not owner.migrated:
            with suppress(PulsarError):
                return await self._brokers.connect_to_broker(owner, self._proxy)
        try:
            return await self._brokers.connect_to(self.topic, self._cluster)
        except (InvalidUrl, OperationNotSupported):
            if self._cluster is None:
                raise
            self._cluster = None  # unusable: the original cluster may name another one
            return await self._brokers.connect_to(self.topic)

    async def _keep_open(self) -> None:
        assert self._running is not None
        try:
            with self._scope:
                while self._state is not LinkState.ENDED:
                    if self._state is LinkState.OPEN:
                        await self._changed.wait()
                    else:
                        await self._open_again()
        finally:
            if self._error is None:  # the client was closed, not the link
                self._give_up(AlreadyClosed("the client was closed"))
            self._running.set()

    async def _open_again(self) -> None:
        at_once = self._owner is not None and self._backoff.is_first
        delay = self._backoff.next()
        delay = 0 if at_once else delay
        logger.info("%s: %s; reconnecting in %.1f s", self._name, shortened(self._reason), delay)
        await anyio.sleep(delay)
        try:
            await self._try()
        except FATAL as error:
            logger.warning("%s: given up: %s", self._name, shortened(error))
            self._give_up(error)
        except PulsarError as error:
            self._brokers.waiting.tell(error)
            self._reason = str(error)
            self._step(LinkEvent.FAIL)

    def _give_up(self, error: PulsarError) -> None:
        self._end(error)
        if self._on_failed is not None:
            self._on_failed(error)

    def _end(self, error: PulsarError) -> None:
        if self._error is None:
            self._error = error
        self._step(LinkEvent.END)
