"""Notice that the files of a store are no longer where they were opened.

A system lets a process go on writing into a file that was deleted or moved away, and SQLite does not look: it would all
be lost with the process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

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
