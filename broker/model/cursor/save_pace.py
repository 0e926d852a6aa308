"""Spread the saves of a cursor with a large record: the cost of a save grows with the ranges that the cursor has."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.storage.interface import Done

BYTE_SECONDS = 200e-9  # of pause for each byte of a record, which takes up to 80 ns
SMALL_SECONDS = 1e-3  # a shorter pause saves nothing


class SavePace:
    """The pause after each save of one cursor, and the clients that wait for the next save.

    All of them get their answers with one save. Without the pause, each acknowledgement would encode all ranges.
    """

    def __init__(self, stores: Stores) -> None:
        self._turn = stores.turn
        self._clock = stores.clock.machine  # a test that stops the broker's clock still gets its answers
        self._free_at = 0.0
        self._timer: Timer | None = None
        self._waiting: list[Done] = []

    @property
    def is_waiting(self) -> bool:
        """Return whether a save is put off."""
        return self._timer is not None

    def pause(self) -> float:
        """Return the seconds until the next save may be made."""
        return max(0.0, self._free_at - self._clock.monotonic())

    def put_off(self, save: Callable[[], None]) -> bool:
        """Return False when a save may be made now. Else call `save` after the pause."""
        if self._timer is None:
            pause = self.pause()
            if not pause:
                return False
            self._timer = self._clock.call_later(pause, save)
        return True

    def after_save(self, done: Done) -> None:
        """Call `done` when everything that is acknowledged now is stored, or has failed."""
        if self._timer is None:
            self._turn.after_commit(done)
        else:
            self._waiting.append(done)

    def saving(self) -> None:
        """Let those that wait have the result of this turn's commit."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            self._turn.after_commit(done)

    def wrote(self, size: int) -> None:
        """Begin the pause after a record of `size` bytes."""
        pause = size * BYTE_SECONDS
        if pause > SMALL_SECONDS:
            self._free_at = self._clock.monotonic() + pause
