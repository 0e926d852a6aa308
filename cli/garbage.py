"""The garbage collection of a command's process."""

from __future__ import annotations

import gc
from typing import Final

GARBAGE_THRESHOLDS: Final = (20_000, 20, 50)


def collect_seldom() -> None:
    """Collect garbage less often than Python's default does. Call it before the imports, which it makes faster.

    Modules stay, and messages are many short-lived tuples without cycles. So the collections find as much garbage in a
    fraction of the time.
    """
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def keep_what_is_there() -> None:
    """Let no collection look again at what the start has made, because it lasts as long as the process.

    A full collection of a broker without topics took 25 ms, nearly all of it for modules.
    """
    gc.freeze()
