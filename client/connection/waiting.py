"""Log what a client waits for while it tries again."""

from __future__ import annotations

import logging

import anyio

from pulsarium.client.errors import PulsarError

AGAIN = 60.0  # seconds until the same is said once more

logger: logging.Logger = logging.getLogger(__name__)


class Waiting:
    """Writes a warning for each reason, and none twice within a minute: however many producers and consumers wait."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def tell(self, reason: PulsarError) -> None:
        """Something is tried again because of this."""
        now = anyio.current_time()
        self._told = {text: at for text, at in self._told.items() if now - at < AGAIN}
        if self._told.setdefault(str(reason), now) == now:
            logger.warning("waiting for %s", reason)
