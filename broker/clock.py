"""The one clock of a broker: wall time for stored and printed times, timers for delays.

Only a lab steers the clock (`broker/lab/clock.py`). A clock that no lab steers has no extra cost.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

import trio

from pulsarium.broker.logs import Log

log = Log("clock")

MICROSECONDS = 1_000_000
CYCLE = 146_097 * 86_400  # seconds of 400 years, after which the calendar repeats


class Timer:
    """A callback that runs once, or every `period` seconds, until `cancel`."""

    __slots__ = ("callback", "period")

    def __init__(self, callback: Callable[[], None], period: float = 0.0) -> None:
        self.callback: Callable[[], None] | None = callback
        self.period = period

    def cancel(self) -> None:
        self.callback = None


Entry = tuple[float, int, Timer]  # deadline, order of creation, timer


class Timeline:
    """Wall time, timer time, and timers.

    A timeline follows trio's clock, so a test that steers trio's clock steers everything. A lab can freeze it, or make
    it jump.
    """

    def __init__(self, wall_offset: float, wake: Callable[[], None]) -> None:
        self._trio = trio.lowlevel.current_clock().current_time  # `trio.current_time` would look the clock up each time
        self._source: Callable[[], float] = self._trio  # a constant while frozen
        self._ahead = 0.0  # of the source, for timers
        self._wall_offset = wall_offset  # from the source to the epoch
        self._wake = wake  # called when the first deadline changes
        self._once: list[Entry] = []
        self._periodic: list[Entry] = []
        self._order = itertools.count()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return int((self._source() + self._wall_offset) * 1000)

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return self._source() + self._wall_offset

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment, for differences."""
        return self._source() + self._ahead

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the event loop, `seconds` from now."""
        timer = Timer(callback)
        self._push(self._once, self._source() + self._ahead + seconds, timer)
        return timer

    def every(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` every `seconds`, the first time `seconds` from now, until the timer is canceled."""
        timer = Timer(callback, seconds)
        self._push(self._periodic, self._source() + self._ahead + seconds, timer)
        return timer

    def _push(self, heap: list[Entry], deadline: float, timer: Timer) -> None:
        heapq.heappush(heap, (deadline, next(self._order), timer))
        if heap[0][2] is timer:
            self._wake()

    # firing

    def fire_due(self) -> None:
        """Run all due timers."""
        now = self.monotonic()
        while self._first_deadline() <= now:
            self.fire_first()

    def fire_first(self) -> None:
        """Run the first timer, due or not."""
        heap = self._first_heap()
        deadline, _, timer = heapq.heappop(heap)
        if timer.callback is None:
            return
        if timer.period:
            now, deadline = self.monotonic(), deadline + timer.period
            self._push(heap, deadline if deadline > now else now + timer.period, timer)  # missed periods are skipped
        try:
            timer.callback()
        except Exception as error:  # one timer's fault must not stop the others
            log.error("timer failed", exception=error)

    def _first_heap(self) -> list[Entry]:
        once, periodic = self._once, self._periodic
        return once if once and (not periodic or once[0] < periodic[0]) else periodic

    def _first_deadline(self) -> float:
        heap = self._first_heap()
        return heap[0][0] if heap else math.inf

    def due_at(self) -> float:
        """Return trio's time of the first deadline. While frozen, return infinity before the deadline."""
        deadline = self._first_deadline()
        if not self.frozen:
            return deadline - self._ahead
        return -math.inf if deadline <= self.monotonic() else math.inf

    # steering

    @property
    def frozen(self) -> bool:
        """Return whether the timeline is frozen."""
        return self._source is not self._trio

    def freeze(self) -> None:
        """Freeze the timeline."""
        if not self.frozen:
            at = self._trio()
            self._source = lambda: at

    def resume(self, *, catch_up: bool = False) -> None:
        """Resume from the frozen time, or with `catch_up` as if it had never been frozen."""
        if self.frozen:
            passed = 0.0 if catch_up else self._trio() - self._source()
            self._source = self._trio
            self.jump(-passed)

    def jump(self, seconds: float) -> None:
        """Advance the time by `seconds`, without running timers."""
        self._ahead += seconds
        self._wall_offset += seconds
        self._wake()

    def ahead_of(self, other: Timeline) -> float:
        """Return the seconds by which this wall time is ahead of `other`, exactly if both follow one source."""
        ahead = self._wall_offset - other._wall_offset
        return ahead if self._source == other._source else ahead + self._source() - other._source()

    def have_wall_of(self, other: Timeline) -> None:
        """Set the wall time to that of `other`. Timers keep their remaining time."""
        self._wall_offset -= self.ahead_of(other)

    def next_in(self, *, periodic: bool = True) -> float:
        """Return seconds until the first timer, or the first one-time timer; infinity without any."""
        once = self._once
        while once and once[0][2].callback is None:
            heapq.heappop(once)
        heap = self._first_heap() if periodic else once
        return max(0.0, heap[0][0] - self.monotonic()) if heap else math.inf

    def skip_periods(self, seconds: float) -> None:
        """Skip all but the last period of each periodic timer within the next `seconds`."""
        until = self.monotonic() + seconds
        if any(deadline + timer.period <= until for deadline, _, timer in self._periodic):
            self._periodic = [
                (deadline + max(0, (until - deadline) // timer.period) * timer.period, order, timer)
                for deadline, order, timer in self._periodic
            ]
            heapq.heapify(self._periodic)


class Clock(Timeline):
    """The time of a broker, and the timelines that follow the machine's clock while a lab steers this one.

    A Clock must be created inside a trio run.
    """

    def __init__(self) -> None:
        wall_offset = time.time() - trio.current_time()
        self._wakeup = trio.Event()
        super().__init__(wall_offset, self._wake_up)
        self.keep_alive = Timeline(wall_offset, self._wake_up)  # clients answer in real time
        self.token_expiry = Timeline(wall_offset, self._wake_up)  # credentials carry times of the machine's clock
        self.machine = Timeline(wall_offset, self._wake_up)  # retries and pauses, which no test waits for
        self._timelines = (self, self.keep_alive, self.token_expiry, self.machine)

    def _wake_up(self) -> None:
        self._wakeup.set()

    async def run(self) -> None:
        """Fire timers until cancelled."""
        while True:
            self._wakeup = trio.Event()
            with trio.move_on_at(min(each.due_at() for each in self._timelines)):
                await self._wakeup.wait()
            for each in self._timelines:
                each.fire_due()


def instant_text(ms: int) -> str:
    """Return `ms` since the epoch as Pulsar prints an instant in JSON."""
    cycles, seconds = divmod(ms // 1000, CYCLE)  # Python has no year after 9999, but clients send such times
    time = datetime.fromtimestamp(seconds, UTC)
    year = time.year + 400 * cycles
    return f"{'+' if year > 9999 else ''}{year:04}{time:-%m-%dT%H:%M:%S}.{ms % 1000:03}Z"


class DelayTicks:
    """The common ticks at which all subscriptions of a cluster look for due delayed messages (B-21).

    Ticks are delayedDeliveryTickTimeMillis apart, counted from the first alarm. An alarm goes off at the first tick
    after its time, so a message may come up to a tick late. In Pulsar all subscriptions share one hashed wheel timer.
    """

    def __init__(self, tick_ms: int) -> None:
        self._tick_us = tick_ms * 1000
        self._begin: float | None = None

    def after(self, now: float, seconds: float) -> float:
        """Return the time of an alarm set now for `seconds` later. Times are the clock's monotonic seconds."""
        if self._begin is None:
            self._begin = now
        passed_us = round((now + seconds - self._begin) * MICROSECONDS)
        ticks = passed_us // self._tick_us + 1
        return self._begin + ticks * self._tick_us / MICROSECONDS
