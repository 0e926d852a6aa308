"""Steer a timeline: freeze it, advance it, or run it ahead to the next timer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import trio

from pulsarium.broker.clock import SteeredTime, Timeline, Timer
from pulsarium.broker.cluster import Cluster
from pulsarium.broker.lab.acts import LabActs, Undo

MOST_CHECKS: Final = 64  # times that a periodic check runs during one advance
ROUNDING: Final = 1e-6  # seconds, added so that no timer fires before its millisecond


class Advance:
    """Advance the clock timer by timer.

    Timers that run once fire at their own times. A periodic check does not run at each of its times: it runs once
    before each of those timers, and once at the end of each of MOST_CHECKS equal parts of the advance.
    """

    def __init__(self, clock: Timeline, others: Sequence[Timeline], seconds: float) -> None:
        self._clock = clock
        self._others = others  # include() and exclude() may change this list during the advance
        self._left = seconds
        self._part = max(seconds / MOST_CHECKS, ROUNDING)
        self._left_after = max(0.0, seconds - self._part)  # at the end of this part

    @property
    def _lines(self) -> Sequence[Timeline]:
        return [self._clock, *self._others]

    def step(self) -> bool:
        """Run the next timer at its time. Return False when the end is reached without another timer."""
        while True:
            within = min(max(0.0, self._left - self._left_after), self._left)
            once = min(line.next_in(periodic=False) for line in self._lines)
            self._clock.skip_periods(min(once, within) + ROUNDING)
            for line in self._others:  # clients cannot answer during an advance: run these checks once in all
                line.skip_periods(self._left + ROUNDING)
            first = min(self._lines, key=lambda line: line.next_in())
            if (seconds := first.next_in()) <= within + ROUNDING:
                self._jump(seconds + ROUNDING if seconds else 0.0)
                first.fire_first()
                return True
            self._jump(within)
            if not self._left:
                return False
            self._left_after = max(0.0, self._left - self._part)

    def _jump(self, seconds: float) -> None:
        for line in self._lines:
            line.jump(seconds)
        self._left = max(0.0, self._left - seconds)


IDLE: Final = 0.05  # seconds without a turn before auto-advance goes on
LOOK: Final = 0.005  # seconds between two looks of auto-advance
YIELD: Final = 64  # timers after which other tasks may run
END_OF_TIME: Final = 253_370_764_800  # seconds since the epoch: year 9999, the last that ISO 8601 can write


class ClockError(ValueError):
    """A request that the clock cannot fulfill. The text says why."""


class Steered:
    """A timeline that tests can steer instead of waiting."""

    query = ""
    """The query of REST calls on this clock."""

    def __init__(self, cluster: Cluster, clock: SteeredTime, acts: LabActs | None = None) -> None:
        self._clock = clock
        self._acts = acts
        self._turn = cluster.turn
        self._cache = cluster.cache
        self._others: list[Timeline] = []  # timelines that move along
        self._frozen = False
        self._moving = trio.Lock()
        self._looking: Timer | None = None
        self._advance: Advance | None = None  # the running one
        self._going = False  # whether a caller started the advance, and not auto-advance
        self._turns_seen = -1
        self._quiet_since = 0.0

    def _begin(self) -> None:
        """Prepare the timeline for a call that steers it."""

    def _note(self, what: str, command: str, undo: Undo | None = None) -> None:
        """Note an act on the clock. `command` is what `pulsarium clock` calls it."""
        if self._acts is not None:
            self._acts.note(what, command_line=f"pulsarium clock {command}", undo=undo)

    def _undo(self, how: str, possible: Callable[[], bool]) -> Undo:
        return Undo("POST", f"/lab/clock/{how}{self.query}", possible)

    # reading

    @property
    def frozen(self) -> bool:
        """Return whether the clock is frozen."""
        return self._frozen

    def now_ms(self) -> int:
        """Return the clock's time, in milliseconds since the epoch."""
        return self._clock.now_ms()

    @property
    def offset_ms(self) -> int:
        """Return how far the clock is ahead of the machine's clock, in milliseconds. Below 0, the clock is behind."""
        return round(self._clock.ahead_of(self._clock.machine) * 1000)

    @property
    def next_in(self) -> float | None:
        """Return the seconds until the next timer that runs once, or None when no timer waits.

        `run_next` goes there.
        """
        first = min(line.next_in(periodic=False) for line in self._lines)
        return None if first == math.inf else first

    @property
    def _lines(self) -> list[Timeline]:
        return [self._clock, *self._others]

    # freezing

    def freeze(self) -> None:
        """Freeze the clock. Only `advance`, `run_next` and `auto_advance` move a frozen clock."""
        self._begin()
        if not self._frozen:
            self._note("froze the clock", "freeze", self._undo("resume", lambda: self.frozen))
        self._frozen = True
        for line in self._lines:
            line.freeze()

    def resume(self) -> None:
        """Let the clock run again from the time that it shows.

        The clock stays behind by the time that it was frozen.
        """
        self._note("let the clock run", "resume", self._undo("freeze", lambda: not self.frozen))
        self._run()

    def _run(self) -> None:
        self._begin()
        self._frozen = False
        if not self._going:  # a running advance resumes the clock at its end
            for line in self._lines:
                line.resume()

    def reset(self) -> None:
        """Return to the time before the first call. A running advance ends where it is.

        Timers keep the time that they have left.
        """
        self.auto_advance = self._going = False
        self._advance = None

    # moving

    async def advance(self, seconds: float) -> None:
        """Advance the clock by exactly `seconds`, and run the timers that become due, each at its own time.

        After each timer the turn is finished and its writes are committed. Periodic checks do not run at every time at
        which they are due (see `Advance`). A second call waits for the first one. Raise `ClockError` when `seconds` is
        negative, not finite, or leads beyond the year 9999.
        """
        if not 0 <= seconds < math.inf:
            raise ClockError(f"the clock cannot advance by {seconds:g} seconds: pass a finite number, 0 or more")
        async with self._moving:
            self._begin()
            self._note_advance(seconds)
            await self._go(seconds)

    def _note_advance(self, seconds: float) -> None:
        what, undo = f"advanced the clock by {seconds:g} s", self._undo("reset", lambda: bool(self.offset_ms))
        self._note(what, f"advance {seconds:g}s", undo)

    async def advance_to(self, time_ms: int) -> float:
        """Advance the clock to `time_ms`, in milliseconds since the epoch, and return by how many seconds.

        Raise `ClockError` when that time has passed.
        """
        async with self._moving:
            self._begin()
            ago = self.now_ms() - time_ms
            if ago > 0:
                raise ClockError(f"the clock cannot go back: that was {ago / 1000:.3f} seconds ago")
            middle = time_ms / 1000 + 0.0005  # in seconds: the middle of the millisecond, which no rounding leaves
            seconds = max(0.0, middle - self._clock.wall())
            self._note_advance(round(seconds, 3))
            await self._go(seconds)
            return seconds

    async def run_next(self) -> float:
        """Advance the clock to the next timer that runs once, run the timer, and return by how many seconds.

        Raise `ClockError` when no timer waits.
        """
        async with self._moving:
            self._begin()
            seconds = self.next_in
            if seconds is None:
                raise ClockError("the clock has no timer to run: no timer waits")
            self._note_advance(round(seconds, 3))
            await self._go(seconds)
            return seconds

    async def _go(self, seconds: float) -> None:
        if self._is_too_far(seconds):
            raise ClockError(f"the clock cannot advance by {seconds:g} seconds: the year 9999 is the last one")
        stood, self._going = self._frozen, True
        for line in self._lines:
            line.freeze()
        advance = self._advance = Advance(self._clock, self._others, seconds)
        try:
            count = 0
            while self._advance is advance and advance.step():
                count += 1
                self._turn.finish()
                if not self._settled:
                    await self._settle()
                elif count % YIELD == 0:
                    await trio.lowlevel.checkpoint()
        finally:
            if self._advance is advance:
                self._advance, self._going = None, False
                if not self._frozen:
                    for line in self._lines:
                        line.resume(catch_up=not stood)
        await trio.lowlevel.checkpoint()

    def _is_too_far(self, seconds: float) -> bool:
        return self._clock.wall() + seconds > END_OF_TIME

    @property
    def _settled(self) -> bool:
        return self._turn.is_settled and not self._cache.loading

    async def _settle(self) -> None:
        """Wait until all begun writes are committed and entries are read from disk.

        Writes begun meanwhile do not count.
        """
        for _ in range(YIELD):
            kept = trio.Event()
            self._turn.after_commit(lambda error, kept=kept: kept.set())  # type: ignore[misc]
            self._turn.finish()
            await kept.wait()
            if self._cache.loading:
                await trio.sleep(LOOK / 10)
            elif self._settled:
                return

    # auto-advance

    @property
    def auto_advance(self) -> bool:
        """Return whether an idle broker goes to its next timer by itself.

        A broker is idle when no turn has run for IDLE seconds. Only timers that run once count.
        """
        return self._looking is not None

    @auto_advance.setter
    def auto_advance(self, on: bool) -> None:
        if on and self._looking is None:
            self._begin()
            self._note("let the clock advance by itself when the broker is idle", "auto-advance on")
            self._looking = self._clock.machine.every(LOOK, self._look)
        elif not on and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            if not self._going:
                self._advance = None

    def _look(self) -> None:
        if self._moving.locked() or not self._settled:
            return
        if self._advance is None and self._is_idle() and (seconds := self.next_in) is not None:
            if self._is_too_far(seconds):
                return
            self._advance = Advance(self._clock, self._others, seconds)
        while self._advance is not None and self._settled:
            if not self._advance.step():
                self._advance = None
            self._turn.finish()
            self._turns_seen = -1  # the timer may have caused work: be idle for IDLE seconds again

    def _is_idle(self) -> bool:
        now = trio.current_time()
        if self._turn.ended != self._turns_seen:
            self._turns_seen, self._quiet_since = self._turn.ended, now
        return now - self._quiet_since >= IDLE
