"""Challenge the client for new credentials when the old ones expire, or close the connection."""

from __future__ import annotations

from typing import Protocol

from pulsarium.broker.auth.login import Login, Stale
from pulsarium.broker.clock import Timeline


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
