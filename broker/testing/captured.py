"""Captures as linters and checkers of tests use them, of a broker in this process or in another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pulsarium.capture.file import CaptureRecord


class StartedCapture(Protocol):
    """A capture that runs, or has ended."""

    def stop(self) -> None:
        """End the capture, which can still be read."""
        ...

    def records(self) -> Sequence[CaptureRecord]:
        """Return all records that the capture has now."""
        ...


class StartsCaptures(Protocol):
    """The captures of a broker."""

    def start(self) -> StartedCapture:
        """Capture every frame from now on, in memory."""
        ...
