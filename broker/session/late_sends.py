"""SENDs that crossed the broker's CLOSE_PRODUCER: the client will send them again (cmd 6)."""

from __future__ import annotations

import math

from pulsarium.broker.clock import Timeline

RECENT = 1_000  # producers that are remembered


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
