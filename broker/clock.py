"""The one clock of a broker: wall time for stored and printed times, timers for delays.

Only a lab steers the clock (`broker/lab/clock.py`). A clock that no lab steers has no extra cost.

Wall time is the machine's wall clock, asked each time. Trio's clock drives the timers. It stands still while the
machine sleeps, and nobody sets it. So the two drift apart, and timers that wait for a wall time follow (`call_at`).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

import trio

from pulsarium.broker.logs import PartLog
from pulsarium.broker.net.slices import Slice

log = PartLog("clock")

CYCLE = 146_097 * 86_400  # seconds of 400 years, after which the calendar repeats
LOOK = 1.0  # seconds between two looks at the machine's wall clock, while a timer waits
MOVED = 0.005  # seconds by which that clock must have moved against trio's; less is the time between two readings
TOLD = 1.0  # seconds of such a move that is logged


class Timer:
    """A callback that runs once, or every `period` seconds, until `cancel`."""

    __slots__ = ("by_wall", "callback", "line", "period")

    def __init__(
        self, line: Timeline, callback: Callable[[], None], period: float = 0.0, *, by_wall: bool = False
    ) -> None:
        self.line = line
        self.callback: Callable[[], None] | None = callback
        self.period = period
        self.by_wall = by_wall  # whether it waits for a wall time

    def cancel(self) -> None:
        self.callback = None


Entry = tuple[float, int, Timer]  # deadline, order of creation, timer


class Time:
    """The state of a timeline. Namespaces that no lab steers share the broker's."""

    __slots__ = ("ahead", "once", "order", "periodic", "rounding", "source", "wall", "wall_offset")

    def __init__(
        self,
        source: Callable[[], float],
        ahead: float,
        wall: Callable[[], float],
        wall_offset: float,
        rounding: float = 0.0,
    ) -> None:
        self.source = source  # trio's clock, or a constant while frozen
        self.ahead = ahead  # of the source, for timers
        self.wall = wall  # the machine's wall clock, or the source once a lab has steered this time
        self.wall_offset = wall_offset  # from there to the epoch
        self.rounding = rounding  # seconds that `freeze` added to it
        self.once: list[Entry] = []
        self.periodic: list[Entry] = []
        self.order = itertools.count()

    def now(self) -> float:
        """Return the time by which timers run."""
        return self.source() + self.ahead

    def copy(self) -> Time:
        """Return the same time without timers."""
        return Time(self.source, self.ahead, self.wall, self.wall_offset, self.rounding)

    def steer(self) -> None:
        """Let wall time go by the source from now on, so that only a lab moves it."""
        if self.wall != self.source:
            self.wall_offset += self.wall() - self.source()
            self.wall = self.source

    def move_wall(self, seconds: float) -> None:
        """Bring timers that wait for a wall time forward by `seconds`."""
        self.once = [
            (deadline - seconds if timer.by_wall else deadline, order, timer) for deadline, order, timer in self.once
        ]
        heapq.heapify(self.once)

    def take(self, other: Time, line: Timeline) -> None:
        """Move the timers of `line` here. They keep the time that they have left."""
        later = self.now() - other.now()
        for name in ("once", "periodic"):
            mine, theirs = getattr(self, name), sorted(getattr(other, name))
            moved = (each for each in theirs if each[2].line is line and each[2].callback is not None)
            mine += [(deadline + later, next(self.order), timer) for deadline, _, timer in moved]
            heapq.heapify(mine)
            setattr(other, name, [each for each in theirs if each[2].line is not line])


