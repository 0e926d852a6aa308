"""Permits: how many messages the broker may still send."""

from __future__ import annotations


class Permits:
    """Room of a receive queue, given to the broker by halves; none while paused."""

    def __init__(self, size: int, *, paused: bool = False) -> None:
        """`size`: messages the queue may hold."""
        self._size = size
        self._freed = 0
        self._paused = paused

    def opened(self) -> int:
        """The consumer is open, with an empty queue: the permits of its first FLOW."""
        self._freed = self._size
        return self.rest()

    def free(self, count: int) -> int:
        """So many messages left the queue, or never entered it: the permits to send now, 0 while it is not worth it."""
        self._freed += count
        if self._freed < self._size // 2:
            return 0
        return self.rest()

    def rest(self) -> int:
        """All the room that the broker does not know of: permits to send now."""
        if self._paused:
            return 0
        freed, self._freed = self._freed, 0
        return freed

    def pause(self) -> None:
        """Give the broker no more."""
        self._paused = True

    def resume(self) -> int:
        """As before the pause: the permits to send now."""
        self._paused = False
        return self.free(0)


class OnDemand(Permits):
    """Permits without a queue: one for each call that waits for a message."""

    def __init__(self, *, paused: bool = False) -> None:
        super().__init__(0, paused=paused)
        self._waiting = 0
        self._held = 0  # permits the broker has, and messages that came of them and were not taken

    def wait(self) -> int:
        """A call waits from now on: the permits to send now."""
        self._waiting += 1
        return self.rest()

    def waited(self) -> None:
        """A call waits no longer. If it got nothing, the next one uses its permit."""
        self._waiting -= 1

    def opened(self) -> int:
        self._held = 0
        return self.rest()

    def free(self, count: int) -> int:
        self._held = max(0, self._held - count)
        return self.rest()

    def rest(self) -> int:
        if self._paused:
            return 0
        missing = max(0, self._waiting - self._held)
        self._held += missing
        return missing

    def resume(self) -> int:
        self._paused = False
        return self.rest()
