"""The ticks at which a broker looks for delayed messages whose time has come (B-21)."""

from __future__ import annotations

MICROSECONDS = 1_000_000


class DelayTicks:
    """One row of ticks for all subscriptions of a cluster, delayedDeliveryTickTimeMillis of broker.conf apart.

    The first alarm begins the row; each alarm goes off at the first tick after its time. Pulsar does so because its
    subscriptions share one hashed wheel timer: a message may come up to a tick late.
    """

    def __init__(self, tick_ms: int) -> None:
        self._tick_us = tick_ms * 1000
        self._begin: float | None = None

    def after(self, now: float, seconds: float) -> float:
        """Return when an alarm goes off that is set now, for so many seconds later. Times are the clock's monotonic."""
        if self._begin is None:
            self._begin = now
        passed_us = round((now + seconds - self._begin) * MICROSECONDS)
        ticks = passed_us // self._tick_us + 1
        return self._begin + ticks * self._tick_us / MICROSECONDS
