"""Delayed delivery: messages that wait for their deliver_at_time, and the alarm that ends the wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from struct import Struct

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import LONG_MAX

POSITION = Struct(">qq")
FEW = 64 * POSITION.size  # bytes of packed positions, up to which they are smaller than a bitmap


class DelayedMessages:
    """Positions of one subscription's delayed messages, in buckets of time. All times are in milliseconds.

    The width of a bucket is the highest power of two within delayedDeliveryTickTimeMillis of broker.conf. Unless
    `strict` (isDelayedDeliveryDeliverAtTimeStrict), a message may go up to a tick early. The key of its bucket is the
    first millisecond, and the bucket is due when all its messages may go. With `strict`, no message goes early, and the
    key is the end of the bucket.

    With `alarms_may_be_early`, the alarm is set for the key of a bucket, even if a shorter `tick_ms` makes the bucket
    due later. There is no second alarm.
    """

    def __init__(self, tick_ms: int, strict: bool, alarms_may_be_early: bool = False) -> None:
        self.tick_ms = tick_ms  # the tick of a policy leaves the width of the buckets as it is, as in Pulsar
        self._strict = strict
        self._alarms_may_be_early = alarms_may_be_early
        self._width = 1 << max(tick_ms.bit_length() - 1, 0)
        self._buckets: dict[int, bytes | PositionSet] = {}  # positions by time: packed while they are few
        self._times: list[int] = []  # keys of the buckets, as a heap
        self._count = 0
        self._woke_ms = 0

    def __len__(self) -> int:
        return self._count

    def add(self, position: Position, deliver_at_ms: int, now_ms: int) -> bool:
        """Add a message, unless it is due already. Return whether the message waits."""
        if deliver_at_ms <= (now_ms if self._strict else now_ms + self.tick_ms):
            return False
        time = deliver_at_ms + self._width - 1 if self._strict else deliver_at_ms
        time -= time % self._width
        packed = POSITION.pack(*position)
        bucket = self._buckets.get(time)
        if bucket is None:
            self._buckets[time] = packed
            heappush(self._times, time)
        elif isinstance(bucket, PositionSet):
            if position in bucket:
                return True
            bucket.add(position)
        elif packed in bucket and position in _unpacked(bucket):
            return True
        elif len(bucket) < FEW:
            self._buckets[time] = bucket + packed
        else:
            self._buckets[time] = _set_of([*_unpacked(bucket), position])
        self._count += 1
        return True

    def take_due(self, now_ms: int, limit: int) -> list[Position]:
        """Take at most `limit` due messages, the earliest buckets first. Return them in order of position."""
        found: list[Position] = []
        latest = now_ms + self._early
        while len(found) < limit and self._times and self._times[0] <= latest:
            found += self._take(self._times[0], limit - len(found))
        self._count -= len(found)
        found.sort()
        return found

    def __iter__(self) -> Iterator[Position]:
        """Iterate over the earliest buckets first, each in order of position."""
        for time in sorted(self._times):
            bucket = self._buckets[time]
            yield from sorted(_unpacked(bucket)) if isinstance(bucket, bytes) else bucket

    def _take(self, time: int, limit: int) -> list[Position]:
        """Take the first positions of the earliest bucket."""
        bucket = self._buckets[time]
        if isinstance(bucket, bytes):
            bucket = _set_of(_unpacked(bucket))
        taken = list(islice(bucket, limit))
        bucket.remove_through(taken[-1])
        if bucket:
            self._buckets[time] = bucket
        else:
            del self._buckets[time]
            heappop(self._times)
        return taken

    @property
    def _early(self) -> int:
        """Return how many milliseconds before its key a bucket is due."""
        return 0 if self._strict else self.tick_ms - self._width + 1

    @property
    def first_ms(self) -> int | None:
        """Return the key of the earliest bucket, or None."""
        return self._times[0] if self._times else None

    def next_due_ms(self, now_ms: int) -> int | None:
        """Return when to call `take_due`: not before a tick has passed since `woke`, to get more messages at once.

        None means that no message waits, or that one is due already. A due message goes with the next dispatch, when a
        consumer can take it.
        """
        if not self._times:
            return None
        later = 0 if self._alarms_may_be_early else max(0, -self._early)
        time = self._times[0] + later
        woke = min(self._woke_ms, now_ms)  # the clock may have been set back
        return max(time, woke + self.tick_ms) if time > now_ms else None

    def woke(self, now_ms: int) -> None:
        """Note that the timer for `next_due_ms` has gone off."""
        self._woke_ms = now_ms

    def clear(self) -> None:
        """Forget all messages, because the cursor was moved or no consumer is left."""
        self._buckets.clear()
        self._times.clear()
        self._count = 0


def _unpacked(packed: bytes) -> list[Position]:
    return [Position(*each) for each in POSITION.iter_unpack(packed)]


def _set_of(positions: Iterable[Position]) -> PositionSet:
    found = PositionSet()
    for position in positions:
        found.add(position)
    return found


class Delays:
    """Delayed messages by the topic's policy, on the broker's clock. A due message dispatches the subscription."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._messages = self._made()
        self._positions = PositionSet()  # positions of the messages in `_messages`
        self._left = 0  # delayed messages when the last consumer left, while they still count
        self._alarm: Timer | None = None
        self._alarm_for: int | None = None  # key of the first bucket when the alarm was set
        self._tick_at = 0.0  # tick at which the alarm goes off, in monotonic seconds

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
        """Count delayed messages, including those acknowledged meanwhile.

        Released versions of Pulsar also count what was delayed when the last consumer left.
        """
        return len(self._messages) + self._left

    def count_unacknowledged(self, cursor: ManagedCursor) -> int:
        """Count delayed messages that are still in the cursor's backlog."""
        return self._positions.count_without(cursor.individual_acks) - self._positions.count_through(cursor.mark_delete)

    def holds_back(self, position: Position, metadata: pb.MessageMetadata) -> bool:
        """Return whether a message must wait. If so, delay it."""
        topic = self._subscription.topic
        if not metadata.HasField("deliver_at_time") or not topic.policies.delayed_delivery.active:
            return False
        waits = self._messages.add(position, metadata.deliver_at_time, topic.now_ms())
        if waits:
            self._positions.add(position)
        return waits

    def __contains__(self, position: object) -> bool:
        """Return whether a message waits for its time, or for the tick after that."""
        return isinstance(position, Position) and position in self._positions

    def take_due(self, limit: int) -> list[Position]:
        """Take due messages, and set the alarm for the next ones."""
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
            stores = self._subscription.topic.stores
            self._tick_at = stores.delay_ticks.after(stores.clock.monotonic(), (due - now_ms) / 1000)
            self._alarm, self._alarm_for = stores.clock.call_at(due, self._await_tick), first

    def _await_tick(self) -> None:
        """Wait for the next tick. While the lab's clock is frozen, deliver at once, at the message's exact time.

        The tick is more than a tick away only if the wall clock was set meanwhile.
        """
        stores = self._subscription.topic.stores
        clock, left = stores.clock, self._tick_at - stores.clock.monotonic()
        if 0 < left < 2 * stores.delay_ticks.seconds and not clock.frozen:
            self._alarm = clock.call_later(left, self._wake)
        else:
            self._wake()

    def __iter__(self) -> Iterator[Position]:
        """Iterate over delayed messages, roughly by time. Some may be acknowledged meanwhile."""
        return iter(self._messages)

    def policy_changed(self) -> list[Position]:
        """Apply a changed policy, and return the messages that need not wait any more."""
        policy = self._subscription.topic.policies.delayed_delivery
        self._messages.tick_ms = policy.tick_ms
        if policy.active:
            return []
        self._cancel()
        return self._taken(LONG_MAX, len(self._messages))

    def _taken(self, now_ms: int, limit: int) -> list[Position]:
        taken = self._messages.take_due(now_ms, limit)
        for position in taken:
            self._positions.discard(position)
        return taken

    def leave(self) -> None:
        """Forget delayed messages when the last consumer leaves. The next consumer reads them again.

        Released versions of Pulsar count them as delayed until `clear`, when that consumer joins.
        """
        left = len(self) if self._subscription.topic.stores.profile.acknowledged_stay_delayed else 0
        self.clear()
        self._left = left

    def clear(self) -> None:
        """Forget all delayed messages, and the count that `leave` kept."""
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
