"""How much may pass in a time: tokens that come at a rate, and are taken for what passes."""

from __future__ import annotations

import math
from collections.abc import Callable

from pulsarium.broker.clock import Timeline

RESOLUTION = 0.016  # seconds between two looks at what came, as in Pulsar
SLACK = 1e-6  # seconds, or tokens, by which times that are added up may be short
SHORTEST_WAIT = 1e-3  # seconds


def nothing_more() -> float:
    """A rate that is what it says."""
    return 0.0


class TokenBucket:
    """`rate` tokens a `period` (seconds), and at most so many at once; it begins full.

    Who takes more than there are is let through, and leaves a debt. `more` is added to the rate as it is at each look.
    New tokens come at once for all the time since the last look, which is at least `resolution` (seconds) ago.
    """

    __slots__ = ("_clock", "_more", "_period", "_rate", "_resolution", "_rest", "_seen", "tokens")

    def __init__(
        self,
        clock: Timeline,
        rate: int,
        period: float = 1.0,
        resolution: float = RESOLUTION,
        more: Callable[[], float] = nothing_more,
    ) -> None:
        self._clock = clock
        self._rate = rate
        self._period = period
        self._resolution = resolution
        self._more = more
        self._seen = clock.monotonic()
        self._rest = 0.0  # seconds of before, which were not enough for one more token
        self.tokens = self.rate

    @property
    def rate(self) -> int:
        """Tokens a period as of now. Never none: clients say how many messages an entry has, at times less than 0."""
        return max(1, self._rate + int(self._more()))

    def take(self, count: int) -> None:
        """Something passed."""
        self._look()
        self.tokens -= count

    def available(self) -> int:
        """How many tokens there are now; 0 or less: none."""
        self._look()
        return self.tokens

    def _look(self) -> None:
        now, rate = self._clock.monotonic(), self.rate
        passed = now - self._seen
        if passed + SLACK < self._step(rate):
            return
        came = math.floor((passed + self._rest) * rate / self._period + SLACK)
        self._seen = now
        self._rest += passed - came * self._period / rate
        self.tokens = min(self.tokens + came, rate)

    def _step(self, rate: int) -> float:
        """How long after a look the next one can find something."""
        return max(self._resolution, self._period / rate - self._rest)

    def seconds_until(self, count: int) -> float:
        """How long until there are so many tokens, if nobody takes any; 0: there are."""
        missing = min(count, self.rate) - self.available()
        if missing <= 0:
            return 0.0
        rate, passed = self.rate, self._clock.monotonic() - self._seen
        return max(SHORTEST_WAIT, max(self._step(rate), missing * self._period / rate - self._rest) - passed)
