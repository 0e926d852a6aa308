"""Examine a data directory before anything in it is written.

The connection is read-only, because the last writing connection copies the log into the database when it closes, even
into a damaged one.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

from pulsarium.broker.logs import Log
from pulsarium.broker.storage import older
from pulsarium.broker.storage.database import (
    APPLICATION_ID,
    ELSEWHERE,
    SCHEMA_VERSION,
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
    has_log = wal.exists() and wal.stat().st_size > 0
    if not path.exists() or (path.is_file() and (not path.stat().st_size or _was_being_made(journal))):
        if has_log:
            what = "is empty" if path.exists() else "is missing"
            raise StorageError(f"{path} {what}, but its log is there: bring it back, or move {wal.name} away")
        if path.exists():
            log.warning("the database was empty: the broker creates it again", file=path)
        return None
    try:
        with closing(open_to_look(path)) as connection:
            found = _look(connection, path)
            if has_log:
                _keep_damaged_log(path, wal)
            return found
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
        if version < SCHEMA_VERSION:
            if version < older.OLDEST or not has_tables(connection, older.TABLES):
                raise StorageError(f"its header says format {version}, but its tables do not match")
            return Found(version, {})
        problem = connection.execute("PRAGMA quick_check(metadata)").fetchone()[0]
        if problem != "ok":
            raise StorageError(" ".join(problem.split()))
        connection.execute("SELECT key, count, data, checksum FROM segment LIMIT 1").fetchall()
        connection.execute("SELECT ledger_id FROM deleted_ledger LIMIT 1").fetchall()
        return Found(version, metadata(connection))
    except (StorageError, sqlite3.OperationalError) as error:
        raise StorageError(f"{path} is damaged: {error}; {ELSEWHERE}") from error


_HEADER = ("application_id", "user_version")


def _keep_damaged_log(path: Path, wal: Path) -> None:
    """Report and save a log with commits behind its first damaged frame, because SQLite ignores these commits.

    Such a log is expected after a machine crash with --durability os. A later frame proves a lost commit when the frame
    ends a transaction of this log, as its salt shows, and is undamaged. Other frames were being written when the
    process ended, so no caller was told of them.
    """
    lost = _lost_commits(path, wal)
    if not lost:
        return
    kept = wal.with_name(f"{wal.name}.damaged")
    if not kept.exists():
        copyfile(wal, kept)
    log.error("the log is damaged: the last commits are lost", commits=lost, file=wal, kept_as=kept)


def _lost_commits(path: Path, wal: Path) -> int:
    """Return the number of transactions in the log behind the last frame that SQLite accepts."""
    shm = path.with_name(f"{path.name}-shm")
    if not shm.exists():
        return 0
    with shm.open("rb") as index, wal.open("rb") as frames:
        head, begin = index.read(48), frames.read(32)
        if len(head) < 48 or len(begin) < 32:
            return 0
        (last,) = struct.unpack_from("=I", head, 16)
        (page_size,) = struct.unpack_from(">I", begin, 8)
        order = ">" if begin[3] & 1 else "<"
        salt = begin[16:24]
        step, size, lost = 24 + page_size, wal.stat().st_size, 0
        for offset in range(32 + last * step, size - step + 1, step):
            frames.seek(offset)
            frame = frames.read(24)  # u32 page, u32 pages of the database at the end of a commit, the salt, a checksum
            if frame[8:16] != salt or frame[4:8] == bytes(4):
                continue
            before = begin[24:]
            if offset > 32:
                frames.seek(offset - step + 16)
                before = frames.read(8)
            frames.seek(offset + 24)
            lost += _checksum(order, before, frame[:8] + frames.read(page_size)) == frame[16:]
        return lost


def _checksum(order: str, before: bytes, data: bytes) -> bytes:
    """Return SQLite's checksum of a frame, which continues that of the previous frame."""
    first, second = struct.unpack(">2I", before)
    for one, other in struct.iter_unpack(f"{order}2I", data):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return struct.pack(">2I", first, second)
