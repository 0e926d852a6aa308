"""Follow the layout of a scalable topic."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Link
from pulsarium.client.connection.routes import SessionUpdate
from pulsarium.client.connection.waiting import printable
from pulsarium.client.errors import ConnectError, OperationNotSupported, PulsarError, Timeout, copy_of, error_of
from pulsarium.client.scalable.layout import BrokenLayout, Hashing, Layout
from pulsarium.client.statistics import Links
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

UPDATE = pb.BaseCommand.SCALABLE_TOPIC_UPDATE

logger: logging.Logger = logging.getLogger(__name__)


def check_scalable(connection: Connection, flag: str = "supports_scalable_topics") -> None:
    """Raise `OperationNotSupported` if the broker has no scalable topics."""
    if flag not in connection.feature_flags:
        raise OperationNotSupported(
            f"{connection.address} has no {flag}: use a broker of Pulsar 5 with scalableTopicsEnabled=true"
        )


class FirstUpdate:
    """The wait for the first update of a session, which tells whether the broker accepted the session."""

    def __init__(self) -> None:
        self._came = anyio.Event()
        self._error: PulsarError | None = None

    @property
    def is_awaited(self) -> bool:
        """Return whether the update has not come."""
        return not self._came.is_set()

    def came(self, error: PulsarError | None = None) -> None:
        """End the wait, with the broker's refusal if there is one."""
        if self.is_awaited:
            self._error = error
            self._came.set()

    async def wait(self, seconds: float, what: str) -> None:
        """Wait for the update. Raise the refusal, or `Timeout` after `seconds`."""
        with anyio.move_on_after(seconds):
            await self._came.wait()
            if self._error is not None:
                raise copy_of(self._error)
            return
        raise Timeout(f"{what}: no answer in {seconds:g} s")


class LayoutSession:
    """A session that keeps the current layout of a topic. A lost session is opened again, at any broker."""

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        on_layout: Callable[[Layout], None],
        on_failed: Callable[[PulsarError], None],
        *,
        create: bool = True,
    ) -> None:
        """Take the handlers.

        Args:
            brokers: The brokers of the client.
            topic: The topic, in any form that the broker resolves.
            on_layout: Called with each newer layout, and when the controller has changed. Must not block.
            on_failed: Called when the session ends for good, as for `Link`.
            create: Let the broker create a missing topic.
        """
        self.layout: Layout | None = None
        """The newest layout, or None before the first one."""
        self._brokers = brokers
        self._topic = topic
        self._on_layout = on_layout
        self._create = create
        self._id = brokers.next_session_id()
        self._connection: Connection | None = None
        self._first = FirstUpdate()
        self._link = Link(
            brokers,
            topic,
            self._open,
            Links(),
            on_failed=on_failed,
            connect=brokers.connect_to_any,
            what="layout of",
        )

    async def open(self) -> Layout:
        """Open the session, and return the first layout. Raise the broker's refusal."""
        await self._link.start()
        assert self.layout is not None
        return self.layout

    def close(self) -> None:
        """Close the session. A second call does nothing."""
        connection, self._connection = self._connection, None
        self._link.close_nowait()
        if connection is not None and not connection.is_lost:
            self._leave(connection)

    # ---- for the connection

    def on_update(self, update: SessionUpdate) -> None:
        assert isinstance(update, pb.CommandScalableTopicUpdate)
        if update.HasField("error"):
            error = error_of(update.error, text_of(update.message))
            logger.warning("%s: %s", self._topic, printable(error))
            self._first.came(error)
            return
        connection = self._connection
        if not update.HasField("dag") or connection is None:
            return
        name = text_of(update.resolved_topic_name) or self._topic
        try:
            layout = Layout.read(name, update.dag, Hashing.of_broker(connection.server_version))
        except PulsarError as error:
            broken = error if isinstance(error, ConnectError) else BrokenLayout(*error.args)
            logger.warning("%s: %s", self._topic, printable(error))
            self._first.came(broken)
            return
        self._take(layout)
        self._first.came()

    def on_lost(self, error: PulsarError) -> None:
        self._connection = None
        self._first.came(ConnectError(*error.args))
        self._link.lost(error)

    # ---- its own

    def _take(self, layout: Layout) -> None:
        """Apply a layout that is newer. A migration makes a synthetic layout one of epoch 0, as it was before."""
        old = self.layout
        if old is not None and layout.epoch <= old.epoch and not (old.is_legacy and not layout.is_legacy):
            same = layout.epoch == old.epoch and old.segments.keys() == layout.segments.keys()
            if same and layout.controller != old.controller:
                self.layout = layout
                self._on_layout(layout)
            return
        self.layout = layout
        logger.info("%s: layout %d has %d active segments", layout.topic, layout.epoch, len(layout.active))
        self._on_layout(layout)

    async def _open(self, connection: Connection) -> None:
        check_scalable(connection)
        self._first = FirstUpdate()
        self._id = self._brokers.next_session_id()  # updates of the last session do not count
        self._connection = connection
        connection.attach_session(UPDATE, self._id, self)
        lookup = pb.CommandScalableTopicLookup(
            session_id=self._id, topic=self._topic, create_if_missing=self._create and self.layout is None
        )
        connection.send_nowait(
            pb.BaseCommand(type=pb.BaseCommand.SCALABLE_TOPIC_LOOKUP, scalableTopicLookup=lookup), at_once=True
        )
        try:
            await self._first.wait(self._brokers.operation_timeout, self._topic)
        except BaseException:
            self._connection = None
            if not connection.is_lost:
                self._leave(connection)
            raise

    def _leave(self, connection: Connection) -> None:
        connection.detach_session(UPDATE, self._id)
        close = pb.CommandScalableTopicClose(session_id=self._id)
        connection.send_nowait(pb.BaseCommand(type=pb.BaseCommand.SCALABLE_TOPIC_CLOSE, scalableTopicClose=close))
