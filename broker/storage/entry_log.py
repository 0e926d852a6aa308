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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from pulsarium.broker.config.options import Durability
from pulsarium.broker.logs import PartLog
from pulsarium.broker.storage.log_files import LogFiles, OpenFile, sync
from pulsarium.broker.storage.record import (
    FILE_HEAD_BYTES,
    FileHead,
    LogRecord,
    Rest,
    RowPlace,
    decode,
    encode,
    file_head,
    places,
    rest_of,
)
from pulsarium.broker.storage.segments import Row

log = PartLog("storage")

LOG_BYTES = 64 << 20  # of a file; larger files give their room back later
LOG_SHARE = 64  # on a small disk, at most this part
MOST_PARTS = 512  # of one call of the system, which takes 1024

Written = tuple[int, RowPlace]
"""A row that is in the log, with its ledger id."""


class RecordEnd(NamedTuple):
    """A place between two records."""

    file: int = 0
    offset: int = 0
    sequence: int = 0  # of the next record


class EntryLog:
    """The newest file of the log. One thread at a time appends to it."""

    def __init__(self, files: LogFiles, end: RecordEnd, durability: Durability, newest: int = 0) -> None:
        """Continue the log at the record number of `end`, in a new file behind file `newest`, which may be missing."""
        self.files = files
        self._syncs = durability == "fsync"
        self._limit = min(LOG_BYTES, shutil.disk_usage(files.directory).total // LOG_SHARE)
        self._file: OpenFile | None = None
        self._salt = 0
        self.end = RecordEnd(max([end.file, newest, *files.numbers()]), 0, end.sequence)

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
        self.end = RecordEnd(number, FILE_HEAD_BYTES, self.end.sequence)

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
        self.end = RecordEnd(file, end, sequence + 1)
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


class Dropped(NamedTuple):
    """The end of a file that cannot be restored. A missing file has no `rest`."""

    file: int
    rest: Rest | None

    def report(self, files: LogFiles) -> None:
        """Log what is lost, and keep a copy of a damaged file."""
        path = files.path(self.file)
        if self.rest is None:
            log.error("a file of the entry log is missing: its commits are lost", file=path)
            return
        offset, size, commits, unfinished = self.rest
        if unfinished:
            text = "the entry log ends with an unfinished record: nothing is lost, unless the file was cut"
            log.warning(text, file=path, offset=offset, bytes=size)
            return
        log.error(
            "the entry log is damaged: commits are lost",
            commits=commits or "unknown",
            file=path,
            offset=offset,
            bytes=size,
            kept_as=files.keep_copy(self.file),
        )


def is_lost(newest: int, applied: RecordEnd, numbers: Collection[int]) -> bool:
    """Return whether the newest file that the database knows is missing, with commits in it.

    The database may learn of a file later than of the file's commits, and every file before `applied` may have been
    given back meanwhile. 0 is no file.
    """
    return newest > 0 and newest >= applied.file and newest not in numbers


class Tail:
    """The records behind a place of the log. Reading them changes no file.

    The database knows the place, and the newest file that was there when a process began a file.
    """

    def __init__(self, files: LogFiles, applied: RecordEnd, newest: int = 0) -> None:
        self._files = files
        self.newest = newest
        self.end = applied
        self.dropped: list[Dropped] = []

    def records(self) -> Iterator[LogRecord]:
        """Yield the records in order, up to the first that is damaged or missing. Afterwards, `dropped` has the rest.

        A later process went on behind the last record that it found, and has reported what it dropped.
        """
        numbers, applied = self._files.numbers(), self.end
        for number in numbers:
            if number >= self.end.file:
                yield from self._records(number)
        if is_lost(self.newest, applied, numbers):
            self.dropped.append(Dropped(self.newest, None))

    def _records(self, number: int) -> Iterator[LogRecord]:
        data = self._files.read(number)
        continues = number == self.end.file and self.end.offset > 0
        head = file_head(data)
        if head is None:
            self._drop_without_head(number, len(data), self.end.offset if continues else 0)
            return
        offset = self.end.offset if continues else FILE_HEAD_BYTES
        in_order = continues or head.first_sequence == self.end.sequence
        while in_order and (record := decode(data, offset, number, head.salt, self.end.sequence)) is not None:
            self.dropped.clear()
            offset = record.end
            self.end = RecordEnd(number, offset, self.end.sequence + 1)
            yield record
        if offset > len(data):
            self.dropped.append(Dropped(number, Rest(len(data), offset - len(data), 0, unfinished=False)))
            return
        rest = rest_of(data, offset, number, head.salt, self.end.sequence)
        if rest is not None and (in_order or rest.commits):
            self.dropped.append(Dropped(number, rest))

    def _drop_without_head(self, number: int, size: int, applied: int) -> None:
        """Drop a file whose head is damaged. A process that was killed when it created the file has left less."""
        if size != applied if applied else number <= self.newest or size > FILE_HEAD_BYTES:
            self.dropped.append(Dropped(number, Rest(min(applied, size), abs(size - applied), 0, unfinished=False)))
