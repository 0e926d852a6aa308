"""Let the commit of published messages take a millisecond at least, as the bookies of a real broker do."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from pulsarium.broker.storage.interface import Done

MILLISECOND: Final = 0.001


class HeldCommits:
    """Commits that are stored, and whose results are told a millisecond after their messages came.

    So a client that waits for each receipt publishes no two messages in one millisecond. Receipts and dispatch wait
    alike, so their order stays. The results of all commits that are due are told together. No lab moves this time,
    because clients wait in real time.
    """

    def __init__(self) -> None:
        self.now = trio.current_time
        self._held: deque[tuple[float, Done, Exception | None]] = deque()
        self._pause = trio.CancelScope()  # until the first held result is due

    def holding(self, done: Done, came: float) -> Done:
        """Return the callback of a commit with messages that came at `came`, by `now`."""
        return partial(self._stored, done, came + MILLISECOND)

    def behind(self, done: Done) -> Done:
        """Return the callback of a commit without messages. Its result is not told before those of earlier commits."""
        return partial(self._stored, done, 0.0)

    def _stored(self, done: Done, until: float, error: Exception | None) -> None:
        if not self._held and until <= self.now():
            done(error)
            return
        self._held.append((until, done, error))
        self._pause.deadline = self._held[0][0]  # wakes nobody before that time

    async def run(self, together: Callable[[Callable[[], None]], None]) -> None:
        """Tell results when they are due, until canceled. `together` calls a function within one turn."""
        while True:
            self._pause = trio.CancelScope(deadline=self._held[0][0] if self._held else math.inf)
            with self._pause:
                await trio.sleep_forever()
            together(self._tell)

    def _tell(self) -> None:
        now = self.now()
        while self._held and self._held[0][0] <= now:
            _, done, error = self._held.popleft()
            done(error)
