"""Ask whether the other side still answers: keep-alive (W-12), the check before an owner is evicted (B-01), and whether
it may not have read CLOSE_PRODUCER yet, so that it will send SENDs that crossed it again (cmd 6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from pulsarium.broker.clock import Timeline, Timer

RECENT = 1_000  # producers that are remembered


class Watched(Protocol):
    """The connection that is watched."""

    def ping(self, *, unasked: bool) -> bool:
        """Send PING if the client takes it; whether it was sent."""
        ...

    @property
    def paused(self) -> bool:
        """Whether the broker does not read it now: its PONG may wait unread."""
        ...

    def close(self, reason: str) -> None: ...


class Liveness:
    """Pings a silent connection and closes a dead one.

    A connection that shows no life for two intervals is closed; until CONNECT, for one. One that is not read from
    meanwhile only gets another PING, as in Pulsar.
    """

    def __init__(self, watched: Watched, clock: Timeline, interval: float, check_timeout_ms: int) -> None:
        self.connected = False
        self._watched = watched
        self._clock = clock
        self._check_timeout = check_timeout_ms / 1000
        self._waits_for_pong = False
        self._timer = clock.every(interval, self._tick) if interval > 0 else None
        self._checks: list[Callable[[bool], None]] = []
        self._check_timer: Timer | None = None

    def heard(self) -> None:
        """Bytes came in."""
        self._waits_for_pong = False
        if self._checks:
            self._answer(True)

    def _tick(self) -> None:
        if not self.connected:
            self._watched.close("no CONNECT within keepAliveIntervalSeconds")
        elif self._waits_for_pong and not self._watched.paused:
            self._watched.close("no answer to PING within keepAliveIntervalSeconds")
        else:
            self._waits_for_pong = self._watched.ping(unasked=True)

    def check(self, answered: Callable[[bool], None]) -> None:
        """Ask for a sign of life: True at the next bytes, False after the connection was closed for its silence."""
        if self._check_timeout <= 0:
            answered(True)
            return
        self._checks.append(answered)
        if self._check_timer is None:
            self._watched.ping(unasked=False)
            self._check_timer = self._clock.call_later(self._check_timeout, self._give_up)

    def _give_up(self) -> None:
        self._check_timer = None
        self._watched.close("no answer to PING within connectionLivenessCheckTimeoutMillis")

    def _answer(self, alive: bool) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
            self._check_timer = None
        checks, self._checks = self._checks, []
        for answered in checks:
            answered(alive)

    def stop(self) -> None:
        """The connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
        self._answer(False)


class LateSends:
    """Which producers of a connection were closed by the broker, and until when their SENDs are dropped."""

    def __init__(self, clock: Timeline, patience: float) -> None:
        """`patience`: seconds in which a client has read what it was told; 0: it may never."""
        self._clock = clock
        self._patience = patience if patience > 0 else math.inf
        self._until: dict[int, float] = {}

    def closed(self, producer_id: int) -> None:
        """The client is told now."""
        if len(self._until) >= RECENT:
            self._until.pop(next(iter(self._until)))
        self._until[producer_id] = self._clock.monotonic() + self._patience

    def are_dropped(self, producer_id: int) -> bool:
        """Whether the client may not have read it yet."""
        return self._clock.monotonic() < self._until.get(producer_id, -math.inf)
