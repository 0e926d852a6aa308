"""Read databases of older formats. New data always has the current format (`database.py`).

Format 1 has no checksums. Reads check its types, the sizes in packed entries, and the order of its keys.
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
    """Return all metadata by path. Raise `StorageError` with the path of a damaged value."""
    kept: dict[str, bytes] = {}
    last = ""
    try:
        for path, value in connection.execute("SELECT path, value FROM metadata"):
            if not (isinstance(path, str) and isinstance(value, bytes)) or path < last:
                raise StorageError(f"the value at {path!r} is damaged")
            kept[path] = value
            last = path
    except sqlite3.DatabaseError as error:
        raise StorageError(f"the metadata behind {last!r} is damaged: {error}") from error
    return kept


def rows(connection: sqlite3.Connection) -> Iterator[segments.Row]:
    """Yield all rows in the current format, without those of deleted ledgers. Raise `StorageError` at a damaged row."""
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
                raise StorageError(f"the entries from {_place(key)} on are damaged: the row is not binary")
            try:
                unpack(data, 0, 0)
            except StorageError as error:
                raise StorageError(f"the entries from {_place(key)} on are damaged: {error}") from None
            if count != count_of(data):
                raise StorageError(
                    f"the entries from {_place(key)} on are damaged: not {count} entries, but {count_of(data)}"
                )
            yield key, count, data, segments.checksum_of(key, data)
    except sqlite3.DatabaseError as error:
        raise StorageError(f"the entries behind {_place(last)} are damaged: {error}") from error


def _place(key: int) -> str:
    return f"ledger {key >> 32}, entry {key & 0xFFFFFFFF}" if key >= 0 else "the first row"
