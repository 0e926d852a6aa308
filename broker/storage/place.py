"""Guard the folder of a data directory: lock it for one process, watch its files, and keep room on its disk.

The system lets a process write to a deleted or moved file, and SQLite does not check: these writes would be lost with
the process. Some room is reserved for commits without messages, because deletions, acknowledgements and loads need room
in the log too. A bookie with an almost full disk likewise refuses entries, but reads and deletes (diskUsageThreshold).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from pulsarium.broker.storage.interface import StorageError

Identity = tuple[int, int]  # device and inode


class Place:
    """Remember open files by device and inode."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = {file: _identity(os.stat(file)) for file in files if file.exists()}
        self._newest = Path()

    def follow(self, newest: Path) -> None:
        """Remember the newest file of a log, instead of the one before."""
        self._files.pop(self._newest, None)
        self._newest = newest
        self._files[newest] = _identity(os.stat(newest))

    def problem(self) -> str:
        """Return what happened to the first missing or replaced file, or ""."""
        for file, known in self._files.items():
            try:
                if _identity(os.stat(file)) != known:
                    return f"{file} was replaced by another file"
            except (FileNotFoundError, NotADirectoryError):
                return f"{file} is gone"
            except OSError:  # an error of the look-up itself refuses nothing
                continue
        return ""


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


LOCK_NAME = "pulsarium.lock"


def lock_file(file: int | BinaryIO) -> None:
    """Lock an open file for this process, until the file is closed.

    Raise `BlockingIOError` when another process has the lock, and `OSError` on systems without locks (Windows).
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "this system has no file locks; use Linux, macOS or WSL") from None
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DirectoryLock:
    """A lock on a directory, held until `release` or the end of the process.

    The lock file stays, because deleting it would let two processes lock two different files of the same name.
    """

    def __init__(self, directory: Path) -> None:
        """Create and lock the directory.

        Raise `StorageError` when that fails, with the id of the process that has the lock.
        """
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
        """Release the lock. Later calls change nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


NO_ROOM = "The disk is almost full: the broker refuses messages until there is room; delete data, or enlarge the disk"
RESERVE_BYTES = 32 << 20  # for commits without messages, and their growth of the database
RESERVE_SHARE = 8  # on a small disk, at most this part


def is_short_of_room(directory: Path) -> bool:
    """Return whether the free room on the disk of a directory is below the reserve."""
    try:
        disk = shutil.disk_usage(directory)
    except OSError:  # an error of the look-up itself refuses nothing
        return False
    return disk.free < min(RESERVE_BYTES, disk.total // RESERVE_SHARE)
