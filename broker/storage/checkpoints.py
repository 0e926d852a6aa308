"""Keep the log short: copy it into the database file while commits go on.

Commits append to the log. The length of the log decides what happens:

- `COPY_BYTES` are not copied yet: a thread copies them on its own connection.
- The log is `LONG` times as long: SQLite restarts a log when a commit finds all of it copied, which never happens under
  constant commits. So the thread copies repeatedly, as long as each copy leaves less, and the commit thread copies
  the small rest.
- The log is `MOST` times as long: commits wait for a full copy. So the length of the log is bounded.

A copy begins only after a commit that followed the end of the previous copy. So there is always something to copy, and
no commit can restart the log meanwhile. Otherwise SQLite before 3.51.3 may treat new commits as copied, and lose them
(its WAL-reset bug).
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
COPY_SHARE = 64  # on a small disk, at most this part
LITTLE = 1 / 8  # of that unit
LONG, MOST = 4, 8  # times that unit
HARDLY_LESS = 3 / 4  # of the rest that the previous copy left
RESTART_WAIT_MS = 50  # for readers of the log, but not for another program that keeps a transaction open


class Checkpoints:
    """The log of one database. Only the commit thread, which owns `connection`, uses it."""

    def __init__(self, connection: sqlite3.Connection, path: Path, durability: Durability, at: Hook) -> None:
        self._connection = connection
        self._at = at
        self._copier = open_copier(path, durability)
        # Closed after all connections: closing a descriptor of a file drops all locks of the process on it.
        self._file = None if durability == "none" else os.open(path, os.O_RDWR)
        self._share = shutil.disk_usage(path.parent).total // COPY_SHARE
        self._thread = ThreadPoolExecutor(1, "storage checkpoint")
        self._copy: Future[int] | None = None  # until its end was noticed
        self._length = 0  # bytes of the log since its last restart
        self._to_copy = 0  # bytes of the log that the last copy may have left
        self._left_before = math.inf  # by the copy before the last
        self._grew = False  # since the end of the last copy was noticed

    def grew(self, size: int) -> None:
        """Count a commit of `size` bytes."""
        self._length += size
        self._to_copy += size
        self._grew = True

    def all_at_once(self) -> None:
        """Let the next step copy everything while commits wait, because the room of the log is needed."""
        self._length = max(self._length, MOST * self._unit)

    @property
    def _unit(self) -> int:
        return min(COPY_BYTES, self._share)

    def step(self) -> None:
        """Do what the length of the log requires. Raise `StorageError` on failure; the log keeps all commits."""
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
        """Return whether commits may wait for the rest, or another copy would hardly leave less."""
        return self._to_copy <= self._unit * LITTLE or self._to_copy >= self._left_before * HARDLY_LESS

    def _copy_log(self) -> int:
        """Copy the current log, on the thread, and return the length of the log in bytes."""
        self._at(PersistPoint.CHECKPOINT)
        _, pages, _ = self._copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        # SQLite leaves this sync to the checkpoint of the last page, which commits wait for.
        if self._file is not None:
            os.fsync(self._file)
        return int(pages) * PAGE_SIZE

    def _end_copy(self, copy: Future[int]) -> None:
        self._copy, self._grew = None, False
        try:
            self._length = max(self._length, copy.result())  # longer than counted when readers prevented a restart
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from error

    def _start_afresh(self) -> None:
        """Copy the rest on this thread, so that the next commit restarts the log."""
        self._at(PersistPoint.CHECKPOINT)
        self._grew = False
        execute, mode = self._connection.execute, "RESTART" if self._length >= MOST * self._unit else "PASSIVE"
        try:
            execute(f"PRAGMA busy_timeout={RESTART_WAIT_MS}")
            _, pages, copied = execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            execute(f"PRAGMA busy_timeout={BUSY_MS}")
        except sqlite3.Error as error:
            raise self._failed(error) from error
        # Pages that a reader still uses are not copied: try again soon.
        self._length, self._to_copy = 0, 0 if pages == copied else self._unit // 2
        self._left_before = math.inf

    def _failed(self, error: Exception) -> StorageError:
        self._length, self._to_copy = 0, self._unit // 2
        return StorageError(f"checkpoint failed: {error}")

    def close(self) -> None:
        """Wait for the current copy. Close the files, and the connection of the commit thread."""
        self._thread.shutdown()
        self._copier.close()
        self._connection.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None
