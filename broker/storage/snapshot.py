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

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.database import (
    APPLICATION_ID,
    SCHEMA,
    SCHEMA_VERSION,
    metadata,
    put_metadata,
    transaction,
)
from pulsarium.broker.storage.errors import StorageError
from pulsarium.broker.storage.interface import Entries, Run
from pulsarium.broker.storage.packing import unpack

ABOUT = "/snapshot"
SHA256 = "sha256"
TABLES = f"{segments.SCHEMA}{SCHEMA}"


def write(path: Path, kept: Mapping[str, bytes], entries: Entries, about: Mapping[str, Any]) -> None:
    """Write a snapshot: whole, or StorageError and no file. Another file at `path` is replaced."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)  # of a process of this number that died over it
        with closing(sqlite3.connect(part, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            connection.executescript(TABLES)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            with transaction(connection):
                put_metadata(connection, kept.items())
                for ledger_id, run in entries:
                    segments.insert(connection, segments.rows_of(ledger_id, [run]))
                digest = _begin(kept)
                for row in _rows(connection):
                    _count(digest, row)
                said = json.dumps({**about, SHA256: digest.hexdigest()}).encode()
                put_metadata(connection, [(ABOUT, said)])
        with part.open("rb") as written:
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
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
            )
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
            if version != SCHEMA_VERSION:
                raise StorageError(f"{path} is a snapshot of version {version}; this pulsarium reads {SCHEMA_VERSION}")
            if not _tables(self._connection) >= _our_tables():  # a view may be anything, also without an end
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
            return metadata(self._connection)
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
        for row in _rows(self._connection):
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

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()


def _tables(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(connection.execute("SELECT name, sql FROM sqlite_master"))


def _our_tables() -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        return _tables(connection)


def _rows(connection: sqlite3.Connection) -> sqlite3.Cursor:
    return connection.execute("SELECT key, count, data, checksum FROM segment ORDER BY key")


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
