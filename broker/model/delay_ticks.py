"""The common ticks of delayed delivery."""

from __future__ import annotations

from typing import Final

MICROSECONDS: Final = 1_000_000


class DelayTicks:
    """The common ticks at which all subscriptions of a cluster look for due delayed messages.

    Ticks are delayedDeliveryTickTimeMillis apart, counted from the first alarm. An alarm goes off at the first tick
    after its time, so a message may come up to a tick late. In Pulsar all subscriptions share one hashed wheel timer.
    """

    def __init__(self, tick_ms: int) -> None:
        self._tick_us = tick_ms * 1000
        self._begin: float | None = None

    @property
    def seconds(self) -> float:
        """Return the seconds between two ticks."""
        return self._tick_us / MICROSECONDS

    def after(self, now: float, seconds: float) -> float:
        """Return the time of an alarm set now for `seconds` later. Times are the clock's monotonic seconds."""
        if self._begin is None:
            self._begin = now
        passed_us = round((now + seconds - self._begin) * MICROSECONDS)
        ticks = passed_us // self._tick_us + 1
        return self._begin + ticks * self._tick_us / MICROSECONDS
