"""Register a consumer with the controller of a scalable topic, and follow the assignment of segments."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import anyio

from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Link
from pulsarium.client.connection.routes import SessionUpdate
from pulsarium.client.connection.service_url import BrokerUrls, parse
from pulsarium.client.connection.waiting import shortened
from pulsarium.client.errors import ConnectError, PulsarError
from pulsarium.client.scalable.layout import M1, Layout
from pulsarium.client.scalable.seat import check_scalable
from pulsarium.client.scalable.session import LayoutSession
from pulsarium.client.statistics import LinkCounts
from pulsarium.client.topics import bounded, full_name
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

UPDATE = pb.BaseCommand.SCALABLE_TOPIC_ASSIGNMENT_UPDATE
LAST_WORDS = 2.0  # seconds that the broker gets to answer when the consumer leaves

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AssignedSegment:
    """A segment that the controller has assigned to a consumer."""

    id: int
    topic: str
    bucket_ranges: tuple[tuple[int, int], ...] = ()
    """The entry buckets of a segment that consumers share, all of them, or nothing for a segment of one consumer."""


class Registration:
    """The registration of one consumer with the controller. A lost registration is made again, at its present broker.

    Within the grace period of the broker (`scalableTopicConsumerSessionGracePeriodSeconds`) the assignment is the same.
    """

    def __init__(
        self,
        brokers: Brokers,
        session: LayoutSession,
        subscription: str,
        consumer_name: str,
        kind: pb.ScalableConsumerType,
        on_assigned: Callable[[list[AssignedSegment]], None],
        on_failed: Callable[[PulsarError], None],
    ) -> None:
        """Take the consumer and its handlers.

        Args:
            brokers: The brokers of the client.
            session: The session with the topic's layout, which names the controller.
            subscription: The name of the subscription, or of the group of checkpoint consumers.
            consumer_name: The name of the consumer, by which the controller knows it again.
            kind: STREAM or CHECKPOINT.
            on_assigned: Called with each assignment. Must not block.
            on_failed: Called when the registration ends for good.
        """
        self._brokers = brokers
        self._session = session
        self._subscription = subscription
        self._name = consumer_name
        self._kind = kind
        self._on_assigned = on_assigned
        self._id = brokers.next_consumer_id()
        self._epoch = -1
        self._controller: BrokerUrls | None = None  # the controller in the layout, since the registration was made
        self._link = Link(
            brokers,
            f"{subscription}/{consumer_name}",
            self._open,
            LinkCounts(),
            on_failed=on_failed,
            connect=self._connect,
            what="registration of",
        )

    async def open(self) -> None:
        """Register. Raise the controller's refusal."""
        await self._link.start()

    def follow(self, layout: Layout) -> None:
        """Register again if the layout names another controller than the broker of the registration."""
        known, self._controller = self._controller, layout.controller
        connection = self._link.current
        if connection is None or layout.controller == known:
            return
        if not _is_at(layout.controller, connection):
            connection.detach_session(UPDATE, self._id)
            self._link.lost(ConnectError("the controller has moved"))

    async def aclose(self) -> None:
        """Leave the subscription, so that the controller assigns the segments to others at once.

        A broker of 5.0.0-M1 notices when the connection ends. Refusals are ignored, because the grace period ends the
        registration, too.
        """
        connection = self._link.current
        self._link.close_nowait()
        if connection is None or connection.is_lost:
            return
        connection.detach_session(UPDATE, self._id)
        if M1 in connection.server_version:  # it would close the connection
            return
        leave = pb.CommandScalableTopicUnsubscribe(request_id=connection.next_request_id(), consumer_id=self._id)
        command = pb.BaseCommand(type=pb.BaseCommand.SCALABLE_TOPIC_UNSUBSCRIBE, scalableTopicUnsubscribe=leave)
        with anyio.move_on_after(LAST_WORDS):
            try:
                await connection.request(command)
            except PulsarError as error:
                logger.info("%s: %s", self._subscription, error)

    # ---- for the connection

    def on_update(self, update: SessionUpdate) -> None:
        assert isinstance(update, pb.CommandScalableTopicAssignmentUpdate)
        self._take(update.assignment)

    def on_lost(self, error: PulsarError) -> None:
        self._link.lost(error)

    # ---- its own

    async def _connect(self) -> Connection:
        layout = self._session.layout
        if layout is None or layout.controller is None:  # any broker becomes the controller of a topic without one
            return await self._brokers.connect_to_any()
        try:
            return await self._brokers.connect_to_broker(layout.controller, None)
        except PulsarError:  # the controller may have moved since
            return await self._brokers.connect_to_any()

    async def _open(self, connection: Connection) -> None:
        check_scalable(connection)
        layout = self._session.layout
        assert layout is not None
        connection.attach_session(UPDATE, self._id, self)
        self._controller = layout.controller
        self._epoch = -1  # a new controller may count again
        subscribe = pb.CommandScalableTopicSubscribe(
            request_id=connection.next_request_id(),
            topic=layout.topic,
            subscription=self._subscription,
            consumer_name=self._name,
            consumer_id=self._id,
            consumer_type=self._kind,
        )
        command = pb.BaseCommand(type=pb.BaseCommand.SCALABLE_TOPIC_SUBSCRIBE, scalableTopicSubscribe=subscribe)
        try:
            reply = await connection.request(command)
        except BaseException:
            connection.detach_session(UPDATE, self._id)
            raise
        self._take(reply.command.scalableTopicSubscribeResponse.assignment)

    def _take(self, assignment: pb.ScalableConsumerAssignment) -> None:
        """Apply an assignment, unless it is of an older layout than the last one."""
        if assignment.layout_epoch < self._epoch:
            return
        try:
            bounded(len(assignment.segments), self._subscription)
            found = [self._assigned(one) for one in assignment.segments]
        except PulsarError as error:
            logger.warning("%s: the assignment is ignored: %s", self._subscription, shortened(error))
            return
        self._epoch = assignment.layout_epoch
        self._on_assigned(found)

    def _assigned(self, one: pb.ScalableAssignedSegment) -> AssignedSegment:
        """Return a segment of an assignment. Raise `InvalidTopicName` if its topic is no topic name."""
        layout = self._session.layout
        topic = full_name(text_of(one.segment_topic))
        known = None if layout is None else layout.segments.get(one.segment_id)
        if known is not None and known.is_legacy:
            topic = known.topic  # 5.0.0-M1 names a segment that does not exist
        return AssignedSegment(one.segment_id, topic, tuple((bucket.start, bucket.end) for bucket in one.bucket_ranges))


def _is_at(controller: BrokerUrls | None, connection: Connection) -> bool:
    """Return whether a connection leads to the controller."""
    urls = () if controller is None else (controller.plain, controller.tls)
    try:
        return connection.address in [str(parse(url)[0]) for url in urls if url]
    except PulsarError:  # no URL
        return False
