"""A snapshot: everything that a store keeps, in one file.

It is a database as a data directory has it (`database.py`), so that each of them can be restored, a broker's
`pulsarium.db` too. A snapshot has one more path, which says what wrote it, and the SHA-256 of all that is in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from pulsarium.broker.storage import older, segments
from pulsarium.broker.storage.database import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    TABLES,
    has_tables,
    metadata,
    new_database,
    newer,
    open_to_look,
    put_metadata,
    transaction,
)
from pulsarium.broker.storage.interface import Entries, Run, StorageError
from pulsarium.broker.storage.segments import unpack

ABOUT = "/snapshot"
SHA256 = "sha256"


def write(path: Path, kept: Mapping[str, bytes], entries: Entries, about: Mapping[str, Any]) -> None:
    """Write a snapshot: whole, or StorageError and no file. Another file at `path` is replaced."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # of a process of this number that died over it
        with closing(new_database(part)) as connection, transaction(connection):
            put_metadata(connection, kept.items())
            for ledger_id, run in entries:
                segments.insert(connection, segments.rows_of(ledger_id, [run]))
            digest = _begin(kept)
            for row in segments.all_rows(connection):
                _count(digest, row)
            said = json.dumps({**about, SHA256: digest.hexdigest()}).encode()
            put_metadata(connection, [(ABOUT, said)])
        with part.open("r+b") as written:
            os.fsync(written.fileno())
        os.replace(part, path)
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"cannot write {path}: {error}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


class Snapshot:
    """A snapshot that is read, or the database of a broker that has stopped. A context manager that closes it.

    Raises StorageError for a file that is neither. What is damaged further inside is found while `entries` are read.
    """

    def __init__(self, path: Path) -> None:
        try:
            if not path.is_file():
                raise StorageError(f"{path}: there is no such file")
            self._connection = open_to_look(path)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"cannot read {path}: {error}") from error
        try:
            self._open(path)
        except BaseException:
            self._connection.close()
            raise

    def _open(self, path: Path) -> None:
        try:
            self._connection.execute("BEGIN")  # all that is read is of one moment, whoever writes meanwhile
            if self._pragma("application_id") != APPLICATION_ID:
                raise StorageError(f"{path} is not a snapshot")
            version = self._pragma("user_version")
            if version > SCHEMA_VERSION:
                raise StorageError(f"{path} {newer(self._connection, version)}: restore it with the newer one")
            self._is_older = version < SCHEMA_VERSION
            tables = older.TABLES if self._is_older else TABLES
            if not has_tables(self._connection, tables):  # a view may be anything, also without an end
                raise StorageError(f"{path} is not a snapshot: its tables are not those of a store")
            problem = self._pragma("quick_check(1)")
            if problem != "ok":
                raise StorageError(f"{path} is damaged: {problem}")
            self.metadata = self._metadata(path)
            about = self.metadata.pop(ABOUT, None)
            self.about: dict[str, Any] = {} if about is None else dict(json.loads(about))
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            raise StorageError(f"{path} is not a snapshot, or damaged: {error}") from error
        self._path = path

    def _metadata(self, path: Path) -> dict[str, bytes]:
        try:
            return older.metadata(self._connection) if self._is_older else metadata(self._connection)
        except StorageError as error:
            raise StorageError(f"{path} is damaged: {error}") from error

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def entries(self) -> Iterator[tuple[int, Run]]:
        """All of them, once. Raises StorageError, at the end if what was read is not what was written."""
        try:
            yield from self._entries()
        except (sqlite3.Error, TypeError) as error:  # a column that says INTEGER or BLOB may hold a text
            raise StorageError(f"{self._path} is damaged: {error}") from error

    def _entries(self) -> Iterator[tuple[int, Run]]:
        digest = _begin(self.metadata)
        deleted = set(segments.marked_deleted(self._connection))
        for row in self._rows():
            _count(digest, row)
            key, _, data, checksum = row
            if key >> 32 in deleted:
                continue
            if checksum != segments.checksum_of(key, data):
                raise StorageError(f"{self._path} is damaged: entries of ledger {key >> 32}")
            yield key >> 32, Run(key & 0xFFFFFFFF, unpack(data))
        wanted = self.about.get(SHA256)
        if wanted is not None and wanted != digest.hexdigest():
            raise StorageError(f"{self._path} is damaged: its checksum is another one")

    def _rows(self) -> Iterator[segments.Row]:
        if not self._is_older:
            yield from segments.all_rows(self._connection)
            return
        try:
            yield from older.rows(self._connection)
        except StorageError as error:
            raise StorageError(f"{self._path} is damaged: {error}") from error

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()


def _begin(kept: Mapping[str, bytes]) -> hashlib._Hash:
    digest = hashlib.sha256()
    for path in sorted(kept):
        for each in (path.encode(), kept[path]):
            digest.update(b"%d:" % len(each))
            digest.update(each)
    return digest


def _count(digest: hashlib._Hash, row: segments.Row) -> None:
    key, count, data, _ = row
    digest.update(b"%d %d %d:" % (key, count, len(data)))
    digest.update(data)
