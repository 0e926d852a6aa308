"""Progress of reading captures: each task writes to a file of its own, in a folder that the driver reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

_SECONDS = 0.5


class Progress:
    """Progress of reading these files, while `with progress.shown(tell)` calls `tell` with the percentage."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._total = sum(os.path.getsize(path) for path in paths)
        self._folder = TemporaryDirectory(prefix="pulsarium-analyze-")
        self.folder = self._folder.name
        """The folder, for `teller` in a task on this machine."""

    @property
    def percent(self) -> int:
        done = 0
        for path in Path(self.folder).iterdir():
            with suppress(ValueError):  # a file that is being written
                done += int(path.read_text())
        return 100 * done // self._total if self._total else 100

    @contextmanager
    def shown(self, tell: Callable[[int], None]) -> Iterator[None]:
        ended = Event()

        def show() -> None:
            while not ended.wait(_SECONDS):
                tell(self.percent)

        thread = Thread(target=show, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._folder.cleanup()


def teller(folder: str | None, number: int) -> Callable[[int], None]:
    """Return a function that notes how many bytes of the file with this number are read."""
    path = Path(folder or "", str(number))

    def tell(size: int) -> None:
        with suppress(OSError):  # the folder is gone, or on another machine
            path.write_text(str(size))

    return tell if folder else lambda size: None
