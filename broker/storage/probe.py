"""Examine a data directory before anything in it is written.

The connection is read-only, because the last writing connection copies the log into the database when it closes, even
into a damaged one.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from pulsarium.broker.logs import Log
from pulsarium.broker.storage import index, older
from pulsarium.broker.storage.database import (
    APPLICATION_ID,
    ELSEWHERE,
    SCHEMA_VERSION,
    WITHOUT_LOG,
    advice,
    has_tables,
    metadata,
    newer,
    open_to_look,
)
from pulsarium.broker.storage.interface import StorageError

log = Log("storage")


class Found(NamedTuple):
    """A store of a readable format."""

    version: int
    metadata: dict[str, bytes]  # empty for an older format, which is migrated first


def probe(path: Path) -> Found | None:
    """Examine a store. Return None when none exists yet. Raise `StorageError` for a store that cannot be served."""
    wal, journal = (path.with_name(f"{path.name}-{each}") for each in ("wal", "journal"))
    for each in (path.parent, path, wal, journal):  # SQLite opens files without write permission, too
        if each.exists() and not os.access(each, os.W_OK):
            raise StorageError(
                f"cannot write {each}: this user must be able to write the directory and all files in it"
            )
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


def _look(connection: sqlite3.Connection, path: Path) -> Found | None:
    application, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _HEADER)
    if (application, version) == (0, 0) and not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        return None  # the process that created the file was killed right then
    if application != APPLICATION_ID:
        raise StorageError(f"{path} is not a store of pulsarium; choose another --data DIR")
    if version > SCHEMA_VERSION:
        raise StorageError(f"{path} {newer(connection, version)}: start the newer one, or choose another --data DIR")
    try:
        if version < WITHOUT_LOG:
            if version < older.OLDEST or not has_tables(connection, older.TABLES):
                raise StorageError(f"its header says format {version}, but its tables do not match")
            return Found(version, {})
        if version == WITHOUT_LOG and has_tables(connection, index.SCHEMA):
            raise StorageError(f"its header says format {version}, but its tables do not match")
        # Writing into the pages of a damaged table would damage more.
        for table in ("metadata", "deleted_ledger", *(["run"] if version > WITHOUT_LOG else [])):
            problem = connection.execute(f"PRAGMA quick_check({table})").fetchone()[0]
            if problem != "ok":
                raise StorageError(" ".join(problem.split()))
        connection.execute("SELECT key, count, data, checksum FROM segment LIMIT 1").fetchall()
        if version > WITHOUT_LOG:
            connection.execute("SELECT key, file, bytes, pieces, checksum FROM run LIMIT 1").fetchall()
        return Found(version, metadata(connection))
    except (StorageError, sqlite3.OperationalError) as error:
        raise StorageError(f"{path} is damaged: {error}; {ELSEWHERE}") from error


_HEADER = ("application_id", "user_version")
