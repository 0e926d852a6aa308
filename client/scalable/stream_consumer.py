"""Consume a scalable topic in order, with cumulative acknowledgements over all segments."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel

from pulsarium.client.consumer.options import ConsumerKeySharedPolicy, ConsumerOptions, ConsumerType, KeySharedMode
from pulsarium.client.core import Core
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.scalable.assignment import AssignedSegment, Registration
from pulsarium.client.scalable.deliveries import Deliveries
from pulsarium.client.scalable.dispatch import MANAGED
from pulsarium.client.scalable.layout import Layout
from pulsarium.client.scalable.message import ScalableMessage
from pulsarium.client.scalable.queue_consumer import check_scalable_txn
from pulsarium.client.scalable.receiving import ScalableConsumer
from pulsarium.client.scalable.segments import SegmentReader, WantedSegment, by_topic
from pulsarium.client.schema.schema import T
from pulsarium.client.together import together
from pulsarium.client.transaction.transaction import Transaction
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class StreamConsumer(ScalableConsumer[T]):
    """A consumer that receives the messages of each key in order (PIP-466). Made by `ScalableTopics.subscribe_stream`.

    The controller of the topic divides the segments among the consumers of a subscription. An acknowledgement covers
    all messages, of all segments, that this consumer has delivered before. When the controller takes a segment away,
    the consumer delivers no more of its messages, and leaves the segment when all delivered ones are acknowledged.
    """

    def __init__(self, core: Core, options: ConsumerOptions[T], *, create: bool = True) -> None:
        """Make a consumer, without sending anything. With `create`, the broker may create a missing topic."""
        super().__init__(core, replace(options, properties={**options.properties, MANAGED: "true"}), create=create)
        self._deliveries = Deliveries()
        self._acknowledged = anyio.Event()  # set at the next acknowledgement, then replaced
        self._assigned: list[AssignedSegment] = []
        self._registration = Registration(
            core.brokers,
            self._session,
            options.subscription_name,
            options.consumer_name,
            pb.STREAM,
            self._on_assigned,
            self._failed,
        )

    def __repr__(self) -> str:
        return f"<StreamConsumer of {self.topic()}, subscription {self.subscription_name()!r}>"

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
        return self._options.subscription_name

    def consumer_name(self) -> str:
        """Return the name of the consumer."""
        return self._options.consumer_name

    def segment_ids(self) -> list[int]:
        """Return the segments that the controller has assigned to this consumer at present."""
        return sorted(one.id for one in self._assigned)

    async def acknowledge_cumulative(self, message: ScalableMessage[Any], *, txn: Transaction | None = None) -> None:
        """Acknowledge a message, and all messages of all segments that this consumer has delivered before it.

        Args:
            message: A message of this consumer.
            txn: A transaction of `ScalableTopics.transaction`. The acknowledgement takes effect with its commit.

        Raises:
            InvalidTxnStatusError: The transaction is not open, or not of scalable topics.
            AlreadyClosed: The consumer was closed.
        """
        await anyio.lowlevel.checkpoint()
        check_scalable_txn(txn)
        number = message._delivery
        found = self._deliveries.through(number)
        await together([partial(self._acknowledge, topic, ids, number, txn) for topic, ids in found.items()])
        self._acknowledged.set()
        self._acknowledged = anyio.Event()

    async def aclose(self) -> None:
        """Close the consumer, and leave the subscription. A second call does nothing."""
        if not self._is_closed:
            await super().aclose()  # the segments first, so that the next consumers of them are not refused
            await self._registration.aclose()

    # ---- private

    async def _open(self, layout: Layout) -> None:
        await self._registration.open()
        await self._segments.added(self._wanted(one) for one in self._assigned)

    def _on_layout(self, layout: Layout) -> None:
        self._registration.follow(layout)

    def _delivered(self, segment_id: int, message: Message[Any]) -> int:
        return self._deliveries.add(message.topic_name(), message.message_id())

    async def _acknowledge(self, topic: str, ids: list[MessageId], number: int, txn: Transaction | None) -> None:
        part = self._segments.find(topic)
        if part is not None and part.consumer is not None:
            if part.wanted.options.consumer_type is ConsumerType.KeyShared:
                await part.consumer.acknowledge_all(ids, txn)
            else:
                await part.consumer.acknowledge_cumulative(ids[-1], txn)
        self._deliveries.done(number, topic)

    def _on_assigned(self, assigned: list[AssignedSegment]) -> None:
        if self._is_closed:
            return
        self._assigned = assigned
        wanted = by_topic(self._wanted(one) for one in assigned)
        for part in self._segments.all:
            one = wanted.get(part.wanted.topic)
            if one is None or one.mode != part.wanted.mode:
                self._segments.remove_nowait(part, partial(self._drained, part))
        for one in wanted.values():
            part = self._segments.add(one)
            if part.is_leaving:  # it is opened again, perhaps in another mode, when it has left
                self._core.brokers.task_group.start_soon(self._open_after, part)

    async def _drained(self, part: SegmentReader) -> None:
        """Wait until all delivered messages of a segment are acknowledged."""
        while part.wanted.topic in self._deliveries and not self._is_closed:
            await self._acknowledged.wait()

    async def _open_after(self, part: SegmentReader) -> None:
        await part.left.wait()
        if not self._is_closed:
            self._on_assigned(self._assigned)

    def _wanted(self, one: AssignedSegment) -> WantedSegment:
        options = self._options
        if one.bucket_ranges:
            policy = ConsumerKeySharedPolicy(
                key_shared_mode=KeySharedMode.Sticky, sticky_ranges=one.bucket_ranges, entry_buckets=True
            )
            options = replace(options, consumer_type=ConsumerType.KeyShared, key_shared_policy=policy)
        return WantedSegment(one.id, one.topic, options)
