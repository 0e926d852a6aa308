"""Count how often the event loop goes round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Passes(trio.abc.Instrument):
    """Has the number of the pass that is under way; whatever is ready when one begins is done within it."""

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
