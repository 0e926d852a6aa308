"""Create, open, sync and delete the files of the entry log: `entries-00000001.log` and so on."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path

ENTRY_LOGS = "entries-*.log*"
"""The files of the log, and copies of damaged ones, as a pattern."""

_NAME = re.compile(r"entries-(\d{8,})\.log")


def file_name(number: int) -> str:
    return f"entries-{number:08}.log"


class OpenFile:
    """An open file, closed when nothing refers to it any more. So a reader outlives the end of a writer."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


class LogFiles:
    """The files in one directory, even when another directory gets its name. All threads may use them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._at = OpenFile(os.open(directory, os.O_RDONLY))
        self._newest: tuple[int, OpenFile] | None = None

    @property
    def descriptor(self) -> int:
        """Return the descriptor of the directory."""
        return self._at.descriptor

    def numbers(self) -> list[int]:
        """Return the numbers of all files, in order."""
        found = (_NAME.fullmatch(name) for name in os.listdir(self._at.descriptor))
        return sorted(int(each[1]) for each in found if each and each[0] == file_name(int(each[1])))

    def path(self, number: int) -> Path:
        return self.directory / file_name(number)

    def create(self, number: int) -> OpenFile:
        """Create the newest file, which is kept open."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        file = OpenFile(os.open(file_name(number), flags, 0o644, dir_fd=self._at.descriptor))
        self._newest = number, file
        return file

    def open(self, number: int) -> OpenFile:
        """Open a file for reading, or to be synced. Raise `FileNotFoundError` when the file is gone."""
        newest = self._newest
        if newest is not None and newest[0] == number:
            return newest[1]
        return OpenFile(os.open(file_name(number), os.O_RDONLY, dir_fd=self._at.descriptor))

    def read(self, number: int) -> bytes:
        """Return all bytes of a file."""
        file = self.open(number)
        return os.pread(file.descriptor, os.fstat(file.descriptor).st_size, 0)

    def sync(self, first: int, last: int) -> None:
        """Sync the files `first` to `last` and their names. Another thread may append meanwhile."""
        for number in range(first, last + 1):
            with suppress(FileNotFoundError):
                sync(self.open(number))
        self.sync_names()

    def sync_beside(self, name: str) -> None:
        """Sync another file of the directory."""
        sync(OpenFile(os.open(name, os.O_RDONLY, dir_fd=self._at.descriptor)))

    def sync_names(self) -> None:
        sync(self._at)

    def remove(self, number: int) -> None:
        """Delete a file."""
        with suppress(FileNotFoundError):
            os.unlink(file_name(number), dir_fd=self._at.descriptor)

    def keep_copy(self, number: int) -> Path:
        """Copy a damaged file, and return the path of the copy."""
        path = self.path(number)
        kept = path.with_name(f"{path.name}.damaged")
        if not kept.exists():
            shutil.copyfile(path, kept)
        return kept


def sync(file: OpenFile) -> None:
    """Sync a file or a directory to the disk."""
    if sys.platform == "darwin":  # fsync syncs only to the cache of the drive there
        import fcntl

        fcntl.fcntl(file.descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file.descriptor)
