"""Keeping the log short: what stands in it is copied into the database file while commits go on.

Commits append to the log. Its length says what happens to it:

* `COPY_BYTES` are not copied yet: a thread copies them, on a connection of its own.
* The log is `LONG` times as long: SQLite starts a log afresh when a commit finds all of it copied, which never happens
  while commits come one after the other. So the thread copies again and again, as long as each time leaves less, and
  the commit thread copies the little that is left.
* The log is `MOST` times as long: commits wait for the copy, whatever it leaves. So the log has a bound.

A copy begins only after a commit that came when the one before it was seen to end. So there always is something to
copy, and no commit can start the log afresh in the meantime. Without that, SQLite before 3.51.3 may take what is new
for copied, and lose it (its WAL-reset bug).
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from pulsarium.broker.storage.database import BUSY_MS, PAGE_SIZE, open_copier
from pulsarium.broker.storage.interface import Durability, StorageError
from pulsarium.broker.storage.persist import Hook, PersistPoint

COPY_BYTES = 8 << 20  # longer: more to recover after a crash; shorter: more syncs
COPY_SHARE = 64  # of a small disk no more than this part
LITTLE = 1 / 8  # of that
LONG, MOST = 4, 8  # times that
HARDLY_LESS = 3 / 4  # of what the copy before it left
RESTART_WAIT_MS = 50  # for readers of the log, but not for somebody who keeps a transaction open from outside


class Checkpoints:
    """The log of one database. Of the commit thread, which `connection` belongs to."""

    def __init__(self, connection: sqlite3.Connection, path: Path, durability: Durability, at: Hook) -> None:
        self._connection = connection
        self._at = at
        self._copier = open_copier(path, durability)
        # Closed after every connection: closing a descriptor of a file drops all locks that the process has on it.
        self._file = None if durability == "none" else os.open(path, os.O_RDWR)
        self._share = shutil.disk_usage(path.parent).total // COPY_SHARE
        self._thread = ThreadPoolExecutor(1, "storage checkpoint")
        self._copy: Future[int] | None = None  # until it was seen to end
        self._length = 0  # bytes of the log since it was started afresh
        self._to_copy = 0  # bytes of them that the last copy may have left
        self._left_before = math.inf  # by the copy before the last
        self._grew = False  # since the last copy was seen to end

    def grew(self, size: int) -> None:
        """Count a commit of so many bytes."""
        self._length += size
        self._to_copy += size
        self._grew = True

    def all_at_once(self) -> None:
        """Have the next step copy everything while commits wait: the log's room is needed."""
        self._length = max(self._length, MOST * self._unit)

    @property
    def _unit(self) -> int:
        return min(COPY_BYTES, self._share)

    def step(self) -> None:
        """Do what the length of the log asks for. Raises StorageError; everything committed stays in the log."""
        if self._copy is not None:
            if not self._copy.done() and self._length < MOST * self._unit:
                return
            self._end_copy(self._copy)
        is_long = self._length >= LONG * self._unit
        if self._length >= MOST * self._unit or (is_long and self._is_little):
            self._start_afresh()
        elif self._grew and self._to_copy > (0 if is_long else self._unit):
            self._left_before, self._to_copy = self._to_copy, 0
            self._copy = self._thread.submit(self._copy_log)

    @property
    def _is_little(self) -> bool:
        """Whether commits may wait for what is left, or another copy would hardly leave less."""
        return self._to_copy <= self._unit * LITTLE or self._to_copy >= self._left_before * HARDLY_LESS

    def _copy_log(self) -> int:
        """Copy what stands in the log by now, on the thread. Return how long the log is."""
        self._at(PersistPoint.CHECKPOINT)
        _, pages, _ = self._copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        # SQLite leaves this sync to the checkpoint that copies the last page, which commits wait for.
        if self._file is not None:
            os.fsync(self._file)
        return int(pages) * PAGE_SIZE

    def _end_copy(self, copy: Future[int]) -> None:
        self._copy, self._grew = None, False
        try:
            self._length = max(self._length, copy.result())  # longer than counted: readers kept it from starting afresh
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from error

    def _start_afresh(self) -> None:
        """Copy the rest on this thread, so that the next commit writes to the beginning of the log."""
        self._at(PersistPoint.CHECKPOINT)
        self._grew = False
        execute, mode = self._connection.execute, "RESTART" if self._length >= MOST * self._unit else "PASSIVE"
        try:
            execute(f"PRAGMA busy_timeout={RESTART_WAIT_MS}")
            _, pages, copied = execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            execute(f"PRAGMA busy_timeout={BUSY_MS}")
        except sqlite3.Error as error:
            raise self._failed(error) from error
        # What a reader still looks at is not copied: try again before long.
        self._length, self._to_copy = 0, 0 if pages == copied else self._unit // 2
        self._left_before = math.inf

    def _failed(self, error: Exception) -> StorageError:
        self._length, self._to_copy = 0, self._unit // 2
        return StorageError(f"checkpoint failed: {error}")

    def close(self) -> None:
        """Close after the copy that is under way; the connection of the commit thread too."""
        self._thread.shutdown()
        self._copier.close()
        self._connection.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None
