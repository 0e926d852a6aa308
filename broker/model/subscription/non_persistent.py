"""Subscriptions of non-persistent topics: whoever has permits gets the message, or nobody does (B-37)."""

from __future__ import annotations

from typing import Protocol

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import SubscribedTopic, Subscription
from pulsarium.proto.entry import messages_in

NOWHERE = Position(0, 0)  # the id that every message of a non-persistent topic has


class SubscribedNonPersistentTopic(SubscribedTopic, Protocol):
    """A non-persistent topic, as its subscriptions see it."""

    def forget_subscription(self, subscription: NonPersistentSubscription) -> None: ...


class NonPersistentSubscription(Subscription):
    """Has consumers but no cursor."""

    topic: SubscribedNonPersistentTopic

    def __init__(self, topic: SubscribedNonPersistentTopic, name: str) -> None:
        super().__init__(topic, name)
        self.dropped = 0  # messages that nobody had permits for

    @property
    def failover_index(self) -> int:
        return max(self.topic.name.partition_index, 0)

    @property
    def failover_delay_ms(self) -> int | None:
        return None  # there is nothing to read again, so nothing to wait for

    def publish(self, entry: bytes) -> None:
        """Deliver an entry now, or drop it."""
        consumer = self.dispatcher.consumer_for(entry) if self.dispatcher is not None else None
        messages = messages_in(entry)
        if consumer is None or messages is None:
            self.dropped += messages or 0
        else:
            delivery = Delivery(NOWHERE, entry, messages, 0, ())
            consumer.deliver([delivery], permits=messages, messages=messages, size=len(entry))

    def forget_if_unused(self) -> None:
        """As in Pulsar it stays, when it is new and its first consumer is refused, until others came and left."""

    def _last_consumer_left(self) -> None:
        self.topic.forget_subscription(self)
