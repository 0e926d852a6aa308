"""The waits between attempts, and the log of the reasons for waiting."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

import anyio

from pulsarium.client.errors import PulsarError
from pulsarium.proto.text import printable

LONGEST = 500  # most characters of another's text in the log
AGAIN = 60.0  # seconds until the same reason is logged again

logger: logging.Logger = logging.getLogger(__name__)


def shortened(text: object) -> str:
    """Return another's text shortened and escaped, so that it can neither forge a line of the log nor fill it."""
    words = str(text)
    words = words if len(words) <= LONGEST else f"{words[:LONGEST]}...({len(words)} characters)"
    return printable(words)


class WaitingLog:
    """A log of the reasons for waiting: one warning a minute for each reason, for all producers and consumers."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def tell(self, reason: PulsarError) -> None:
        """Log the reason of a repeated attempt."""
        now = anyio.current_time()
        self._told = {text: at for text, at in self._told.items() if now - at < AGAIN}
        if self._told.setdefault(str(reason), now) == now:
            logger.warning("trying again: %s", shortened(reason))


class Backoff:
    """The waits between attempts.

    Each is twice as long as the last, less up to a tenth at random, to spread the clients.
    """

    def __init__(
        self, initial: float = 0.1, maximum: float = 60.0, jitter: Callable[[], float] = random.random
    ) -> None:
        """Take times in seconds. `jitter` returns numbers from 0 to 1, for up to a tenth less."""
        self._initial = initial
        self._maximum = maximum
        self._jitter = jitter
        self._next = initial

    def next(self) -> float:
        """Return the seconds to wait now."""
        delay = self._next
        self._next = min(self._next * 2, self._maximum)
        return delay * (1 - self._jitter() / 10)

    def reset(self) -> None:
        """Begin again with the shortest wait."""
        self._next = self._initial

    def worked(self, seconds: float) -> None:
        """Begin again after something stayed open for `seconds`.

        If this is shorter than the first wait, the next wait is only limited to sixteen times the first one.
        """
        if seconds > self._initial:
            self.reset()
        self._next = min(self._next, 16 * self._initial)

    @property
    def is_first(self) -> bool:
        """Return whether the next wait is the shortest."""
        return self._next == self._initial
