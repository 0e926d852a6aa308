"""The one clock of a broker: wall time for what is stored and shown, timers for what waits."""

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


class Timer:
    """A callback that will run once, unless `cancel` comes first."""

    __slots__ = ("callback", "deadline")

    def __init__(self, deadline: float, callback: Callable[[], None]) -> None:
        self.deadline = deadline
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """Wall and timer time, both derived from trio's clock, so that a test which steers that one steers everything.

    Must be created inside a trio run.
    """

    def __init__(self) -> None:
        self._wall_offset = time.time() - trio.current_time()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._wakeup = trio.Event()

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int((trio.current_time() + self._wall_offset) * 1000)

    def monotonic(self) -> float:
        """Seconds, only good for differences."""
        return trio.current_time()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the event loop, `seconds` from now."""
        timer = Timer(trio.current_time() + seconds, callback)
        heapq.heappush(self._timers, (timer.deadline, next(self._order), timer))
        if self._timers[0][2] is timer:
            self._wakeup.set()
        return timer

    def every(self, seconds: float, callback: Callable[[], None]) -> None:
        """Run `callback` again and again, the first time `seconds` from now, for as long as the clock runs."""

        def again() -> None:
            self.call_later(seconds, again)
            callback()

        self.call_later(seconds, again)

    async def run(self) -> None:
        """Fire timers until cancelled."""
        while True:
            self._wakeup = trio.Event()
            deadline = self._timers[0][0] if self._timers else math.inf
            with trio.move_on_at(deadline):
                await self._wakeup.wait()
            self._fire_due()

    def _fire_due(self) -> None:
        now = trio.current_time()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                try:
                    timer.callback()
                except Exception as error:  # one timer's fault must not stop the others
                    log.error("timer failed", exception=error)


def instant_text(ms: int) -> str:
    """`ms` since the epoch, as Pulsar writes an instant in JSON."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
