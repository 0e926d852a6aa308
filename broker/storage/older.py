"""Databases of older formats: how each of them is read. What is written is always today's (`database.py`).

Format 1 was today's without checksums. What it holds is checked as far as it can be: by its types, by the sizes that
packed entries tell, and by the order of its keys.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.segments import count_of, unpack

OLDEST = 1

TABLES = """
CREATE TABLE IF NOT EXISTS segment (key INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deleted_ledger (ledger_id INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS metadata (path TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""


def metadata(connection: sqlite3.Connection) -> dict[str, bytes]:
    """All metadata, by path. Raises StorageError, naming the one that is damaged."""
    kept: dict[str, bytes] = {}
    last = ""
    try:
        for path, value in connection.execute("SELECT path, value FROM metadata"):
            if not (isinstance(path, str) and isinstance(value, bytes)) or path < last:
                raise StorageError(f"what is kept at {path!r} is damaged")
            kept[path] = value
            last = path
    except sqlite3.DatabaseError as error:
        raise StorageError(f"what is kept behind {last!r} is damaged: {error}") from error
    return kept


def rows(connection: sqlite3.Connection) -> Iterator[segments.Row]:
    """All rows as today's, but those of deleted ledgers. Raises StorageError, naming the one that is damaged."""
    deleted = set(segments.marked_deleted(connection))
    last = -1
    try:
        for key, count, data in connection.execute("SELECT key, count, data FROM segment ORDER BY key"):
            if not isinstance(key, int) or key <= last:
                raise StorageError(f"the entries behind {_place(last)} are damaged")
            last = key
            if key >> 32 in deleted:
                continue
            if not isinstance(data, bytes):
                raise StorageError(f"the entries from {_place(key)} on are damaged: they are no bytes")
            try:
                unpack(data, 0, 0)
            except StorageError as error:
                raise StorageError(f"the entries from {_place(key)} on are damaged: {error}") from None
            if count != count_of(data):
                raise StorageError(f"the entries from {_place(key)} on are damaged: not {count}, but {count_of(data)}")
            yield key, count, data, segments.checksum_of(key, data)
    except sqlite3.DatabaseError as error:
        raise StorageError(f"the entries behind {_place(last)} are damaged: {error}") from error


def _place(key: int) -> str:
    return f"ledger {key >> 32}, entry {key & 0xFFFFFFFF}" if key >= 0 else "the first row"
