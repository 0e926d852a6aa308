"""Permits: how many messages the broker may still send."""

from __future__ import annotations


class Permits:
    """Room of a receive queue, given to the broker by halves."""

    def __init__(self, size: int) -> None:
        """`size`: messages the queue may hold."""
        self._size = size
        self._freed = 0

    def opened(self) -> int:
        """The consumer is open, with an empty queue: the permits of its first FLOW."""
        self._freed = 0
        return self._size

    def free(self, count: int) -> int:
        """So many messages left the queue, or never entered it: the permits to send now, 0 while it is not worth it."""
        self._freed += count
        if self._freed < max(1, self._size // 2):
            return 0
        freed, self._freed = self._freed, 0
        return freed
