"""Divide long work into slices, so that other work runs between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import trio
from trio.lowlevel import checkpoint

from pulsarium.broker.clock import Timeline

SLICE = 0.005  # seconds of work


class Slice:
    """A slice of work in async code, which calls `pause` after each step."""

    def __init__(self) -> None:
        self._until = perf_counter() + SLICE

    @property
    def is_over(self) -> bool:
        """Return whether the slice's time is used up."""
        return perf_counter() >= self._until

    async def pause(self) -> None:
        """Let other work run when the slice is over. State may have changed afterwards."""
        if self.is_over:
            await checkpoint()
            self._until = perf_counter() + SLICE


def work_for_a_slice(steps: Iterator[None]) -> bool:
    """Go through steps until a slice's time is used up; return whether steps may be left."""
    until = perf_counter() + SLICE
    return any(perf_counter() >= until for _ in steps)


class Door:
    """A queue for events that come in masses, such as new connections: they enter one by one, with other work between.

    A single event does not wait.
    """

    def __init__(self) -> None:
        self._queue = trio.Lock()
        self._slice = Slice()

    async def enter(self) -> None:
        """Wait until the caller may enter."""
        if self._queue.locked() or self._slice.is_over:
            async with self._queue:
                await self._slice.pause()


class Rounds:
    """A callback for `Timeline.every` that goes through `steps` each time, in slices.

    A round that lasts longer than the period replaces the next round.
    """

    def __init__(self, clock: Timeline, steps: Callable[[], Iterator[None]]) -> None:
        self._clock = clock
        self._steps = steps
        self._left: Iterator[None] | None = None  # rest of the current round

    def __call__(self) -> None:
        if self._left is None:
            self._left = self._steps()
            self._go_on()

    def _go_on(self) -> None:
        left, self._left = self._left, None  # an error in a step ends the round
        assert left is not None
        if work_for_a_slice(left):
            self._left = left
            self._clock.call_later(
                0, self._go_on
            )  # on the same clock, so that a lab that steers it waits for all steps
