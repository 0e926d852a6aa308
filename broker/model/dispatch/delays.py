"""Delayed delivery (B-21): what of a subscription waits for its deliver_at_time, and the alarm that ends the wait."""

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

POSITION = Struct(">qq")
FEW = 64 * POSITION.size  # bytes of packed positions; a bitmap is smaller for more, not for fewer
FOREVER = 2**63 - 1


class DelayedMessages:
    """The positions of one subscription that must wait, in buckets of time. All times are milliseconds.

    A bucket is as wide as the highest power of two within the tick of broker.conf (delayedDeliveryTickTimeMillis).
    Unless `strict` (isDelayedDeliveryDeliverAtTimeStrict), a message may go up to a tick early: its bucket is named by
    its first millisecond, and is due when all in it may go. When strict none goes early: the end names the bucket.

    `alarms_may_be_early`: an alarm is for the name of a bucket, also where a shorter `tick_ms` makes the bucket due
    later; there is no second alarm.
    """

    def __init__(self, tick_ms: int, strict: bool, alarms_may_be_early: bool = False) -> None:
        self.tick_ms = tick_ms  # a policy's tick leaves the buckets as wide as they are, as in Pulsar
        self._strict = strict
        self._alarms_may_be_early = alarms_may_be_early
        self._width = 1 << max(tick_ms.bit_length() - 1, 0)
        self._buckets: dict[int, bytes | PositionSet] = {}  # a few positions are packed
        self._times: list[int] = []  # of the buckets, a heap
        self._count = 0
        self._woke_ms = 0

    def __len__(self) -> int:
        return self._count

    def add(self, position: Position, deliver_at_ms: int, now_ms: int) -> bool:
        """Let a message wait; False when it need not."""
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
        """Take at most `limit` messages whose time has come, the earliest buckets first; in order of position."""
        found: list[Position] = []
        latest = now_ms + self._early
        while len(found) < limit and self._times and self._times[0] <= latest:
            found += self._take(self._times[0], limit - len(found))
        self._count -= len(found)
        found.sort()
        return found

    def __iter__(self) -> Iterator[Position]:
        """The earliest buckets first, each in order of position."""
        for time in sorted(self._times):
            bucket = self._buckets[time]
            yield from sorted(_unpacked(bucket)) if isinstance(bucket, bytes) else bucket

    def _take(self, time: int, limit: int) -> list[Position]:
        """The first positions of the earliest bucket."""
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
        """How long before the time in its name a bucket is due."""
        return 0 if self._strict else self.tick_ms - self._width + 1

    @property
    def first_ms(self) -> int | None:
        """The name of the earliest bucket."""
        return self._times[0] if self._times else None

    def next_due_ms(self, now_ms: int) -> int | None:
        """When to wake up and `take_due`: not before a tick has passed since `woke`, to get more at once.

        None when nothing waits, or when what waits is due already: it goes with the next dispatch, when a consumer can
        take it.
        """
        if not self._times:
            return None
        later = 0 if self._alarms_may_be_early else max(0, -self._early)
        time = self._times[0] + later
        woke = min(self._woke_ms, now_ms)  # the clock may have been set back
        return max(time, woke + self.tick_ms) if time > now_ms else None

    def woke(self, now_ms: int) -> None:
        """The timer that was set for `next_due_ms` has come."""
        self._woke_ms = now_ms

    def clear(self) -> None:
        """The cursor was moved, or nobody is there any more."""
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
        return self._positions.count_without(cursor.individual_acks) - self._positions.count_through(cursor.mark_delete)

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
