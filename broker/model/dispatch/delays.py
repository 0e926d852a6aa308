"""Delayed delivery (B-21): what of a subscription waits for its deliver_at_time, and the alarm that ends the wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.dispatch.delayed import DelayedMessages
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
    from pulsarium.broker.model.subscription.base import Subscription

FOREVER = 2**63 - 1


class Delays:
    """Delayed messages by the topic's policy, on the broker's clock. The subscription is dispatched when one is due."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._messages = self._made()
        self._positions = PositionSet()  # of the same
        self._alarm: Timer | None = None
        self._alarm_ms = 0

    def _made(self) -> DelayedMessages:
        topic = self._subscription.topic
        strict = topic.stores.config.isDelayedDeliveryDeliverAtTimeStrict
        return DelayedMessages(topic.policies.delayed_delivery.tick_ms, strict)

    def __len__(self) -> int:
        """Count what waits, with what was acknowledged meanwhile."""
        return len(self._messages)

    def count_unacknowledged(self, cursor: ManagedCursor) -> int:
        """Count what waits and is still in a cursor's backlog."""
        return self._positions.count_without(cursor.holes) - self._positions.count_through(cursor.mark_delete)

    def holds_back(self, position: Position, metadata: pb.MessageMetadata) -> bool:
        """Whether a message has to wait; it does so from here on."""
        topic = self._subscription.topic
        if not metadata.HasField("deliver_at_time") or not topic.policies.delayed_delivery.active:
            return False
        waits = self._messages.add(position, metadata.deliver_at_time, topic.now_ms())
        if waits:
            self._positions.add(position)
        return waits

    def waits(self, metadata: pb.MessageMetadata) -> bool:
        """Whether a message that nobody has is one that waits."""
        return bool(self._messages) and metadata.deliver_at_time > self._subscription.topic.now_ms()

    def take_due(self, limit: int) -> list[Position]:
        """Some of the messages whose time has come; sees to it that the next ones are not forgotten."""
        if not self._messages:
            return []
        topic = self._subscription.topic
        now = topic.now_ms()
        taken = self._taken(now, limit)
        due = self._messages.next_due_ms(now)
        if due is not None and (self._alarm is None or due < self._alarm_ms):
            self._cancel()
            self._alarm, self._alarm_ms = topic.stores.clock.call_later((due - now) / 1000, self._wake), due
        return taken

    def __iter__(self) -> Iterator[Position]:
        """What waits, roughly by its time. Some may be acknowledged meanwhile."""
        return iter(self._messages)

    def policy_changed(self) -> list[Position]:
        """What need not wait any more."""
        policy = self._subscription.topic.policies.delayed_delivery
        self._messages.tick_ms = policy.tick_ms
        return [] if policy.active else self._taken(FOREVER, len(self._messages))

    def _taken(self, now_ms: int, limit: int) -> list[Position]:
        taken = self._messages.take_due(now_ms, limit)
        for position in taken:
            self._positions.discard(position)
        return taken

    def clear(self) -> None:
        self._messages = self._made()
        self._positions.clear()
        self._cancel()

    def _wake(self) -> None:
        self._alarm = None
        self._messages.woke(self._subscription.topic.now_ms())
        self._subscription.dispatch_soon()

    def _cancel(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
