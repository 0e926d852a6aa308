"""Consume a scalable topic in parallel, without an order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio.lowlevel

from pulsarium.client.consumer.options import ConsumerOptions, InitialPosition
from pulsarium.client.consumer.topic_consumer import TopicConsumer
from pulsarium.client.core import Core
from pulsarium.client.errors import InvalidTxnStatusError
from pulsarium.client.message import Message
from pulsarium.client.scalable.dispatch import MANAGED
from pulsarium.client.scalable.layout import Layout, Segment
from pulsarium.client.scalable.message import ScalableMessage
from pulsarium.client.scalable.receiving import ScalableConsumer
from pulsarium.client.scalable.segments import WantedSegment
from pulsarium.client.schema.schema import T
from pulsarium.client.transaction.transaction import Transaction


class QueueConsumer(ScalableConsumer[T]):
    """A consumer that shares all messages with the other consumers of its subscription, without an order (PIP-466).

    Made by `ScalableTopics.subscribe_queue`. The consumer reads all segments, also sealed ones. Each message is
    acknowledged alone. Unacknowledged messages are delivered again after the consumer is closed.
    """

    def __init__(self, core: Core, options: ConsumerOptions[T]) -> None:
        """Make a consumer, without sending anything."""
        properties = {**options.properties, MANAGED: "true"}
        super().__init__(core, replace(options, properties=properties))
        self._known: set[int] = set()  # segments of the first layout

    def __repr__(self) -> str:
        return f"<QueueConsumer of {self.topic()}, subscription {self.subscription_name()!r}>"

    def subscription_name(self) -> str:
        """Return the name of the subscription."""
        return self._options.subscription_name

    async def acknowledge(self, message: ScalableMessage[Any], *, txn: Transaction | None = None) -> None:
        """Acknowledge a message, so that the broker does not deliver it again.

        Args:
            message: A message of this consumer.
            txn: A transaction of `ScalableTopics.transaction`. The acknowledgement takes effect with its commit.

        Raises:
            TransactionConflict: Another transaction has acknowledged the message.
            InvalidTxnStatusError: The transaction is not open, or not of scalable topics.
            AlreadyClosed: The consumer was closed.
        """
        await anyio.lowlevel.checkpoint()
        check_scalable_txn(txn)
        consumer = self._of(message)
        if consumer is not None:  # the messages of a segment that is gone are gone, too
            await consumer.acknowledge(message.message_id(), txn)

    def negative_acknowledge(self, message: ScalableMessage[Any]) -> None:
        """Ask the broker to redeliver a message after `negative_ack_redelivery_delay` seconds."""
        consumer = self._of(message)
        if consumer is not None:
            consumer.negative_acknowledge(message)

    # ---- private

    async def _open(self, layout: Layout) -> None:
        self._known = set(layout.segments)
        await self._segments.added([self._wanted(one) for one in layout.segments.values()])

    def _on_layout(self, layout: Layout) -> None:
        if self._is_closed or not self._known:
            return
        topics = {one.topic for one in layout.segments.values()}
        for part in self._segments.all:
            if part.wanted.topic not in topics:
                self._segments.remove_nowait(part)
        for segment in layout.segments.values():
            self._segments.add(self._wanted(segment))

    def _wanted(self, segment: Segment) -> WantedSegment:
        """Return the options for a segment. A segment that is younger than the subscription has no earlier messages."""
        options = self._options
        if segment.id not in self._known:
            options = replace(options, initial_position=InitialPosition.Earliest)
        return WantedSegment(segment.id, segment.topic, options)

    def _of(self, message: Message[Any]) -> TopicConsumer | None:
        assert isinstance(message, ScalableMessage)
        found = [part for part in self._segments.all if part.wanted.id == message.segment_id()]
        return found[0].consumer if found else None


def check_scalable_txn(txn: Transaction | None) -> None:
    """Raise `InvalidTxnStatusError` for a transaction of other topics."""
    if txn is not None and not txn._is_scalable:
        raise InvalidTxnStatusError(f"{txn.id()} is no transaction of scalable topics")
