"""Migrate a database of an older format to the current one, before anything else uses it.

The new database is written beside the old one, which stays unchanged until every row was read back and compared. Then
the old log is copied into the old database, the old database gets a second name, and one rename puts the new one in its
place. A process that is killed at any step leaves the old or the new database whole, and the next start begins again if
needed. Memory holds one row at a time, and the metadata.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from enum import Enum, auto
from itertools import chain, count, zip_longest
from pathlib import Path

from pulsarium.broker.logs import Log
from pulsarium.broker.storage import older, segments
from pulsarium.broker.storage.database import (
    BUSY_MS,
    ELSEWHERE,
    PAGE_SIZE,
    SCHEMA_VERSION,
    advice,
    metadata,
    new_database,
    open_to_look,
    put_metadata,
    transaction,
)
from pulsarium.broker.storage.interface import StorageError

log = Log("storage")

SLICE_BYTES = 4 << 20  # of entries, between two reports of progress
ROOM_BYTES = 1 << 20  # for checksums, and pages that are not full
NOTE_SECONDS = 1.0  # between two lines about progress


class Step(Enum):
    """The steps of a migration, in order. At each step, either database is whole for the next start."""

    BEGUN = auto()
    """Nothing is written yet."""

    SLICE = auto()
    """More rows were copied or compared. This step repeats."""

    COPIED = auto()
    """The new database is on the disk, beside the old one."""

    COMPARED = auto()
    """The new database equals the old one."""

    LOG_EMPTIED = auto()
    """The old log is copied and deleted, so that it cannot be applied to the new database."""

    LINKED = auto()
    """The old database has a second name."""

    REPLACED = auto()
    """The new database has the name of the old one."""


Hook = Callable[[Step], None]


def pass_by(step: Step) -> None:
    """Do nothing, as the hook outside of tests."""


def migrate(path: Path, version: int, at: Hook = pass_by) -> None:
    """Replace a database of format `version` by one of the current format. The old one keeps another name.

    The caller has the directory's lock. `at` is called at each step, and an exception from it ends the migration. Raise
    `StorageError` when the migration fails, and leave the old database as it was.
    """
    new = path.with_name(f"{path.name}.migrating")
    try:
        new.unlink(missing_ok=True)  # left by a killed process
        _need_room(path, version)
        log.info("the data has an older format: the broker migrates it", file=path, format=version, to=SCHEMA_VERSION)
        at(Step.BEGUN)
        try:
            _Copy(path, new, at).make()
            _empty_log(path)
            at(Step.LOG_EMPTIED)
            kept = _link(path, version)
            at(Step.LINKED)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)
        _sync(path.parent)
        at(Step.REPLACED)
    except sqlite3.Error as error:
        raise StorageError(f"cannot migrate {path}: {error}; {advice(error)}") from error
    except OSError as error:
        raise StorageError(f"cannot migrate {path}: {error.strerror}; nothing in it was changed") from error
    if kept is None:
        log.warning("migrated; the old database is not kept: the file system cannot give a file two names", file=path)
    else:
        log.warning(
            "migrated; the old database is kept for an older pulsarium: delete it when you no longer need it",
            kept_as=kept,
        )


class _Copy:
    """A new database with the contents of an old one."""

    def __init__(self, path: Path, new: Path, at: Hook) -> None:
        self._path = path
        self._new = new
        self._at = at
        self._total = 2 * _size(path)  # read twice
        self._read = 0
        self._noted = time.monotonic()

    def make(self) -> None:
        """Write the new database, and compare it with the old one."""
        try:
            with closing(open_to_look(self._path)) as old:
                old.execute("BEGIN")  # one moment of the database, whatever other programs write
                kept = older.metadata(old)
                with closing(new_database(self._new, page_size=PAGE_SIZE)) as new, transaction(new):
                    put_metadata(new, kept.items())
                    segments.insert(new, self._counted(older.rows(old)))
                _sync(self._new)
                self._at(Step.COPIED)
                problem = old.execute("PRAGMA quick_check(1)").fetchone()[0]  # finds rows that no read reaches
                if problem != "ok":
                    raise StorageError(" ".join(problem.split()))
                with closing(open_to_look(self._new)) as new:
                    same = metadata(new) == kept and self._same_rows(old, new)
        except StorageError as error:
            raise StorageError(f"{self._path} is damaged: {error}; {_UNCHANGED}, or {ELSEWHERE}") from error
        if not same:
            raise StorageError(f"cannot migrate {self._path}: its copy differs; check the disk, and start again")
        self._at(Step.COMPARED)

    def _same_rows(self, old: sqlite3.Connection, new: sqlite3.Connection) -> bool:
        pairs = zip_longest(self._counted(older.rows(old)), segments.all_rows(new))
        return all(one == other for one, other in pairs)

    def _counted(self, rows: Iterator[segments.Row]) -> Iterator[segments.Row]:
        unseen = 0
        for row in rows:
            yield row
            unseen += len(row[2])
            if unseen >= SLICE_BYTES:
                self._note(unseen)
                unseen = 0

    def _note(self, read: int) -> None:
        self._read += read
        self._at(Step.SLICE)
        now = time.monotonic()
        if now - self._noted >= NOTE_SECONDS:
            self._noted = now
            log.info("migrating", percent=min(99, 100 * self._read // self._total), file=self._path)


_UNCHANGED = "nothing in it was changed: start the pulsarium that wrote it, which serves the undamaged part"


def _need_room(path: Path, version: int) -> None:
    """Raise `StorageError` without room for the new database, and for the old log in the old database."""
    in_log = _size(path.with_name(f"{path.name}-wal"))
    needed, free = _size(path) + 2 * in_log + ROOM_BYTES, shutil.disk_usage(path.parent).free
    if free < needed:
        raise StorageError(
            f"{path} has format {version}, and its migration takes {needed >> 20} MB of room on its disk, which has "
            f"{free >> 20} MB: make room, and start again"
        )


def _empty_log(path: Path) -> None:
    """Copy the log of the old database into it, and remove the log, which would damage the new database."""
    with closing(sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if _size(path.with_name(f"{path.name}-wal")):
        raise StorageError(f"cannot migrate {path}: another program has it open; close that program, and start again")


def _link(path: Path, version: int) -> Path | None:
    """Give the old database another name, and return the name. Return None on file systems without second names."""
    names = (f"{path.name}.format-{version}{suffix}" for suffix in chain([""], (f".{n}" for n in count(2))))
    for kept in map(path.with_name, names):
        try:
            os.link(path, kept)
        except FileExistsError:
            if not kept.samefile(path):  # of an earlier migration that was rolled back
                continue
        except OSError:
            return None
        return kept
    raise AssertionError("numbers have no end")


def _sync(path: Path) -> None:
    """Sync a file to the disk, or the names in a directory on systems that can sync directories."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
