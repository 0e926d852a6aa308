"""Examine a data directory before anything in it is written.

The connection is read-only, because the last writing connection copies the log into the database when it closes, even
into a damaged one.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from pulsarium.broker.logs import PartLog
from pulsarium.broker.storage.database import (
    APPLICATION_ID,
    ELSEWHERE,
    SCHEMA_VERSION,
    advice,
    metadata,
    open_to_look,
    other_format,
)
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.place import UnwritableError, permission_advice

log = PartLog("storage")


def probe(path: Path) -> dict[str, bytes] | None:
    """Examine a store. Return its metadata, or None when none exists yet.

    Raise `StorageError` for a store that cannot be served.
    """
    wal, journal = (path.with_name(f"{path.name}-{each}") for each in ("wal", "journal"))
    for each in (path.parent, path, wal, journal):  # SQLite opens files without write permission, too
        if each.exists() and not os.access(each, os.W_OK):
            raise UnwritableError(f"cannot write {each}; {permission_advice(each)}")
    has_wal = wal.exists() and wal.stat().st_size > 0
    logs = sorted(path.parent.glob("entries-*.log"))
    if not path.exists() or (path.is_file() and (not path.stat().st_size or _was_being_made(journal))):
        if has_wal or logs:
            what = "is empty" if path.exists() else "is missing"
            there = wal.name if has_wal else logs[0].name
            raise StorageError(f"{path} {what}, but its log is there: bring it back, or move {there} away")
        if path.exists():
            log.warning("the database was empty: the broker creates it again", file=path)
        return None
    try:
        with closing(open_to_look(path)) as connection:
            return _look(connection, path)
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}; {advice(error)}") from error


def _was_being_made(journal: Path) -> bool:
    """Return whether a process was killed while SQLite created the database. Opening such a file empties it.

    Only then does a store have a journal. A read-only connection could not empty the file.
    """
    if not journal.is_file():
        return False
    with journal.open("rb") as file:
        header = file.read(20)  # magic, u32 records, a salt, u32 pages of the database before
    return header[:8] == _JOURNAL and header[16:] == bytes(4)


_JOURNAL = bytes.fromhex("d9d505f920a163d7")


def _look(connection: sqlite3.Connection, path: Path) -> dict[str, bytes] | None:
    application, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _HEADER)
    if (application, version) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        return None  # the process that created the file was killed right then
    if application != APPLICATION_ID:
        raise StorageError(f"{path} is not a store of pulsarium; choose another --data DIR")
    if version != SCHEMA_VERSION:
        raise StorageError(f"{path} {other_format(connection, version)}: start that one, or choose another --data DIR")
    try:
        # Writing into the pages of a damaged table would damage more.
        for table in ("metadata", "deleted_ledger", "run"):
            problem = connection.execute(f"PRAGMA quick_check({table})").fetchone()[0]
            if problem != "ok":
                raise StorageError(" ".join(problem.split()))
        connection.execute("SELECT key, count, data, checksum FROM segment LIMIT 1").fetchall()
        connection.execute("SELECT key, file, bytes, pieces, checksum FROM run LIMIT 1").fetchall()
        return metadata(connection)
    except (StorageError, sqlite3.OperationalError) as error:
        raise StorageError(f"{path} is damaged: {error}; {ELSEWHERE}") from error


_HEADER = ("application_id", "user_version")
