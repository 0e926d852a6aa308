"""Read a scalable topic in order from a checkpoint that the application keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import anyio

from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.reader import ReaderPosition
from pulsarium.client.consumer.start import Start
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.core import Core
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.scalable.assignment import AssignedSegment, Registration
from pulsarium.client.scalable.checkpoint import Checkpoint
from pulsarium.client.scalable.dispatch import MANAGED
from pulsarium.client.scalable.layout import Layout
from pulsarium.client.scalable.receiving import ScalableConsumer
from pulsarium.client.scalable.segments import WantedSegment
from pulsarium.client.schema.schema import T
from pulsarium.client.statistics import ReceivedCounts
from pulsarium.proto.generated import PulsarApi_pb2 as pb


@dataclass(frozen=True)
class CheckpointOptions:
    """Options of a checkpoint consumer, beside those of a consumer."""

    start: Checkpoint
    group: str | None
    """The group that divides the segments, or None to read all of them."""


class CheckpointConsumer(ScalableConsumer[T]):
    """A reader of a topic without a position on the broker. Made by `ScalableTopics.create_checkpoint_consumer`.

    The application stores checkpoints, and begins at one of them. The messages of each key come in order: a segment is
    read when all segments before it have been read to their ends. In a group, this concerns the segments of one member.
    """

    def __init__(self, core: Core, options: ConsumerOptions[T], own: CheckpointOptions) -> None:
        """Make a consumer, without sending anything."""
        name = f"checkpoint-{uuid4().hex[:10]}"
        properties = {**options.properties, MANAGED: "true"}
        super().__init__(core, replace(options, subscription_name=name, properties=properties), create=False)
        self._start = own.start
        self._positions: dict[int, MessageId] = {}
        self._finished: set[int] = set()
        self._places: dict[str, ReaderPosition] = {}
        self._wanted: dict[int, str] = {}  # topics, by the ids of the segments to read
        self._registration: Registration | None = None
        if own.group is not None:
            self._registration = Registration(
                core.brokers,
                self._session,
                own.group,
                options.consumer_name,
                pb.CHECKPOINT,
                self._on_assigned,
                self._failed,
            )

    def checkpoint(self) -> Checkpoint:
        """Return the position behind the last message that `receive` returned, in all segments of this consumer."""
        return Checkpoint.at(self._positions)

    async def aclose(self) -> None:
        """Close the consumer, and leave its group. A second call does nothing."""
        if not self._is_closed:
            await super().aclose()
            if self._registration is not None:
                await self._registration.aclose()

    # ---- private

    async def _open(self, layout: Layout) -> None:
        if self._start is Checkpoint.latest:
            self._start = await self._latest(layout)
        if self._registration is not None:
            await self._registration.open()
        else:
            self._want({one.id: one.topic for one in layout.segments.values()})
        for part in self._segments.all:
            await part.tried.wait()

    def _on_layout(self, layout: Layout) -> None:
        if self._registration is not None:
            self._registration.follow(layout)
        gone = self._positions.keys() - layout.segments.keys()
        for segment_id in gone:
            del self._positions[segment_id]
        if self._registration is None and self._wanted:
            self._want({one.id: one.topic for one in layout.segments.values()})
        else:
            self._read_next()

    def _on_assigned(self, assigned: list[AssignedSegment]) -> None:
        self._want({one.id: one.topic for one in assigned})

    def _want(self, wanted: dict[int, str]) -> None:
        self._wanted = wanted
        for part in self._segments.all:
            if part.wanted.id not in wanted:
                self._segments.remove_nowait(part)
        self._read_next()

    def _read_next(self) -> None:
        """Read the segments whose turn has come."""
        layout = self._session.layout
        if layout is None or self._is_closed:
            return
        for segment_id in sorted(self._wanted):
            if segment_id not in layout.segments:
                continue  # a newer assignment than the layout, which comes next
            if self._start_of(segment_id, layout) is None:
                self._finished.add(segment_id)
        for segment_id, topic in sorted(self._wanted.items()):
            if segment_id not in layout.segments or segment_id in self._finished:
                continue
            if layout.ancestors(segment_id) & self._wanted.keys() <= self._finished:
                start = self._start_of(segment_id, layout)
                assert start is not None
                self._positions.setdefault(segment_id, start)
                self._segments.add(WantedSegment(segment_id, topic, self._options, Start(start)))

    def _start_of(self, segment_id: int, layout: Layout) -> MessageId | None:
        known = self._positions.get(segment_id)
        return self._start.start_of(segment_id, layout) if known is None else known

    def _delivered(self, segment_id: int, message: Message[Any]) -> int:
        topic = message.topic_name()
        part = self._segments.find(topic)
        if part is not None and part.consumer is not None:
            place = self._places.get(topic)
            if place is None:
                every = max(1, self._options.receiver_queue_size // 2)
                place = self._places[topic] = ReaderPosition(part.consumer, every, inclusive=False)
            place.passed(message.message_id())
        self._positions[segment_id] = message.message_id()
        self._on_end()
        return 0

    def _on_end(self) -> None:
        """Finish the segments that are read to their ends, and read those that follow."""
        finished = [
            part
            for part in self._segments.all
            if part.consumer is not None and part.consumer.receiver.end_of_topic and not part.consumer.receiver
        ]
        for part in finished:
            self._finished.add(part.wanted.id)
            self._places.pop(part.wanted.topic, None)
            self._segments.remove_nowait(part)
        if finished:
            self._read_next()

    async def _latest(self, layout: Layout) -> Checkpoint:
        """Return the present end of all active segments as a checkpoint."""
        found: dict[int, MessageId] = {}
        for segment in layout.active:
            probe = TopicConsumer(
                self._core.brokers,
                segment.topic,
                replace(self._options, subscription_name=f"checkpoint-{uuid4().hex[:10]}"),
                Inbox(),
                Start(MessageId.latest),
                letters=self._letters,
                interceptors=self._interceptors,
                counts=ReceivedCounts(),
            )
            try:
                await probe.open()
                last, _ = await probe.last_message()
            finally:
                with anyio.CancelScope(shield=True):
                    await probe.aclose()
            found[segment.id] = last if last.entry_id >= 0 else MessageId.earliest
        return Checkpoint.at(found)
