"""Follow the layout of a scalable topic."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.routes import SessionUpdate
from pulsarium.client.errors import ConnectError, PulsarError, error_of
from pulsarium.client.scalable.layout import BrokenLayout, Hashing, Layout
from pulsarium.client.scalable.seat import LastingSession
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

UPDATE = pb.BaseCommand.SCALABLE_TOPIC_UPDATE

logger: logging.Logger = logging.getLogger(__name__)


class LayoutSession(LastingSession):
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
        super().__init__(brokers, topic, UPDATE, _close, on_failed, "layout of")
        self.layout: Layout | None = None
        """The newest layout, or None before the first one."""
        self._topic = topic
        self._on_layout = on_layout
        self._create = create

    async def open(self) -> Layout:
        """Open the session, and return the first layout. Raise the broker's refusal."""
        await self._link.start()
        assert self.layout is not None
        return self.layout

    # ---- for the connection

    def on_update(self, update: SessionUpdate) -> None:
        assert isinstance(update, pb.CommandScalableTopicUpdate)
        if update.HasField("error"):
            self._seat.refused(error_of(update.error, text_of(update.message)))
            return
        connection = self._seat.connection
        if not update.HasField("dag") or connection is None:
            return
        name = text_of(update.resolved_topic_name) or self._topic
        try:
            layout = Layout.read(name, update.dag, Hashing.of_broker(connection.server_version))
        except PulsarError as error:
            self._seat.refused(error if isinstance(error, ConnectError) else BrokenLayout(*error.args))
            return
        self._take(layout)
        self._seat.accepted()

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

    def _request(self, number: int) -> pb.BaseCommand:
        lookup = pb.CommandScalableTopicLookup(
            session_id=number, topic=self._topic, create_if_missing=self._create and self.layout is None
        )
        return pb.BaseCommand(type=pb.BaseCommand.SCALABLE_TOPIC_LOOKUP, scalableTopicLookup=lookup)


def _close(number: int) -> pb.BaseCommand:
    close = pb.CommandScalableTopicClose(session_id=number)
    return pb.BaseCommand(type=pb.BaseCommand.SCALABLE_TOPIC_CLOSE, scalableTopicClose=close)
