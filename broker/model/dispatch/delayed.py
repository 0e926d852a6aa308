"""What waits for its deliver_at_time (B-21)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice
from struct import Struct

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet

POSITION = Struct(">qq")
FEW = 64 * POSITION.size  # bytes of packed positions; a bitmap is smaller for more, not for fewer


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
