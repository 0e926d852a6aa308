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
        self._left = 0  # that the consumers left, while these still count
        self._alarm: Timer | None = None
        self._alarm_for: int | None = None  # the first bucket when it was set
        self._tick_at = 0.0  # the tick at which it goes off

    def _made(self) -> DelayedMessages:
        topic = self._subscription.topic
        config, profile = topic.stores.config, topic.stores.profile
        made = DelayedMessages(
            config.delayedDeliveryTickTimeMillis,
            config.isDelayedDeliveryDeliverAtTimeStrict,
            profile.delay_alarms_may_be_early,
        )
        made.tick_ms = topic.policies.delayed_delivery.tick_ms
        return made

    def __len__(self) -> int:
        """Count what waits, with what was acknowledged meanwhile and, as released, what the consumers left."""
        return len(self._messages) + self._left

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

    def waits(self, position: Position) -> bool:
        """Tell whether a message waits: for its time, or for the tick after that."""
        return position in self._positions

    def take_due(self, limit: int) -> list[Position]:
        """Some of the messages whose time has come; sees to it that the next ones are not forgotten."""
        if not self._messages:
            return []
        topic = self._subscription.topic
        now = topic.now_ms()
        taken = self._taken(now, limit)
        self._set_alarm(now)
        return taken

    def _set_alarm(self, now_ms: int) -> None:
        first = self._messages.first_ms
        if first == self._alarm_for:
            return
        self._cancel()
        due = self._messages.next_due_ms(now_ms)
        if due is not None:
            stores, seconds = self._subscription.topic.stores, (due - now_ms) / 1000
            self._tick_at = stores.delay_ticks.after(stores.clock.monotonic(), seconds)
            self._alarm, self._alarm_for = stores.clock.call_later(seconds, self._await_tick), first

    def _await_tick(self) -> None:
        """Wait for the tick, unless the lab moves the clock: what it says is over is over."""
        clock = self._subscription.topic.stores.clock
        left = self._tick_at - clock.monotonic()
        if left > 0 and not clock.frozen:
            self._alarm = clock.call_later(left, self._wake)
        else:
            self._wake()

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

    def leave(self) -> None:
        """Forget what waits when nobody is there any more: it is read again for the next consumer.

        As released, it counts as delayed until `clear`, when that consumer joins.
        """
        left = len(self) if self._subscription.topic.stores.profile.acknowledged_stay_delayed else 0
        self.clear()
        self._left = left

    def clear(self) -> None:
        """Forget what waits, or was left."""
        self._messages = self._made()
        self._positions.clear()
        self._left = 0
        self._cancel()

    def _wake(self) -> None:
        self._alarm = self._alarm_for = None
        self._messages.woke(self._subscription.topic.now_ms())
        self._subscription.dispatch_soon()

    def _cancel(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = self._alarm_for = None
