"""Check whether the client is alive, by keep-alive and before an owner is evicted.

Also remember recently closed producers: SENDs that cross CLOSE_PRODUCER on the wire are dropped. And challenge the
client for new credentials when the old ones expire, or close the connection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from pulsarium.broker.auth.login import Login, Stale
from pulsarium.broker.clock import Timeline, Timer

RECENT = 1_000  # most closed producers that are remembered


class KeptAlive(Protocol):
    """A connection under keep-alive."""

    def ping(self, *, unasked: bool) -> bool:
        """Send PING if the client takes it, and return whether it was sent."""
        ...

    @property
    def paused(self) -> bool:
        """Return whether the broker reads nothing now, so that a PONG may wait unread."""
        ...

    def close(self, reason: str) -> None: ...


class Liveness:
    """Ping a silent connection and close a dead one.

    A connection is closed after two silent intervals, before CONNECT after one. A connection that the broker does not
    read meanwhile only gets another PING, as in Pulsar.
    """

    def __init__(self, watched: KeptAlive, clock: Timeline, interval: float, check_timeout_ms: int) -> None:
        self.connected = False
        self._watched = watched
        self._clock = clock
        self._check_timeout = check_timeout_ms / 1000
        self._waits_for_pong = False
        self._timer = clock.every(interval, self._tick) if interval > 0 else None
        self._checks: list[Callable[[bool], None]] = []
        self._check_timer: Timer | None = None

    def heard(self) -> None:
        """Note a sign of life: bytes arrived."""
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
        """Ask for a sign of life.

        `answered` gets True at the next bytes, or False after the silent connection was closed.
        """
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
        """Stop the timers, because the connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
        self._answer(False)


class LateSends:
    """Producers that the broker closed, and the time until which their SENDs are dropped."""

    def __init__(self, clock: Timeline, patience: float) -> None:
        """Set `patience`, the seconds after which a client must have read CLOSE_PRODUCER. 0 is no limit."""
        self._clock = clock
        self._patience = patience if patience > 0 else math.inf
        self._until: dict[int, float] = {}

    def closed(self, producer_id: int) -> None:
        """Note that the client is told now."""
        if len(self._until) >= RECENT:
            self._until.pop(next(iter(self._until)))
        self._until[producer_id] = self._clock.monotonic() + self._patience

    def are_dropped(self, producer_id: int) -> bool:
        """Return whether the client may still send for this producer, because it has not read CLOSE_PRODUCER."""
        return self._clock.monotonic() < self._until.get(producer_id, -math.inf)


class Challenged(Protocol):
    """A connection that can be challenged."""

    def challenge(self) -> None:
        """Send AUTH_CHALLENGE."""
        ...

    def close(self, reason: str) -> None: ...


class Refresh:
    """Check a connection's credentials every authenticationRefreshCheckSeconds."""

    def __init__(self, connection: Challenged, login: Login, clock: Timeline, interval: float) -> None:
        self._connection = connection
        self._login = login
        self._timer = clock.every(interval, self._tick)

    def _tick(self) -> None:
        try:
            ended = self._login.check()
        except Stale as stale:
            self._connection.close(str(stale))
            return
        if ended:
            self._connection.challenge()

    def stop(self) -> None:
        """Stop the timer, because the connection is closed."""
        self._timer.cancel()
