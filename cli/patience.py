"""Wait for a broker that does not answer yet, for as long as --wait says."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PAUSE: Final = 0.2  # seconds between two attempts


def attempt(job: Callable[[], None], seconds: float, again: type[Exception]) -> None:
    """Run `job` until it raises no error of the type `again`. Raise its last error after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        try:
            return job()
        except again:
            if time.monotonic() >= end:
                raise
        time.sleep(PAUSE)
