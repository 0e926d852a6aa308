"""The way from now to a later time, timer by timer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsarium.broker.clock import Timeline

MOST_CHECKS: Final = 64  # times that a periodic check runs on one way
ROUNDING: Final = 1e-6  # seconds; a timer that fired too early by less would see a millisecond too few


class Way:
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
