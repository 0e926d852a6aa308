"""Limit the HTTP requests that a broker answers in a second (httpRequestsMaxPerSecond)."""

from __future__ import annotations

from pulsarium.broker.clock import Timeline

BURST = 1.0  # second: what was not asked in it may be asked at once


class RequestLimit:
    """A rate of requests; 0: any. As in Pulsar it begins without any saved up, and who comes too early is refused."""

    def __init__(self, clock: Timeline, per_second: float) -> None:
        self._clock = clock
        self._interval = 1 / per_second if per_second > 0 else 0.0
        self._next = clock.monotonic()  # when the next one may come; in the past, where some are saved up

    def admits(self) -> bool:
        """Count a request; whether it may be answered."""
        now = self._clock.monotonic()
        if self._interval and self._next > now:
            return False
        self._next = max(self._next, now - BURST) + self._interval
        return True
