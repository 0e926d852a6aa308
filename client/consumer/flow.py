"""Count permits: the messages that the broker may still send."""

from __future__ import annotations


class Permits:
    """Permits for the room of a queue. They are sent for half of the queue at a time, and not during a pause."""

    def __init__(self, size: int, *, paused: bool = False) -> None:
        """Count permits for a queue of `size` messages."""
        self._size = size
        self._freed = 0
        self._paused = paused

    def opened(self) -> int:
        """Return the permits of the first FLOW, for an empty queue."""
        self._freed = self._size
        return self.rest()

    def free(self, count: int) -> int:
        """Return the permits to send now, after `count` messages have left the queue, or were discarded."""
        self._freed += count
        if self._freed < self._size // 2:
            return 0
        return self.rest()

    def rest(self) -> int:
        """Return the permits that the broker lacks for the room of the queue."""
        if self._paused:
            return 0
        freed, self._freed = self._freed, 0
        return freed

    def widen(self, size: int) -> int:
        """Return the permits to send now that the queue has room for `size` messages, which is more than before."""
        added, self._size = size - self._size, size
        return self.free(added)

    def pause(self) -> None:
        """Return no more permits until `resume`."""
        self._paused = True

    def resume(self) -> int:
        """Return the permits to send at the end of a pause."""
        self._paused = False
        return self.free(0)


class OnDemand(Permits):
    """Permits without a queue: one for each call that waits for a message."""

    def __init__(self, *, paused: bool = False) -> None:
        super().__init__(0, paused=paused)
        self._waiting = 0
        self._held = 0  # permits that the broker has, and messages that came for them and were not taken

    def wait(self) -> int:
        """Count a call that waits, and return the permits to send now."""
        self._waiting += 1
        return self.rest()

    def waited(self) -> None:
        """Count a call that has ended. If it got no message, the next call uses its permit."""
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
