"""The captures of a lab: those that run, and the last of those that ended."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from pulsarium.broker.config.version import VERSION
from pulsarium.broker.lab.capture.capture import Capture
from pulsarium.capture.file import Header

if TYPE_CHECKING:
    from pulsarium.broker.lab.lab import Lab

ENDED_KEPT = 8  # of them: a capture in memory is asked for once it has ended


class Captures:
    """Starts them, and finds them again."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._ids = itertools.count(1)
        self._all: dict[int, Capture] = {}

    def start(self, path: Path | None = None, *, keep_entry: int | None = None) -> Capture:
        """Capture every frame from now on; without a path in memory, which keeps the newest 64 MB.

        `keep_entry`: how many bytes of each message with its metadata are kept; None: all of them. An earlier capture
        at `path` is written over. OSError: the file cannot be made; BlockingIOError: another capture writes to it.
        """
        cluster = self._lab.cluster
        header = Header(int(cluster.clock.wall() * 1e9), f"Pulsarium {VERSION}", cluster.profile.name)
        capture = Capture(self._lab, next(self._ids), path, header, keep_entry)
        self._all[capture.id] = capture
        for old in [each for each in self.all if not each.running][:-ENDED_KEPT]:
            self.forget(old)
        return capture

    @property
    def all(self) -> list[Capture]:
        """Those that run and the last that ended, in the order in which they began."""
        return list(self._all.values())

    @property
    def running(self) -> list[Capture]:
        return [each for each in self.all if each.running]

    def find(self, id: int) -> Capture | None:
        return self._all.get(id)

    def forget(self, capture: Capture) -> None:
        """Stop it, and let go of what memory has of it; a file stays."""
        capture.stop()
        self._all.pop(capture.id, None)

    def stop(self) -> None:
        """All of them."""
        for each in self.running:
            each.stop()
