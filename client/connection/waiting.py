"""The waits between attempts, and the log of what a client waits for."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

import anyio

from pulsarium.client.errors import PulsarError

LONGEST = 500  # characters of somebody else's text in the log
AGAIN = 60.0  # seconds until the same is said once more

logger: logging.Logger = logging.getLogger(__name__)


def printable(text: object) -> str:
    """Return a text that others chose so that it neither forges a line of the log nor fills it."""
    words = str(text)
    words = words if len(words) <= LONGEST else f"{words[:LONGEST]}...({len(words)} characters)"
    return words if words.isprintable() else words.encode("unicode_escape").decode()


class Waiting:
    """Writes a warning for each reason, and none twice within a minute: however many producers and consumers wait."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def tell(self, reason: PulsarError) -> None:
        """Something is tried again because of this."""
        now = anyio.current_time()
        self._told = {text: at for text, at in self._told.items() if now - at < AGAIN}
        if self._told.setdefault(str(reason), now) == now:
            logger.warning("waiting for %s", printable(reason))


class Backoff:
    """The waits between attempts: each twice as long, less up to a tenth, so that clients do not all come at once."""

    def __init__(
        self, initial: float = 0.1, maximum: float = 60.0, jitter: Callable[[], float] = random.random
    ) -> None:
        """Take times in seconds; `jitter` gives numbers from 0 to 1, for up to a tenth less."""
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
        """Begin anew with the shortest wait."""
        self._next = self._initial

    def worked(self, seconds: float) -> None:
        """Begin anew after something stayed open for `seconds`.

        Less than the first wait is no success, but somebody answers: the next wait is at most sixteen first ones.
        """
        if seconds > self._initial:
            self.reset()
        self._next = min(self._next, 16 * self._initial)

    @property
    def is_first(self) -> bool:
        """Tell whether the next wait is the shortest."""
        return self._next == self._initial
