"""Hold the place of a session of scalable topics on its connection, and open a session again that was lost."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Link
from pulsarium.client.connection.routes import SessionHandler, SessionUpdate
from pulsarium.client.connection.waiting import shortened
from pulsarium.client.errors import ConnectError, OperationNotSupported, PulsarError, Timeout, copy_of
from pulsarium.client.statistics import LinkCounts
from pulsarium.proto.generated import PulsarApi_pb2 as pb

logger: logging.Logger = logging.getLogger(__name__)

Command = Callable[[int], pb.BaseCommand]
"""Return a command for the session of this id."""


def check_scalable(connection: Connection, flag: str = "supports_scalable_topics") -> None:
    """Raise `OperationNotSupported` if the broker has no scalable topics."""
    if flag not in connection.feature_flags:
        raise OperationNotSupported(
            f"{connection.address} has no {flag}: use a broker of Pulsar 5 with scalableTopicsEnabled=true"
        )


class Seat:
    """The place of a session, from its request until it leaves. Its first update tells whether the broker accepted it.

    The session itself is attached to the connection, and hears the updates.
    """

    def __init__(self, brokers: Brokers, name: str, update: int, leaving: Command | None = None) -> None:
        """Take the name for errors and logs, the type of the updates, and the command that ends a session, if any."""
        self.connection: Connection | None = None
        """The connection, or None while there is none."""
        self._brokers = brokers
        self._name = name
        self._update = update
        self._leaving = leaving
        self._id = 0
        self._came = anyio.Event()
        self._error: PulsarError | None = None

    async def take(self, connection: Connection, session: SessionHandler, request: Command) -> None:
        """Begin a session on a connection, and wait for its first update. Raise the broker's refusal, or `Timeout`."""
        self._came, self._error = anyio.Event(), None
        self._id = self._brokers.next_session_id()  # updates of the last session do not count
        self.connection = connection
        connection.attach_session(self._update, self._id, session)
        connection.send_nowait(request(self._id), at_once=True)
        try:
            await self._first_update()
        except BaseException:
            self.leave()
            raise

    async def _first_update(self) -> None:
        seconds = self._brokers.operation_timeout
        with anyio.move_on_after(seconds):
            await self._came.wait()
            if self._error is not None:
                raise copy_of(self._error)
            return
        raise Timeout(f"{self._name}: no answer in {seconds:g} s")

    def accepted(self) -> None:
        """Note an update."""
        self._came.set()

    def refused(self, error: PulsarError) -> None:
        """Log an update that is an error, and `fail`."""
        logger.warning("%s: %s", self._name, shortened(error))
        self.fail(error)

    def lost(self, error: PulsarError) -> None:
        """Note the end of the connection."""
        self.connection = None
        self.fail(ConnectError(*error.args))

    def leave(self) -> None:
        """End the session on its connection. A second call does nothing."""
        connection, self.connection = self.connection, None
        if connection is None or connection.is_lost:
            return
        connection.detach_session(self._update, self._id)
        if self._leaving is not None:
            connection.send_nowait(self._leaving(self._id))

    def fail(self, error: PulsarError) -> None:
        """Let `take` raise an error, unless the first update has come."""
        if not self._came.is_set():
            self._error = error
            self._came.set()


class LastingSession(ABC):
    """A session that any broker can serve. A lost session is opened again."""

    def __init__(
        self,
        brokers: Brokers,
        name: str,
        update: int,
        leaving: Command,
        on_failed: Callable[[PulsarError], None],
        what: str,
    ) -> None:
        """Take what `Seat` and `Link` need."""
        self._seat = Seat(brokers, name, update, leaving)
        self._link = Link(
            brokers, name, self._open, LinkCounts(), on_failed=on_failed, connect=brokers.connect_to_any, what=what
        )

    def close(self) -> None:
        """Close the session. A second call does nothing."""
        self._link.close_nowait()
        self._seat.leave()

    @abstractmethod
    def on_update(self, update: SessionUpdate) -> None:
        """Handle an update of the session."""

    def on_lost(self, error: PulsarError) -> None:
        """Handle the end of the connection."""
        self._seat.lost(error)
        self._link.lost(error)

    async def _open(self, connection: Connection) -> None:
        check_scalable(connection)
        await self._seat.take(connection, self, self._request)

    @abstractmethod
    def _request(self, number: int) -> pb.BaseCommand:
        """Return the command that begins the session of this id."""
