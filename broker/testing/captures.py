"""Captures, for tests that run in another thread than the broker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pulsarium.broker.lab.capture import Capture, Captures
from pulsarium.broker.server import RunningCluster
from pulsarium.broker.testing.thread import LoopThread
from pulsarium.capture.file import Record

Thread = LoopThread[RunningCluster]


class BrokerCapture:
    """A capture that was started. Leaving its `with` block ends it; it can still be read."""

    def __init__(self, thread: Thread, capture: Capture) -> None:
        self._thread = thread
        self._capture = capture

    @property
    def id(self) -> int:
        """As REST and the command line name it."""
        return self._capture.id

    @property
    def path(self) -> Path | None:
        """None: it is in memory."""
        return self._capture.path

    @property
    def frames(self) -> int:
        """So far."""
        return self._capture.frames

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._capture.running

    def records(self) -> Sequence[Record]:
        """All that it holds now: frames, and where connections begin and end."""
        return self._thread.call(lambda: list(self._capture.records()))

    def stop(self) -> None:
        """Capture nothing more; what was captured is in the file."""
        self._thread.call(self._capture.stop)

    def __enter__(self) -> BrokerCapture:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class BrokerCaptures:
    """The captures of a broker.

    with broker.captures.start("lost.capture"):
        ...
    """

    def __init__(self, thread: Thread, captures: Captures) -> None:
        self._thread = thread
        self._captures = captures

    def start(self, path: str | Path | None = None, *, keep_entry: int | None = None) -> BrokerCapture:
        """Capture every frame from now on, to a file, or in memory, which keeps the newest of it.

        `keep_entry`: so many bytes of each message; None: all. Raises OSError.
        """
        where = None if path is None else Path(path)
        return BrokerCapture(self._thread, self._thread.call(self._captures.start, where, keep_entry=keep_entry))

    @property
    def running(self) -> Sequence[BrokerCapture]:
        """Those that were not stopped."""
        return [BrokerCapture(self._thread, each) for each in self._thread.call(lambda: self._captures.running)]
