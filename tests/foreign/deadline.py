"""Polling for state that another process shows only on request. These tests poll nowhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T | None], *, what: str, seconds: float = 50.0, every: float = 0.02) -> T:
    """Call `check` until it returns a true value, and return that value. Raise `AssertionError` after `seconds`."""
    never = threading.Event()
    end = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"not within {seconds:g} s: {what} (last answer: {answer!r})")
        never.wait(every)
