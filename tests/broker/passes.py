"""Count the passes of trio's event loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Passes(trio.abc.Instrument):
    """The number of the current pass. A task that is ready when a pass begins runs within this pass."""

    number = 0

    def after_io_wait(self, timeout: float) -> None:
        self.number += 1


@contextmanager
def passes_of_the_loop() -> Iterator[Passes]:
    passes = Passes()
    trio.lowlevel.add_instrument(passes)
    try:
        yield passes
    finally:
        trio.lowlevel.remove_instrument(passes)
