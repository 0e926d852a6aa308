"""Long work in slices: everybody else has a turn between two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import trio
from trio.lowlevel import checkpoint

from pulsarium.broker.clock import Clock

SLICE = 0.005  # seconds of work


class Slice:
    """For work that may wait: `pause` after each step."""

    def __init__(self) -> None:
        self._until = perf_counter() + SLICE

    @property
    def is_over(self) -> bool:
        """Whether it is time for others."""
        return perf_counter() >= self._until

    async def pause(self) -> None:
        """Let the rest of the broker have its turn, if it is time. What was there may be gone afterwards."""
        if self.is_over:
            await checkpoint()
            self._until = perf_counter() + SLICE


def work_for_a_slice(steps: Iterator[None]) -> bool:
    """Go through steps until a slice's time is used up; return whether steps may be left."""
    until = perf_counter() + SLICE
    return any(perf_counter() >= until for _ in steps)


class Door:
    """For what comes in masses, such as new connections: one after the other goes through, and the rest of the broker
    has its turn between two of them. Who comes alone does not wait.
    """

    def __init__(self) -> None:
        self._queue = trio.Lock()
        self._slice = Slice()

    async def enter(self) -> None:
        """Wait until it is the caller's turn."""
        if self._queue.locked() or self._slice.is_over:
            async with self._queue:
                await self._slice.pause()


class Rounds:
    """What `Clock.every` calls: each time it goes through `steps`. A round that takes longer than until the next one
    takes its place."""

    def __init__(self, clock: Clock, steps: Callable[[], Iterator[None]]) -> None:
        self._clock = clock
        self._steps = steps
        self._left: Iterator[None] | None = None  # of the round that is under way

    def __call__(self) -> None:
        if self._left is None:
            self._left = self._steps()
            self._go_on()

    def _go_on(self) -> None:
        left, self._left = self._left, None  # a step that fails ends the round
        assert left is not None
        if work_for_a_slice(left):
            self._left = left
            self._clock.call_later(0, self._go_on)  # of the clock that began it: who steers it waits for all
