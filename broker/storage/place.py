"""Guard the folder of a data directory: lock it for one process, watch its files, and keep room on its disk.

The system lets a process write to a deleted or moved file, and SQLite does not check: these writes would be lost with
the process. Some room is reserved for commits without messages, because deletions, acknowledgements and loads need room
in the log too. A bookie with an almost full disk likewise refuses entries, but reads and deletes (diskUsageThreshold).
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from pulsarium.broker.storage.interface import StorageError

Identity = tuple[int, int]  # device and inode


class OpenedFiles:
    """Remember open files of a directory by device and inode."""

    def __init__(self, directory: int, files: Sequence[Path]) -> None:
        """Remember files. `directory` is the descriptor of their directory."""
        self._files = {file: _identity(os.stat(file)) for file in files if file.exists()}
        self._newest = Path()
        self._directory = directory
        self._seen = self._changed()

    def follow(self, newest: Path) -> None:
        """Remember the newest file of a log, instead of the one before."""
        self._files.pop(self._newest, None)
        self._newest = newest
        self._files[newest] = _identity(os.stat(newest))
        self._seen = self._changed()

    def has_changed(self) -> bool:
        """Return whether a file of the directory was created, renamed or deleted since the last call.

        One question to the system answers for all files, so each commit can ask.
        """
        before, self._seen = self._seen, self._changed()
        return before != self._seen

    def _changed(self) -> tuple[int, int]:
        try:
            found = os.fstat(self._directory)
        except OSError:  # an error of the look-up itself refuses nothing
            return 0, 0
        return found.st_mtime_ns, found.st_ctime_ns

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


class UnwritableError(StorageError):
    """A data directory that this user cannot create, or cannot write."""


def permission_advice(path: Path) -> str:
    """Return the command that lets this user write a data directory, or a file in it.

    The command gives away no folder that may have anything else. Outside of a container, a mounted folder has another
    path.
    """
    path = path.absolute()
    there = next(each for each in (path, *path.parents) if os.path.exists(each))
    if there != path and not _is_empty(there):
        command, folder = "install -d -o", path
    else:
        command, folder = "chown -R", there if there.is_dir() else there.parent
    line = f"let this user write it: sudo {command} {os.getuid()} {shlex.quote(str(folder))}"
    mounts = (each for each in (folder, *folder.parents) if each.parent != each and os.path.ismount(each))
    mount = next(mounts, None)
    return line if mount is None else f"{line} (for a container: on the host, with the path that is mounted at {mount})"


def _is_empty(folder: Path) -> bool:
    try:
        return not os.listdir(folder)
    except OSError:
        return False


def _remedy(directory: Path, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"{permission_advice(directory)}; or name another directory"
    return "name a directory that this user can write"


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
        """Create and lock the directory. Only its owner may enter a new one: messages are nobody else's business.

        Raise `UnwritableError` when that fails, and `StorageError` when another process has the lock, with its id.
        """
        path = directory / LOCK_NAME
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UnwritableError(
                f"cannot use {directory} for data: {error.strerror}; {_remedy(directory, error)}"
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
