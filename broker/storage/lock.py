"""One process a data directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

from pulsarium.broker.storage.errors import StorageError

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
