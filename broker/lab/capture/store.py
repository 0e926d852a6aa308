"""Store the records of a capture: the newest ones in memory, or all in a file that its own thread writes."""

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
"""Bytes that a capture in memory stores."""
FLUSH_SECONDS = 0.25  # the longest time that a record waits to be written together with others
ENOUGH = 1 << 20  # bytes that start a write at once
MOST_WAITING = 64 << 20  # bytes that may wait for the disk
PATIENCE = 0.4  # seconds; SIGTERM must end a broker within one second
_OVERHEAD = 64  # bytes of memory that a record takes beside its data
_PREFIX = 8  # bytes before a record: its size and its checksum


class Store(Protocol):
    """The records that `CaptureWriter` writes. The first write is the head; records behind it are numbered from 1."""

    head: bytes
    dropped: int
    """Number of the oldest records that were dropped."""
    trouble: str
    """Reason why no more records are stored, or ""."""

    def write(self, data: bytes) -> None: ...

    def read(self, after: int, most: int) -> tuple[int, list[bytes]]:
        """Return the number of the first stored record behind `after`, and records from there on.

        Return at least one record, and more up to `most` bytes. Raise `OSError` when the file cannot be read.
        """
        ...

    def close(self) -> None:
        """Accept no more records. Stored records can still be read."""
        ...


class Memory:
    """Store the newest records, up to `most` bytes."""

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
    """Write records to a file four times a second, in a thread of its own, so that the loop never waits for a disk.

    The file ends when it cannot be written: the disk is full, or slower than the records.
    """

    def __init__(self, path: Path) -> None:
        """Create the file. Raise `OSError` when the path cannot be written, or is another file than a capture."""
        self.head = b""
        self.dropped = 0
        self.trouble = ""
        self._path = path
        self._file = _opened(path)
        self._parts: list[bytes] = []  # not written yet
        self._size = 0  # bytes of `_parts`
        self._busy = False  # whether the thread is writing
        self._ended = False
        self._hurry = False  # whether `read` waits for the parts
        self._change = Condition()
        self._bookmark = (0, 0)  # the number of a record, and its end in the file
        self._thread = Thread(target=self._write_all, name=f"capture {path.name}", daemon=True)
        self._thread.start()

    def write(self, data: bytes) -> None:
        if self.trouble:
            return
        self.head = self.head or data
        with self._change:
            self._parts.append(data)
            self._size += len(data)
            if self._size - len(data) > MOST_WAITING:  # one frame alone may be as large
                self._fail("the disk is slower than the captured connections")
            elif len(self._parts) == 1 or self._size >= ENOUGH:
                self._change.notify_all()

    def read(self, after: int, most: int) -> tuple[int, list[bytes]]:
        self._flush()
        number, start = self._bookmark if 0 < self._bookmark[0] <= after else (0, len(self.head))
        found: list[bytes] = []
        with self._path.open("rb") as file:
            begin = file.read(len(self.head))
            if begin != self.head[: len(begin)]:
                raise OSError(errno.ESTALE, "another capture has replaced the file", str(self._path))
            file.seek(start)
            while len(prefix := file.read(_PREFIX)) == _PREFIX:
                size = int.from_bytes(prefix[:4], "big")
                if found and most < _PREFIX + size:
                    break
                body = file.read(size)
                if len(body) < size:
                    break  # a full disk cut the last record
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
        # Closing writes nothing, because the file is unbuffered.

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
    """Open an empty file. Raise `OSError` for a file that is no capture, or that another capture writes."""
    try:
        file = path.open("x+b", buffering=0)
    except FileExistsError:
        if not path.is_file():
            raise OSError(errno.EINVAL, "the path exists and is not a file", str(path)) from None
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
        raise BlockingIOError(errno.EWOULDBLOCK, "another capture writes this file", str(path)) from None
    begin = file.read(len(MAGIC)) or b""
    if begin != MAGIC[: len(begin)]:
        raise FileExistsError(errno.EEXIST, "the file exists and is not a capture", str(path))
    file.seek(0)
    file.truncate()


def _write(file: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
