"""Log what a client waits for while it tries again."""

from __future__ import annotations

import logging

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
