"""Captures: every frame of all connections, as it passes; those that run, and the last of those that ended."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulsarium.broker.config.version import VERSION
from pulsarium.broker.lab.capture.store import File, Memory, Store
from pulsarium.broker.logs import Log
from pulsarium.capture.file import CaptureReader, CaptureWriter, Header, Record
from pulsarium.proto.commands import Direction

if TYPE_CHECKING:
    from pulsarium.broker.lab.lab import Lab
    from pulsarium.broker.lab.tap import SessionTap

log = Log("capture")

_PIECE = 1 << 20


class Capture:
    """Begins when it is made and ends with `stop`, or by itself when its file cannot be written any more.

    A connection that was open before has no OPENED in it: nobody knows what was said on it. Latencies are in real time
    (`monotonic_ns`), times of day are the broker's (`wall_ns`), which its lab may have frozen.
    """

    def __init__(self, lab: Lab, id: int, path: Path | None, header: Header, keep_entry: int | None) -> None:
        """Raises OSError if the file cannot be made."""
        self.id = id
        self.path = path
        """None: it is in memory, which keeps the newest of it."""
        self.header = header
        self.frames = 0
        """So far, with those that memory has let go."""
        self.records_written = 0
        """Frames, openings and closes: the number of the last one."""
        self.running = True
        self.reason = ""
        """Why it ended without being stopped."""
        self._lab = lab
        self._wall = lab.cluster.clock.wall
        self._store: Store = Memory() if path is None else File(path)
        self._writer = CaptureWriter(self._store.write, header, keep_entry=keep_entry)
        self._begun = False
        lab.observe(self)
        self._begun = True

    @property
    def dropped(self) -> int:
        """Records that memory has let go, the oldest."""
        return self._store.dropped

    @property
    def head(self) -> bytes:
        """What a capture begins with, before its records."""
        return self._store.head

    def stop(self) -> None:
        """Nothing more is captured; what was is in the file."""
        if not self.running:
            return
        self.running = False
        self._lab.forget(self)
        self._store.close()
        self.reason = self._store.trouble
        if self.reason:
            log.warning("a capture ended", capture=self.path, reason=self.reason, frames=self.frames)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def records(self) -> Iterator[Record]:
        """All that it holds now."""
        reader = CaptureReader()
        yield from reader.feed(self.head)
        after = 0
        while True:
            first, pieces = self.read(after)
            if not pieces:
                return
            after = first + len(pieces) - 1
            yield from reader.feed(b"".join(pieces))

    def read(self, after: int, most: int = _PIECE) -> tuple[int, list[bytes]]:
        """Some records behind the one of number `after`, as bytes, and the number of the first. OSError: the file
        cannot be read."""
        return self._store.read(after, most)

    # Observer

    def opened(self, tap: SessionTap) -> None:
        if self._begun:
            session, brokers = tap.session, self._lab.cluster.brokers
            several = {"broker": brokers.index(session.broker)} if len(brokers) > 1 else {}
            self._writer.opened(tap.number, *self._now(), peer=session.address.lstrip("/"), **several)
            self._written()

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        self.frames += 1
        if note:
            damaged = note.get("did") == "corrupted"  # its secrets are no longer where they are looked for
            self._writer.frame(tap.number, sender, *self._now(), data, damaged=damaged, **note)
        else:
            self._writer.frame(tap.number, sender, *self._now(), data)
        self._written()

    def closed(self, tap: SessionTap, sender: Direction, reason: str) -> None:
        self._writer.closed(tap.number, sender, *self._now(), reason)
        self._written()

    def _now(self) -> tuple[int, int]:
        return time.monotonic_ns(), int(self._wall() * 1e9)

    def _written(self) -> None:
        self.records_written += 1
        if self._store.trouble:
            self.stop()


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
