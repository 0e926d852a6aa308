"""Append commits to the entry log, and read back the commits that a process left there.

Each commit appends one record (`record.py`) to the newest file (`log_files.py`). A file of LOG_BYTES is followed by the
next one, and so is every file at a new start, because a killed process may leave a torn record at the end. Records have
consecutive numbers, and a file says the number of its first record. So no torn record and no missing file is
overlooked.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from pulsarium.broker.logs import Log
from pulsarium.broker.storage.interface import Durability
from pulsarium.broker.storage.log_files import LogFiles, OpenFile, sync
from pulsarium.broker.storage.record import (
    FILE_HEAD_BYTES,
    FileHead,
    Piece,
    Record,
    decode,
    encode,
    file_head,
    later_records,
    places,
)
from pulsarium.broker.storage.segments import Row

log = Log("storage")

LOG_BYTES = 64 << 20  # of a file; larger files give their room back later
LOG_SHARE = 64  # on a small disk, at most this part
MOST_PARTS = 512  # of one call of the system, which takes 1024

Written = tuple[int, Piece]
"""A row that is in the log, with its ledger id."""


class End(NamedTuple):
    """A place between two records."""

    file: int = 0
    offset: int = 0
    sequence: int = 0  # of the next record


class EntryLog:
    """The newest file of the log. One thread at a time appends to it."""

    def __init__(self, files: LogFiles, end: End, durability: Durability) -> None:
        """Continue the log at the record number of `end`, in a new file."""
        self.files = files
        self._syncs = durability == "fsync"
        self._limit = min(LOG_BYTES, shutil.disk_usage(files.directory).total // LOG_SHARE)
        self._file: OpenFile | None = None
        self._salt = 0
        self.end = End(max([end.file, *files.numbers()]), 0, end.sequence)

    @property
    def needs_file(self) -> bool:
        """Return whether the next record begins a file."""
        return self._file is None or self.end.offset >= self._limit

    def begin_file(self) -> None:
        """Create the next file. Raise `OSError` on failure, and change nothing."""
        number = self.end.file + 1
        file = self.files.create(number)
        salt = int.from_bytes(os.urandom(8), "little")
        _write(file, [FileHead(salt, self.end.sequence).encode()], 0)
        if self._syncs:
            self.files.sync_names()
        self._file, self._salt = file, salt
        self.end = End(number, FILE_HEAD_BYTES, self.end.sequence)

    def append(
        self,
        rows: Sequence[Row],
        metadata: Mapping[str, bytes | None],
        deleted_ledgers: Sequence[int],
        written: Callable[[], object],
    ) -> list[Written]:
        """Append one record, and return the places of its rows. `written` is called before the record is synced.

        Raise the error of the system, or of `written`. The log is then as it was before.
        """
        assert self._file is not None
        file, offset, sequence = self.end
        parts = encode(self._salt, sequence, rows, metadata, deleted_ledgers)
        try:
            end = _write(self._file, parts, offset)
            written()
            if self._syncs:
                sync(self._file)
        except BaseException:
            with suppress(OSError):  # else the next record overwrites this one
                os.ftruncate(self._file.descriptor, offset)
            raise
        self.end = End(file, end, sequence + 1)
        return places(file, offset, parts, rows)


def _write(file: OpenFile, parts: Sequence[bytes], offset: int) -> int:
    """Write `parts` at `offset`, and return the offset behind them."""
    for first in range(0, len(parts), MOST_PARTS):
        some = parts[first : first + MOST_PARTS]
        size = sum(map(len, some))
        if os.pwritev(file.descriptor, some, offset) != size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # a disk with room takes everything
        offset += size
    return offset


class Lost(NamedTuple):
    """Commits that cannot be restored, because a record before them is damaged or missing."""

    file: int
    commits: int


class Tail:
    """The records behind a place of the log. Reading them changes no file."""

    def __init__(self, files: LogFiles, applied: End) -> None:
        self._files = files
        self.end = applied
        self.lost: list[Lost] = []

    def records(self) -> Iterator[Record]:
        """Yield the records in order, up to the first that is damaged or missing. Afterwards, `lost` has the rest."""
        for number in self._files.numbers():
            if number >= self.end.file:
                yield from self._records(number)

    def _records(self, number: int) -> Iterator[Record]:
        data = self._files.read(number)
        head = file_head(data)
        if head is None:
            if any(data[FILE_HEAD_BYTES:]):  # else a process was killed when it created the file
                self.lost.append(Lost(number, 1))
            return
        continues = number == self.end.file and self.end.offset > 0
        offset = self.end.offset if continues else FILE_HEAD_BYTES
        if not self.lost and (continues or head.first_sequence == self.end.sequence):
            while (record := decode(data, offset, number, head.salt, self.end.sequence)) is not None:
                offset = record.end
                self.end = End(number, offset, self.end.sequence + 1)
                yield record
        commits = sum(1 for _ in later_records(data, offset, number, head.salt, self.end.sequence))
        if commits:
            self.lost.append(Lost(number, commits))

    def keep_lost(self) -> None:
        """Report the lost commits, and keep a copy of their files."""
        for number, commits in self.lost:
            log.error(
                "the entry log is damaged: commits are lost",
                commits=commits,
                file=self._files.path(number),
                kept_as=self._files.keep_copy(number),
            )
