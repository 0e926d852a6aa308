"""The machine's wall clock of a test, which can be set."""

from __future__ import annotations

import trio


class Wall:
    """Seconds since the epoch. They pass with trio's clock, and `ahead` jumps while the machine sleeps."""

    def __init__(self) -> None:
        self.ahead = 1_700_000_000.0

    def __call__(self) -> float:
        return trio.current_time() + self.ahead