class Timeline:
    """Wall time, timer time, and timers.

    Timers follow trio's clock, so a test that steers trio's clock steers everything. A lab can freeze a timeline, or
    make it jump.
    """

    def __init__(self, time: Time, wake: Callable[[], None], look: Callable[[], None]) -> None:
        self._trio = time.source
        self._time = time
        self._wake = wake  # called when the first deadline changes
        self._look = look  # called before a timer is set that waits for a wall time

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        time = self._time
        return int((time.wall() + time.wall_offset) * 1000)

    def wall(self) -> float:
        """Return seconds since the epoch."""
        time = self._time
        return time.wall() + time.wall_offset

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment, for differences."""
        time = self._time
        return time.source() + time.ahead

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the event loop, `seconds` from now."""
        return self._once(seconds, Timer(self, callback))

    def call_at(self, time_ms: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` at `time_ms` since the epoch, also when the machine sleeps or its clock is set until then."""
        self._look()
        return self._once((time_ms - self.now_ms()) / 1000, Timer(self, callback, by_wall=True))

    def _once(self, seconds: float, timer: Timer) -> Timer:
        time = self._time
        self._push(time.once, time.source() + time.ahead + seconds, timer)
        return timer

    def every(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` every `seconds`, the first time `seconds` from now, until the timer is canceled."""
        timer, time = Timer(self, callback, seconds), self._time
        self._push(time.periodic, time.source() + time.ahead + seconds, timer)
        return timer

    def _push(self, heap: list[Entry], deadline: float, timer: Timer) -> None:
        heapq.heappush(heap, (deadline, next(self._time.order), timer))
        if heap[0][2] is timer:
            self._wake()

    def follows(self, other: Timeline) -> bool:
        """Return whether both have the same time."""
        return self._time is other._time

    # firing

    def fire_due(self) -> None:
        """Run due timers for a slice. The others stay due."""
        time, slice_ = self._time, Slice()
        now = time.now()
        while self._time is time and self._first_deadline() <= now:  # a timer may end a namespace's own time
            self.fire_first()
            if slice_.is_over:
                break

    def fire_first(self) -> None:
        """Run the first timer, due or not."""
        heap = self._first_heap()
        deadline, _, timer = heapq.heappop(heap)
        if timer.callback is None:
            return
        if timer.period:
            now, deadline = self._time.now(), deadline + timer.period
            self._push(heap, deadline if deadline > now else now + timer.period, timer)  # missed periods are skipped
        try:
            timer.callback()
        except Exception as error:  # one timer's fault must not stop the others
            log.error("timer failed", exception=error)

    def _first_heap(self) -> list[Entry]:
        once, periodic = self._time.once, self._time.periodic
        return once if once and (not periodic or once[0] < periodic[0]) else periodic

    def _first_deadline(self) -> float:
        heap = self._first_heap()
        return heap[0][0] if heap else math.inf

    def due_at(self) -> float:
        """Return trio's time of the first deadline. While frozen, return infinity before the deadline."""
        deadline = self._first_deadline()
        if not self.frozen:
            return deadline - self._time.ahead
        return -math.inf if deadline <= self._time.now() else math.inf

    # steering

    @property
    def frozen(self) -> bool:
        """Return whether the timeline is frozen."""
        return self._time.source is not self._trio

    def freeze(self) -> None:
        """Freeze the timeline, in the middle of the current millisecond.

        So a jump of whole milliseconds changes `now_ms` by exactly as many, however the seconds are rounded.
        """
        if not self.frozen:
            self._time.steer()
            at = self._trio()
            self._time.source = self._time.wall = lambda: at
            self._time.rounding = (self.now_ms() + 0.5) / 1000 - self.wall()
            self._time.wall_offset += self._time.rounding

    def resume(self, *, catch_up: bool = False) -> None:
        """Resume from the frozen time, or with `catch_up` as if it had never been frozen."""
        if self.frozen:
            passed = 0.0 if catch_up else self._trio() - self._time.source()
            self._time.source = self._time.wall = self._trio
            if catch_up:
                self._time.wall_offset -= self._time.rounding
            self.jump(-passed)

    def jump(self, seconds: float) -> None:
        """Advance the time by `seconds`, without running timers."""
        self._time.steer()
        self._time.ahead += seconds
        self._time.wall_offset += seconds
        self._wake()

    def ahead_of(self, other: Timeline) -> float:
        """Return the seconds by which this wall time is ahead of `other`, exactly if both follow one source."""
        mine, theirs = self._time, other._time
        ahead = mine.wall_offset - theirs.wall_offset
        return ahead if mine.wall == theirs.wall else ahead + mine.wall() - theirs.wall()

    def have_wall_of(self, other: Timeline) -> None:
        """Set the wall time to that of `other`, and follow it if both run. Timers keep their remaining time."""
        mine, theirs = self._time, other._time
        if mine.source == theirs.source:
            mine.wall, mine.wall_offset = theirs.wall, theirs.wall_offset
        else:
            mine.steer()
            mine.wall_offset -= self.ahead_of(other)

    def next_in(self, *, periodic: bool = True) -> float:
        """Return seconds until the first timer, or the first one-time timer; infinity without any."""
        once = self._time.once
        while once and once[0][2].callback is None:
            heapq.heappop(once)
        heap = self._first_heap() if periodic else once
        return max(0.0, heap[0][0] - self._time.now()) if heap else math.inf

    def skip_periods(self, seconds: float) -> None:
        """Skip all but the last period of each periodic timer within the next `seconds`."""
        time = self._time
        until = time.now() + seconds
        if any(deadline + timer.period <= until for deadline, _, timer in time.periodic):
            time.periodic = [
                (deadline + max(0, (until - deadline) // timer.period) * timer.period, order, timer)
                for deadline, order, timer in time.periodic
            ]
            heapq.heapify(time.periodic)


def machine_wall() -> Callable[[], float] | None:
    """Return the machine's wall clock. Return None if trio's clock is a test's, which wall time goes by then."""
    clock = trio.lowlevel.current_clock()
    goes_by_the_machine = clock.deadline_to_sleep_time(clock.current_time() + 1) <= 1
    return time.time if goes_by_the_machine else None


class SteeredTime(Timeline):
    """A timeline that a lab can steer, with the machine's beside it."""

    machine: Timeline  # retries and pauses, which no test waits for


Check = Callable[[Timeline], Callable[[], None]]


class Clock(SteeredTime):
    """The time of a broker, and the timelines that follow the machine's clock while a lab steers this one.

    Each namespace has a timeline too (`of`). A Clock must be created inside a trio run.
    """

    def __init__(self) -> None:
        self._wakeup = trio.Event()
        self._machine_wall = machine_wall()
        source = trio.lowlevel.current_clock().current_time  # `trio.current_time` would look the clock up each time
        if self._machine_wall is not None:
            begin = Time(source, 0.0, self._machine_wall, 0.0)
        else:
            begin = Time(source, 0.0, source, time.time() - source())
        self._wall_lead = begin.wall() - begin.source()  # of the machine's wall clock over trio's, at the last look
        super().__init__(begin, self._wake_up, self._look_at_wall)
        self.keep_alive = self._beside(begin)  # clients answer in real time
        self.token_expiry = self._beside(begin)  # credentials carry times of the machine's clock
        self.machine = self._beside(begin)
        self._timelines: tuple[Timeline, ...] = (self, self.keep_alive, self.token_expiry, self.machine)
        self._namespaces: dict[str, NamespaceTime] = {}
        self._checks: dict[Timer, Check] = {}

    def _beside(self, time: Time) -> Timeline:
        return Timeline(time.copy(), self._wake_up, self._look_at_wall)

    def _wake_up(self) -> None:
        self._wakeup.set()

    async def run(self) -> None:
        """Fire timers until cancelled."""
        while True:
            self._wakeup = trio.Event()
            with trio.move_on_at(min(self._next_look(), *(each.due_at() for each in self._timelines))):
                await self._wakeup.wait()
            self._look_at_wall()
            for each in self._timelines:
                each.fire_due()

    def _next_look(self) -> float:
        """Return trio's time of the next look at the machine's wall clock: no timer, no look."""
        waits = self._machine_wall is not None and any(each._time.once for each in self._timelines)
        return self._trio() + LOOK if waits else math.inf

    def _look_at_wall(self) -> None:
        """Set timers that wait for a wall time anew, if the machine has slept or its wall clock was set.

        Where a lab steers the time, nothing changes.
        """
        if self._machine_wall is None:
            return
        lead = self._machine_wall() - self._trio()
        moved = lead - self._wall_lead
        if abs(moved) < MOVED:
            return
        self._wall_lead = lead
        for each in {line._time for line in self._timelines}:
            if each.wall == self._machine_wall:
                each.move_wall(moved)
        self._wake_up()
        if abs(moved) >= TOLD:
            log.info("the machine has slept, or its clock was set: the time has changed", seconds=round(moved, 3))

    # namespaces

    def of(self, namespace: str) -> NamespaceTime:
        """Return the timeline of a namespace. It has the broker's time until `part`."""
        if namespace not in self._namespaces:
            self._namespaces[namespace] = NamespaceTime(self)
        return self._namespaces[namespace]

    def check_every(self, seconds: float, check: Check) -> None:
        """Check topics every `seconds` of their own time.

        `check` takes the broker's timeline or a namespace's. It returns the check of all topics that follow it.
        """
        self._checks[self.every(seconds, check(self))] = check

    def part(self, line: NamespaceTime) -> None:
        """Give a namespace its own time, which goes on from the broker's. Its timers go along."""
        if line.follows(self):
            line._time = self._time.copy()
            line._time.take(self._time, line)
            deadlines = {timer: deadline for deadline, _, timer in self._time.periodic}
            for timer, check in self._checks.items():
                if timer in deadlines:  # a check without a period has run
                    line.repeat(deadlines[timer], timer.period, check(line))
            self._timelines = (*self._timelines, line)
            self._wake_up()

    def join(self, line: NamespaceTime) -> None:
        """Return a namespace to the broker's time. Its timers keep the time that they have left."""
        if not line.follows(self):
            self._timelines = tuple(each for each in self._timelines if each is not line)
            line.join(self._time)
            self._wake_up()

    def forget(self, namespace: str) -> None:
        """Forget a deleted namespace. What it leaves behind has the broker's time."""
        line = self._namespaces.pop(namespace, None)
        if line is not None:
            line.exists = False
            self.join(line)

    def forget_namespaces(self) -> None:
        """Forget all namespaces, because another state replaces the current one."""
        for namespace in list(self._namespaces):
            self.forget(namespace)


class NamespaceTime(SteeredTime):
    """The time of a namespace, which is the broker's until a lab steers it apart (`Clock.part`)."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock._time, clock._wake_up, clock._look_at_wall)
        self._trio = clock._trio
        self.machine = clock.machine
        self.exists = True  # until the namespace is deleted
        self.on_joined: Callable[[], None] = lambda: None
        self._lead = 0.0  # of the shared timer time: it never goes back
        self._checks: list[Timer] = []

    def monotonic(self) -> float:
        time = self._time
        return time.source() + time.ahead + self._lead

    def repeat(self, first: float, seconds: float, check: Callable[[], None]) -> None:
        """Run a periodic check of this namespace until `join`, the first time at a deadline."""
        self._checks.append(Timer(self, check, seconds))
        self._push(self._time.periodic, first, self._checks[-1])

    def join(self, shared: Time) -> None:
        """Have the time `shared`, and end the checks of this namespace."""
        for timer in self._checks:
            timer.cancel()
        self._checks.clear()
        own, self._time = self._time, shared
        self._lead += own.now() - shared.now()
        shared.take(own, self)
        self.on_joined()


def instant_text(ms: int) -> str:
    """Return `ms` since the epoch as Pulsar prints an instant in JSON."""
    cycles, seconds = divmod(ms // 1000, CYCLE)  # Python has no year after 9999, but clients send such times
    time = datetime.fromtimestamp(seconds, UTC)
    year = time.year + 400 * cycles
    return f"{'+' if year > 9999 else ''}{year:04}{time:-%m-%dT%H:%M:%S}.{ms % 1000:03}Z"
