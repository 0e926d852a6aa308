"""Steering the broker's clock: it stands still, jumps, or runs ahead to whatever waits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsarium.broker.clock import Timeline, Timer
    from pulsarium.broker.cluster import Cluster


MOST_CHECKS: Final = 64  # times that a periodic check runs on one way
ROUNDING: Final = 1e-6  # seconds; a timer that fired too early by less would see a millisecond too few


class Advance:
    """Timers that run once do so each at its own time. Of the moments at which a periodic check is due, the last one
    counts before each of those, and before the end of each of MOST_CHECKS equal parts of the way."""

    def __init__(self, clock: Timeline, others: Sequence[Timeline], seconds: float) -> None:
        self._clock = clock
        self._others = others  # others may join or leave on the way
        self._left = seconds
        self._part = max(seconds / MOST_CHECKS, ROUNDING)
        self._left_after = max(0.0, seconds - self._part)  # this part

    @property
    def _lines(self) -> Sequence[Timeline]:
        return [self._clock, *self._others]

    def step(self) -> bool:
        """Run the next timer, at its time; False: the end is reached, and there was none before it."""
        while True:
            within = min(max(0.0, self._left - self._left_after), self._left)
            once = min(line.next_in(periodic=False) for line in self._lines)
            self._clock.skip_periods(min(once, within) + ROUNDING)
            for line in self._others:  # clients cannot answer meanwhile: once on the whole way
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


IDLE: Final = 0.05  # seconds without a turn, before time runs ahead by itself
LOOK: Final = 0.005  # seconds, how often that is looked at
YIELD: Final = 64  # timers between two chances for everybody else
END_OF_TIME: Final = 253_370_764_800  # year 9999, the last that can be written


class ClockError(ValueError):
    """What was asked of the clock cannot be; the text says why."""


class LabClock:
    """The clock of a cluster, for those who do not want to wait.

    Keep-alive and the expiry of credentials go with the machine's clock all the same, unless they are included.
    """

    def __init__(self, cluster: Cluster) -> None:
        clock = cluster.clock
        self._clock = clock
        self._turn = cluster.turn
        self._cache = cluster.cache
        self._apart: dict[str, Timeline] = {"keep-alive": clock.keep_alive, "token-expiry": clock.token_expiry}
        self._others: list[Timeline] = []  # of these, those that are included
        self._frozen = False
        self._moving = trio.Lock()
        self._looking: Timer | None = None
        self._advance: Advance | None = None  # that time goes now
        self._going = False  # because it was asked for; else by itself
        self._turns_seen = -1
        self._quiet_since = 0.0

    # how it stands

    @property
    def frozen(self) -> bool:
        """Whether time stands still."""
        return self._frozen

    def now_ms(self) -> int:
        """The broker's time, in milliseconds since the epoch."""
        return self._clock.now_ms()

    @property
    def offset_ms(self) -> int:
        """How far it is ahead of the machine's clock, in milliseconds; below 0: behind."""
        return round(self._clock.ahead_of(self._clock.machine) * 1000)

    @property
    def next_in(self) -> float | None:
        """Seconds until the next timer that runs once: what `run_next` goes to. None: nothing waits."""
        first = min(line.next_in(periodic=False) for line in self._lines)
        return None if first == math.inf else first

    @property
    def included(self) -> Sequence[str]:
        """What else obeys, by name."""
        return sorted(name for name, line in self._apart.items() if line in self._others)

    @property
    def _lines(self) -> list[Timeline]:
        return [self._clock, *self._others]

    # what obeys

    def include(self, *names: str) -> None:
        """Let "keep-alive" or "token-expiry" obey too. Its timers keep what they have left."""
        for name in self._known(names):
            line = self._apart[name]
            if line not in self._others:
                self._others.append(line)
            if self._clock.frozen:
                line.freeze()
            line.have_wall_of(self._clock)

    def exclude(self, *names: str) -> None:
        """Let it go with the machine's clock again."""
        for name in self._known(names):
            line = self._apart[name]
            if line in self._others:
                self._others.remove(line)
            line.resume()
            line.have_wall_of(self._clock.machine)

    def _known(self, names: Sequence[str]) -> Sequence[str]:
        for name in names:
            if name not in self._apart:
                raise ClockError(
                    f"{name!r} cannot be included in the clock; these can: {', '.join(sorted(self._apart))}"
                )
        return names

    # standing still

    def freeze(self) -> None:
        """Let time stand still; only `advance`, `run_next` and `auto_advance` move it."""
        self._frozen = True
        for line in self._lines:
            line.freeze()

    def resume(self) -> None:
        """Let time go on, from where it stands: it stays behind by as long as it stood."""
        self._frozen = False
        if not self._going:  # else who moves it does this at the end
            for line in self._lines:
                line.resume()

    def reset(self) -> None:
        """Have the machine's time again, and obey nobody; who advances it now gets no further. Timers keep what they
        have left."""
        self.auto_advance = self._going = False
        self._advance = None
        self.exclude(*self.included)
        self.resume()
        self._clock.have_wall_of(self._clock.machine)

    # moving

    async def advance(self, seconds: float) -> None:
        """Be later by exactly so much, and run what comes due on the way, in its order and each at its own time.

        After each the turn is finished, and what it stored is kept, before the next one runs. Periodic checks do not
        run at all the moments at which they are due (`Advance`). Who comes while another one advances waits. Raises
        ClockError.
        """
        if not 0 <= seconds < math.inf:
            raise ClockError(f"the clock cannot advance by {seconds:g} seconds: time goes forward, and not for ever")
        async with self._moving:
            await self._go(seconds)

    async def advance_to(self, time_ms: int) -> float:
        """Be at a time (milliseconds since the epoch), as `advance`; how many seconds that was. Raises ClockError."""
        async with self._moving:
            ago = self.now_ms() - time_ms
            if ago > 0:
                raise ClockError(f"the clock cannot go back: that was {ago / 1000:.3f} seconds ago")
            middle = time_ms / 1000 + 0.0005  # of that millisecond: no rounding leads out of it
            seconds = max(0.0, middle - self._clock.wall())
            await self._go(seconds)
            return seconds

    async def run_next(self) -> float:
        """Go on to the next timer that runs once, and run it, as `advance`; how many seconds that was.

        Raises ClockError when there is none.
        """
        async with self._moving:
            seconds = self.next_in
            if seconds is None:
                raise ClockError("nothing waits for a time: there is no timer to run")
            await self._go(seconds)
            return seconds

    async def _go(self, seconds: float) -> None:
        if self._is_too_far(seconds):
            raise ClockError(f"the clock cannot advance by {seconds:g} seconds: no year after 9999 can be written")
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
        """Wait until what was begun is kept, and delivered from disk. Not for what others begin meanwhile."""
        for _ in range(YIELD):
            kept = trio.Event()
            self._turn.after_commit(lambda error, kept=kept: kept.set())  # type: ignore[misc]
            self._turn.finish()
            await kept.wait()
            if self._cache.loading:
                await trio.sleep(LOOK / 10)
            elif self._settled:
                return

    # by itself

    @property
    def auto_advance(self) -> bool:
        """Whether time goes to the next timer that runs once by itself, when the broker has had nothing to do for
        IDLE seconds."""
        return self._looking is not None

    @auto_advance.setter
    def auto_advance(self, on: bool) -> None:
        if on and self._looking is None:
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
            self._turns_seen = -1  # from now on, somebody may want something

    def _is_idle(self) -> bool:
        now = trio.current_time()
        if self._turn.ended != self._turns_seen:
            self._turns_seen, self._quiet_since = self._turn.ended, now
        return now - self._quiet_since >= IDLE
