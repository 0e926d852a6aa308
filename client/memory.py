"""The memory that messages without a receipt may take, of all producers of a client together."""

from __future__ import annotations

from collections import deque

import anyio


class MemoryLimit:
    """Counts bytes; who asks for more than are left waits, first come, first served.

    As in other Pulsar clients one message may go beyond the limit: it is enough that something is left.
    """

    def __init__(self, limit: int = 0) -> None:
        """`limit` in bytes, 0: none."""
        self.limit = limit
        self.used: int = 0
        self._waiting: deque[tuple[int, anyio.Event]] = deque()

    def acquire_nowait(self, size: int) -> bool:
        """Take so many bytes, if that is possible at once."""
        if self.limit and size and (self._waiting or self.used >= self.limit):
            return False
        self.used += size
        return True

    async def acquire(self, size: int) -> None:
        """Take so many bytes, as soon as they are there; cancelled, nothing is taken."""
        if self.acquire_nowait(size):
            return
        turn = size, anyio.Event()
        self._waiting.append(turn)
        try:
            await turn[1].wait()
        except BaseException:
            if turn[1].is_set():
                self.release(size)
            else:
                self._waiting.remove(turn)
                self._admit()
            raise

    def release(self, size: int) -> None:
        """Give so many bytes back."""
        self.used -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.used < self.limit:
            size, turn = self._waiting.popleft()
            self.used += size
            turn.set()
