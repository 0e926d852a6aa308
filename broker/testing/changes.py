"""Waiting until the broker's state is as a test expects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from pulsarium.broker.turn import Turn


class Expectation(Protocol):
    """Something that a test says of the broker."""

    def decided(self) -> bool:
        """Whether waiting longer changes nothing: it is met, or never will be."""
        ...

    def problem(self) -> str | None:
        """What is not as expected, or None."""
        ...


class Changes:
    """Wakes those who wait, each time that anything may have changed: at the end of a turn."""

    def __init__(self, turn: Turn) -> None:
        self._changed: trio.Event | None = None
        turn.every_turn(self._turn_ended)

    def _turn_ended(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until it is so."""
        while not reached():
            if self._changed is None:
                self._changed = trio.Event()
            await self._changed.wait()

    async def problem(self, expectation: Expectation, patience: float) -> str | None:
        """What is still not as expected after `patience` seconds; None as soon as all is."""
        with trio.move_on_after(patience):
            await self.until(expectation.decided)
        return expectation.problem()
