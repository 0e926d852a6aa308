"""Write and read snapshots: everything that a store has, in one file.

A snapshot is a database like that of a data directory (`database.py`), with all entries in the database. A broker's
`pulsarium.db` can be restored too, with the entry log beside the file. A snapshot has one more path, with its writer
and the SHA-256 of its contents.
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

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.database import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    TABLES,
    applied,
    has_tables,
    metadata,
    new_database,
    newest,
    open_to_look,
    other_format,
    put_metadata,
    transaction,
)
from pulsarium.broker.storage.entries import log_rows
from pulsarium.broker.storage.entry_log import Tail
from pulsarium.broker.storage.interface import Entries, EntryRun, StorageError
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.segments import unpack
from pulsarium.broker.storage.unapplied import Unapplied, recovered

ABOUT = "/snapshot"
SHA256 = "sha256"


def write(path: Path, kept: Mapping[str, bytes], entries: Entries, about: Mapping[str, Any]) -> None:
    """Write a snapshot, or raise `StorageError` and leave no file. An existing file at `path` is replaced."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # left by a killed process with the same id
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
    """An open snapshot, or the database of a stopped broker. As a context manager it closes the file.

    Raise `StorageError` for any other file. Further damage is found while `entries` are read.
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
            self._connection.execute("BEGIN")  # one moment of the database, whatever other programs write
            if self._pragma("application_id") != APPLICATION_ID:
                raise StorageError(f"{path} is not a snapshot")
            version = self._pragma("user_version")
            if version != SCHEMA_VERSION:
                raise StorageError(f"{path} {other_format(self._connection, version)}: restore it with that one")
            if not has_tables(self._connection, TABLES):  # a view may return anything, and never end
                raise StorageError(f"{path} is not a snapshot: its tables are not those of a store")
            problem = self._pragma("quick_check(1)")
            if problem != "ok":
                raise StorageError(f"{path} is damaged: {problem}")
            self.metadata = self._metadata(path)
            about = self.metadata.pop(ABOUT, None)
            self.about: dict[str, Any] = {} if about is None else dict(json.loads(about))
            self._log = None
            if about is None:
                self._log = LogFiles(path.parent)
                self._unapplied = self._unapplied_of(path, self._log)
                self.metadata = self._unapplied.over(self.metadata)
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            raise StorageError(f"{path} is not a snapshot, or damaged: {error}") from error
        self._path = path

    def _unapplied_of(self, path: Path, files: LogFiles) -> Unapplied:
        """Return the commits of the log beside a database. Raise `StorageError` when some are damaged or missing."""
        tail = Tail(files, applied(self._connection), newest(self._connection))
        unapplied = recovered(tail)
        for dropped in tail.dropped:
            if dropped.rest is None or not dropped.rest.unfinished:
                what = "is missing" if dropped.rest is None else f"is damaged at {dropped.rest.offset}"
                raise StorageError(
                    f"{path}: {files.path(dropped.file)} {what}; "
                    f"start serve --data {path.parent}, which keeps what is before, and make a snapshot there"
                )
        return unapplied

    def _metadata(self, path: Path) -> dict[str, bytes]:
        try:
            return metadata(self._connection)
        except StorageError as error:
            raise StorageError(f"{path} is damaged: {error}") from error

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def entries(self) -> Iterator[tuple[int, EntryRun]]:
        """Yield all entries. Raise `StorageError` for damage, at the end when the checksum of the contents differs."""
        try:
            yield from self._entries()
        except (sqlite3.Error, TypeError) as error:  # SQLite columns may hold other types than they declare
            raise StorageError(f"{self._path} is damaged: {error}") from error

    def _entries(self) -> Iterator[tuple[int, EntryRun]]:
        digest = _begin(self.metadata)
        deleted = set(segments.marked_deleted(self._connection))
        for row in segments.all_rows(self._connection):
            _count(digest, row)
            key, _, data, checksum = row
            if key >> 32 in deleted or (self._log and self._unapplied.is_deleted(key >> 32)):
                continue
            if checksum != segments.checksum_of(key, data):
                raise StorageError(f"{self._path} is damaged: entries of ledger {key >> 32}")
            yield key >> 32, EntryRun(key & 0xFFFFFFFF, unpack(data))
        if self._log is not None:
            yield from self._log_entries(self._log)
        wanted = self.about.get(SHA256)
        if wanted is not None and wanted != digest.hexdigest():
            raise StorageError(f"{self._path} is damaged: its checksum differs")

    def _log_entries(self, files: LogFiles) -> Iterator[tuple[int, EntryRun]]:
        try:
            for key, row in log_rows(self._connection, files, self._unapplied):
                if row is None:
                    raise StorageError(f"{self._path} is damaged: entries of ledger {key >> 32}")
                yield key >> 32, EntryRun(key & 0xFFFFFFFF, unpack(row[2]))
        except FileNotFoundError as error:
            raise StorageError(
                f"{self._path} lacks {error.filename}: stop its broker first, or find the file"
            ) from None

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
