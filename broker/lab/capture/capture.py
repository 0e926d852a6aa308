"""One capture: every frame of all connections, as it passes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
