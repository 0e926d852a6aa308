"""Captures of all frames on all connections: the running ones, and the last ones that ended."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pulsarium.broker.config.version import VERSION
from pulsarium.broker.lab.acts import Undo, acts_of
from pulsarium.broker.lab.capture.store import File, Memory, Store
from pulsarium.broker.lab.tap import SessionTap, Taps
from pulsarium.broker.logs import PartLog
from pulsarium.capture.file import CaptureReader, CaptureRecord, CaptureWriter, Header
from pulsarium.proto.commands import Direction

log = PartLog("capture")

_PIECE = 1 << 20


class Capture:
    """Capture frames from now to `stop`, or until the file can no longer be written.

    A connection that was open before has no OPENED record, because its earlier frames are unknown. Latencies are in
    real time (`monotonic_ns`). Times of day are those of the broker (`wall_ns`), whose clock may be frozen.
    """

    def __init__(
        self, taps: Taps, id: int, path: Path | None, header: Header, keep_entry: int | None, *, as_sent: bool = False
    ) -> None:
        """Start a capture. Raise `OSError` when the file cannot be created."""
        self.id = id
        self.path = path
        """The file, or None for memory, which keeps the newest records."""
        self.header = header
        self.frames = 0
        """Number of frames so far, with those that memory has dropped."""
        self.records_written = 0
        """Number of frames, openings and closes so far, which is the number of the last record."""
        self.running = True
        self.reason = ""
        """Reason why the capture ended by itself, or ""."""
        self._taps = taps
        self._wall = taps.cluster.clock.wall
        self._as_sent = as_sent
        self._store: Store = Memory() if path is None else File(path)
        self._writer = CaptureWriter(self._store.write, header, keep_entry=keep_entry)
        self._begun = False
        taps.observe(self)
        self._begun = True

    @property
    def dropped(self) -> int:
        """Return how many of the oldest records memory has dropped."""
        return self._store.dropped

    @property
    def head(self) -> bytes:
        """Return the beginning of the capture file, before its records."""
        return self._store.head

    def stop(self) -> None:
        """End the capture. Its records can still be read."""
        if not self.running:
            return
        self.running = False
        acts_of(self._taps.cluster).note(f"stopped capture {self.id}", hits=lambda: self.frames)
        self._taps.forget(self)
        self._store.close()
        self.reason = self._store.trouble
        if self.reason:
            log.warning("a capture ended early", capture=self.path, reason=self.reason, frames=self.frames)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def records(self) -> Iterator[CaptureRecord]:
        """Yield all records that the capture has now."""
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
        """Return some records behind number `after`, as bytes, and the number of the first one.

        Raise `OSError` when the file cannot be read.
        """
        return self._store.read(after, most)

    # Observer

    def opened(self, tap: SessionTap) -> None:
        if self._begun:
            session, brokers = tap.session, self._taps.cluster.brokers
            several = {"broker": brokers.index(session.broker)} if len(brokers) > 1 else {}
            self._writer.opened(tap.number, *self._now(), peer=session.address.lstrip("/"), **several)
            self._written()

    def frame(self, tap: SessionTap, sender: Direction, data: bytes, note: Mapping[str, Any]) -> None:
        self.frames += 1
        now_ns, wall_ns = self._now()
        if self._as_sent and sender is Direction.BROKER:
            now_ns = tap.sent_ns
        if note:
            damaged = note.get("did") == "corrupted"  # credentials may be at other places than usual
            self._writer.frame(tap.number, sender, now_ns, wall_ns, data, damaged=damaged, **note)
        else:
            self._writer.frame(tap.number, sender, now_ns, wall_ns, data)
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


ENDED_KEPT = 8  # ended captures whose records can still be read


class Captures:
    """Start captures, and find them by id."""

    def __init__(self, taps: Taps) -> None:
        self._taps = taps
        self._ids = itertools.count(1)
        self._all: dict[int, Capture] = {}

    def start(self, path: Path | None = None, *, keep_entry: int | None = None, as_sent: bool = False) -> Capture:
        """Capture every frame from now on, to a file, or in memory, which keeps the newest 64 MB.

        `keep_entry` bounds the bytes of each message, with its metadata, that are stored. None stores all. `as_sent`
        gives a delayed frame the `monotonic_ns` at which the broker sent the frame, before the delay. An earlier
        capture at `path` is overwritten. Raise `OSError` when the file cannot be created, and `BlockingIOError` when
        another capture writes to it.
        """
        cluster = self._taps.cluster
        header = Header(int(cluster.clock.wall() * 1e9), f"Pulsarium {VERSION}", cluster.profile.name)
        capture = Capture(self._taps, next(self._ids), path, header, keep_entry, as_sent=as_sent)
        self._all[capture.id] = capture
        where = "in memory" if path is None else f"to {path.name}"
        undo = Undo("POST", f"/lab/captures/{capture.id}/stop", lambda: capture.running)
        acts_of(cluster).note(f"started capture {capture.id} {where}", undo=undo, hits=lambda: capture.frames)
        for old in [each for each in self.all if not each.running][:-ENDED_KEPT]:
            self.forget(old)
        return capture

    @property
    def all(self) -> list[Capture]:
        """Return the running captures, and the last ones that ended, in order of their start."""
        return list(self._all.values())

    @property
    def running(self) -> list[Capture]:
        return [each for each in self.all if each.running]

    def find(self, id: int) -> Capture | None:
        return self._all.get(id)

    def forget(self, capture: Capture) -> None:
        """End a capture, and delete its records from memory. A file stays."""
        capture.stop()
        self._all.pop(capture.id, None)

    def stop(self) -> None:
        """End all captures."""
        for each in self.running:
            each.stop()
