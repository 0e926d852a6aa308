"""Periodic work of all topics, in slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pulsarium.broker.clock import Timeline
from pulsarium.broker.net.slices import work_for_a_slice


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
