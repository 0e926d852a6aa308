"""The folder of a data directory: one process has it, its files stay where they were opened, and the disk has room.

A system lets a process go on writing into a file that was deleted or moved away, and SQLite does not look: it would all
be lost with the process. Of the room a little is kept for what is not a message, as a bookie that is almost full takes
no entries but goes on reading and deleting (diskUsageThreshold): deleting topics, acknowledging and loading a topic are
commits too, and need room for the log.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from pulsarium.broker.storage.interface import StorageError

Identity = tuple[int, int]  # device and inode


class Place:
    """Remembers open files by device and inode."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = {file: _identity(os.stat(file)) for file in files if file.exists()}

    def problem(self) -> str:
        """Return what became of the first file that is not there; empty when all are there."""
        for file, known in self._files.items():
            try:
                if _identity(os.stat(file)) != known:
                    return f"{file} is another file than the one that this broker writes"
            except (FileNotFoundError, NotADirectoryError):
                return f"{file} is gone"
            except OSError:  # no answer is no reason to refuse anything
                continue
        return ""


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


LOCK_NAME = "pulsarium.lock"


def lock_file(file: int | BinaryIO) -> None:
    """Lock an open file for this process, until the file is closed.

    Raises BlockingIOError when another process has the lock, and OSError where there are no locks (Windows).
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "this system has no file locks; use Linux, macOS or WSL") from None
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DirectoryLock:
    """Held from creation to `release`, or to the end of the process however it comes.

    The file stays behind on purpose: removing it would let two processes lock two different files of that name.
    """

    def __init__(self, directory: Path) -> None:
        """Make the directory and lock it. Raises StorageError when it cannot, naming the process that holds it."""
        path = directory / LOCK_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(
                f"cannot use {directory} for data: {error.strerror}; name a directory that this user can write"
            ) from error
        try:
            lock_file(self._file)
        except OSError as error:
            holder = os.read(self._file, 20).decode(errors="replace").strip()
            self.release()
            if not isinstance(error, BlockingIOError):
                raise StorageError(f"cannot lock {path}: {error.strerror}") from error
            raise StorageError(f"{directory} is in use by another pulsarium (pid {holder or 'unknown'})") from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others have the directory. May be called again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


NO_ROOM = "The disk is almost full: no message is taken until there is room"
RESERVE_BYTES = 32 << 20  # a log, what a checkpoint adds to the database, and as much again
RESERVE_SHARE = 8  # of a small disk no more than this part


class Room:
    """The disk of a database file. Of the thread that has `connection`."""

    def __init__(self, connection: sqlite3.Connection, path: Path, page_size: int) -> None:
        self._connection = connection
        self._path = path
        self._page_size = page_size

    def is_short(self) -> bool:
        """Whether the reserve is touched. Pages of the database that are free are room, too, while the log has them."""
        try:
            disk = shutil.disk_usage(self._path.parent)
            pages, unused = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _COUNTS)
            to_grow = max(0, pages * self._page_size - _size(self._path))  # still in the log alone
        except (OSError, sqlite3.Error):  # no answer is no reason to refuse anything
            return False
        room = disk.free - to_grow
        again = min(unused * self._page_size, _size(self._path.with_name(f"{self._path.name}-wal")))
        reserve = min(RESERVE_BYTES, disk.total // RESERVE_SHARE)
        return bool(room + again < reserve)


_COUNTS = ("page_count", "freelist_count")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
