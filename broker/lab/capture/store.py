"""Where a capture's records are kept: in memory, the newest of them, or in a file that a thread of its own writes."""

from __future__ import annotations

import contextlib
import errno
from collections import deque
from itertools import islice
from pathlib import Path
from threading import Condition, Thread
from typing import BinaryIO, Protocol

from pulsarium.broker.storage.place import lock_file
from pulsarium.capture.file import MAGIC

MEMORY = 64 << 20
"""Bytes that a capture in memory holds."""
FLUSH_SECONDS = 0.25  # a record waits at most so long for others to be written with it
ENOUGH = 1 << 20  # bytes that are written at once
MOST_WAITING = 64 << 20  # bytes that wait for a disk
PATIENCE = 0.4  # seconds; SIGTERM is to end a broker within one
_OVERHEAD = 64  # bytes that a record costs beside its own
_PREFIX = 8  # of a record: its size, its checksum


class Store(Protocol):
    """Records as `CaptureWriter` writes them; the first write is the head, numbers count from 1 what comes after it."""

    head: bytes
    dropped: int
    """Records that were let go, the oldest."""
    trouble: str
    """Why nothing more is kept; empty while something is."""

    def write(self, data: bytes) -> None: ...

    def read(self, after: int, most: int) -> tuple[int, list[bytes]]:
        """The number of the first record behind `after` that is still there, and records from it on: one, and more up
        to `most` bytes. OSError: the file cannot be read."""
        ...

    def close(self) -> None:
        """Nothing more will be written; what was can still be read."""
        ...


class Memory:
    """The newest records, up to `most` bytes of them."""

    def __init__(self, most: int = MEMORY) -> None:
        self.head = b""
        self.dropped = 0
        self.trouble = ""
        self._most = most
        self._size = 0
        self._records: deque[bytes] = deque()

    def write(self, data: bytes) -> None:
        if not self.head:
            self.head = data
            return
        self._records.append(data)
        self._size += len(data) + _OVERHEAD
        while self._size > self._most and self._records:
            self._size -= len(self._records.popleft()) + _OVERHEAD
            self.dropped += 1

    def read(self, after: int, most: int) -> tuple[int, list[bytes]]:
        skipped = max(after - self.dropped, 0)
        found: list[bytes] = []
        for record in islice(self._records, skipped, None):
            if found and most < len(record):
                break
            found.append(record)
            most -= len(record)
        return self.dropped + skipped + 1, found

    def close(self) -> None:
        pass


class File:
    """A file that is written in turns of a quarter of a second: the loop never waits for a disk.

    What cannot be written ends it: a disk that is full, or one that is slower than what comes.
    """

    def __init__(self, path: Path) -> None:
        """OSError: the file cannot be written, or is one that should not be."""
        self.head = b""
        self.dropped = 0
        self.trouble = ""
        self._path = path
        self._file = _opened(path)
        self._parts: list[bytes] = []  # that wait
        self._size = 0  # of them
        self._busy = False  # some are being written
        self._ended = False
        self._hurry = False  # somebody waits for what waits
        self._change = Condition()
        self._bookmark = (0, 0)  # a record's number, and where it ends
        self._thread = Thread(target=self._write_all, name=f"capture {path.name}", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        if self.trouble:
            return
        self.head = self.head or data
        with self._change:
            self._parts.append(data)
            self._size += len(data)
            if self._size - len(data) > MOST_WAITING:  # one frame may be as big
                self._fail("the disk is slower than what is captured")
            elif len(self._parts) == 1 or self._size >= ENOUGH:
                self._change.notify_all()

    def read(self, after: int, most: int) -> tuple[int, list[bytes]]:
        self._flush()
        number, start = self._bookmark if 0 < self._bookmark[0] <= after else (0, len(self.head))
        found: list[bytes] = []
        with self._path.open("rb") as file:
            begin = file.read(len(self.head))
            if begin != self.head[: len(begin)]:
                raise OSError(errno.ESTALE, "it is another capture by now", str(self._path))
            file.seek(start)
            while len(prefix := file.read(_PREFIX)) == _PREFIX:
                size = int.from_bytes(prefix[:4], "big")
                if found and most < _PREFIX + size:
                    break
                body = file.read(size)
                if len(body) < size:
                    break  # the last one of a full disk
                number, start = number + 1, start + _PREFIX + size
                if number > after:
                    found.append(prefix + body)
                    most -= _PREFIX + size
        self._bookmark = (number, start)
        return number - len(found) + 1, found

    def close(self) -> None:
        with self._change:
            self._ended = True
            self._change.notify_all()
        self._thread.join(PATIENCE)

    def _flush(self) -> None:
        with self._change:
            self._hurry = True
            self._change.notify_all()
            self._change.wait_for(lambda: self.trouble or not (self._parts or self._busy), PATIENCE)
            self._hurry = False

    def _write_all(self) -> None:
        with contextlib.closing(self._file):
            while not (self._ended and not self._parts) and not self.trouble:
                self._write_what_waits()
        # A close that cannot write what is left has failed in `_write_what_waits` before.

    def _write_what_waits(self) -> None:
        with self._change:
            self._change.wait_for(lambda: self._parts or self._ended)
            self._change.wait_for(lambda: self._size >= ENOUGH or self._hurry or self._ended, FLUSH_SECONDS)
            parts, self._parts, self._size, self._busy = self._parts, [], 0, True
        reason = ""
        try:
            _write(self._file, b"".join(parts))
        except OSError as error:
            reason = error.strerror or str(error)
        with self._change:
            self._busy = False
            if reason:
                self._fail(reason)
            self._change.notify_all()

    def _fail(self, reason: str) -> None:
        self.trouble = self.trouble or reason
        self._parts, self._size = [], 0
        self._change.notify_all()


def _opened(path: Path) -> BinaryIO:
    """An empty file; whatever is no capture stays as it is, and so does one that is being written."""
    try:
        file = path.open("x+b", buffering=0)
    except FileExistsError:
        if not path.is_file():
            raise OSError(errno.EINVAL, "it is there and no file", str(path)) from None
        file = path.open("r+b", buffering=0)
    try:
        _take(file, path)
    except OSError:
        file.close()
        raise
    return file


def _take(file: BinaryIO, path: Path) -> None:
    try:
        lock_file(file)
    except BlockingIOError:
        raise BlockingIOError(errno.EWOULDBLOCK, "a capture is being written there", str(path)) from None
    begin = file.read(len(MAGIC)) or b""
    if begin != MAGIC[: len(begin)]:
        raise FileExistsError(errno.EEXIST, "it is there and no capture", str(path))
    file.seek(0)
    file.truncate()


def _write(file: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
