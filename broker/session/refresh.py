"""Credentials that end: the client is challenged for new ones, or the connection is closed."""

from __future__ import annotations

from typing import Protocol

from pulsarium.broker.auth.login import Login, Stale
from pulsarium.broker.clock import Timeline


class Challenged(Protocol):
    """The connection."""

    def challenge(self) -> None:
        """Send AUTH_CHALLENGE."""
        ...

    def close(self, reason: str) -> None: ...


class Refresh:
    """Looks at a connection every authenticationRefreshCheckSeconds."""

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
        """The connection is closed."""
        self._timer.cancel()
