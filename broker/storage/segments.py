"""Store entries in a SQLite table, a run in each row, so that 256 entries take one insert.

The key of a row is `ledger id << 32 | first entry id`. So a ledger is a range of keys, and the run of an entry has the
last key at or below that entry. SQLite does not check the contents of pages, so each row has a CRC32C, which readers
check. The functions work on a connection, in transactions of their callers.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from pulsarium.broker.storage.interface import DamagedEntriesError, EntryRun, StorageError, StoredRun, code_of
from pulsarium.proto.entry import crc32c


# Packed entries: u32 count, u32 length of each entry, then their bytes; little-endian.
def pack(entries: Sequence[bytes]) -> bytes:
    """Pack entries into one value, in order."""
    count = len(entries)
    return b"".join((struct.pack(f"<{count + 1}I", count, *map(len, entries)), *entries))


def unpack(data: bytes, start: int = 0, stop: int | None = None) -> list[bytes]:
    """Return `entries[start:stop]` of a packed value without copying the rest.

    Raise `StorageError` for a damaged value.
    """
    try:
        (count,) = struct.unpack_from("<I", data)
        lengths = struct.unpack_from(f"<{count}I", data, 4)
    except struct.error as error:
        raise StorageError(f"damaged entries: {error}") from None
    position = header_size(count)
    if position + sum(lengths) != len(data):
        raise StorageError(f"damaged entries: {len(data)} bytes instead of {position + sum(lengths)}")
    start, stop, _ = slice(start, stop).indices(count)
    position += sum(lengths[:start])
    entries = []
    for length in lengths[start:stop]:
        entries.append(data[position : position + length])
        position += length
    return entries


def count_of(data: bytes) -> int:
    """Return the number of entries in an undamaged packed value."""
    (count,) = struct.unpack_from("<I", data)
    return int(count)


def header_size(count: int) -> int:
    """Return the bytes that packing adds to `count` entries."""
    return 4 * (count + 1)


ROW_BYTES = 256 * 1024  # of entries; longer rows save nothing more, and make single reads slower
SLICE_BYTES = 8 << 20  # a deletion reads each row: about 0.4 ms a MB, half of it for the checksum
SLICE_ROWS = 1000

SCHEMA = """
CREATE TABLE IF NOT EXISTS segment
    (key INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS deleted_ledger (ledger_id INTEGER PRIMARY KEY);
"""

Row = tuple[int, int, bytes, int]  # key, count, packed entries, checksum


def key_of(ledger_id: int, entry_id: int) -> int:
    """Return the key of an entry's row. Raise `StorageError` for ids that are too large for the key."""
    if not (0 <= ledger_id < 1 << 31 and 0 <= entry_id < 1 << 32):
        raise StorageError(f"ledger {ledger_id}, entry {entry_id}: the id is too large for the store")
    return ledger_id << 32 | entry_id


def keys_of(ledger_id: int) -> tuple[int, int]:
    """Return the lowest and the highest key of a ledger's rows."""
    return key_of(ledger_id, 0), key_of(ledger_id, 0xFFFFFFFF)


def rows_of(ledger_id: int, runs: Iterable[EntryRun]) -> list[Row]:
    """Return the rows for the runs of one ledger, joined or cut to about ROW_BYTES each."""
    rows = list[Row]()
    first, joined, size = 0, list[bytes](), 0
    for run in runs:
        for piece, piece_size in _cut(run):
            if joined and (piece.first_entry_id != first + len(joined) or size + piece_size > ROW_BYTES):
                rows.append(_row(ledger_id, first, joined))
                joined, size = [], 0
            if not joined:
                first = piece.first_entry_id
            joined += piece.entries
            size += piece_size
    if joined:
        rows.append(_row(ledger_id, first, joined))
    return rows


def _row(ledger_id: int, first: int, entries: list[bytes]) -> Row:
    key, data = key_of(ledger_id, first), pack(entries)
    return key, len(entries), data, checksum_of(key, data)


def checksum_of(key: int, data: bytes) -> int:
    """Return the checksum of a row's key and data."""
    return crc32c(data, (key ^ key >> 32) & 0xFFFFFFFF)


def _cut(run: EntryRun) -> list[tuple[EntryRun, int]]:
    total = sum(map(len, run.entries))
    if total <= ROW_BYTES:
        return [(run, total)]
    pieces, start, size = list[tuple[EntryRun, int]](), 0, 0
    for index, entry in enumerate(run.entries):
        if index > start and size + len(entry) > ROW_BYTES:
            pieces.append((EntryRun(run.first_entry_id + start, run.entries[start:index]), size))
            start, size = index, 0
        size += len(entry)
    pieces.append((EntryRun(run.first_entry_id + start, run.entries[start:]), size))
    return pieces


def insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> int:
    """Insert rows, and return their number. A run must not start at the first entry of a stored run."""
    return connection.executemany("INSERT INTO segment VALUES (?, ?, ?, ?)", rows).rowcount


_WANTED = """
FROM segment
WHERE key >= ifnull((SELECT key FROM segment WHERE key BETWEEN :ledger AND :first ORDER BY key DESC LIMIT 1), :first)
  AND key <= :last
  AND NOT EXISTS (SELECT 1 FROM deleted_ledger WHERE ledger_id = :ledger_id)
ORDER BY key
"""
_READ = f"SELECT key, count, data, checksum {_WANTED}"
_KEYS = f"SELECT key, count {_WANTED}"


def read(connection: sqlite3.Connection, ledger_id: int, first: int, last: int) -> list[bytes]:
    """Return the entries `first` to `last`, both included, at one moment of the database.

    Raise `DamagedEntriesError` for the entries of the first row that is damaged or missing.
    """
    keys = {"ledger": key_of(ledger_id, 0), "first": key_of(ledger_id, first), "last": key_of(ledger_id, last)}
    keys["ledger_id"] = ledger_id
    try:
        return _read(connection, keys, first, last)
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        for key, count in connection.execute(_KEYS, keys).fetchall():  # most data is on other pages
            if _sound(connection, key) is None:
                raise _damaged(key, count, first, last) from None
        raise


def _read(connection: sqlite3.Connection, keys: dict[str, int], first: int, last: int) -> list[bytes]:
    entries: list[bytes] = []
    until = last  # the last missing entry, if any is missing
    # The cursor is closed even at a damaged row, because an open one would keep the log from being reused.
    with closing(connection.execute(_READ, keys)) as cursor:
        for key, count, data, checksum in cursor:
            row_first, wanted = key & 0xFFFFFFFF, first + len(entries)
            if row_first > wanted:
                until = row_first - 1
                break
            if checksum != checksum_of(key, data):
                raise _damaged(key, count, first, last)
            entries += unpack(data, wanted - row_first, last + 1 - row_first)
    if (wanted := first + len(entries)) <= last:
        text = f"ledger {keys['ledger_id']}: entry {wanted} of {first}..{last} is not stored"
        raise DamagedEntriesError(text, keys["ledger_id"], wanted, until)
    return entries


def _damaged(key: int, count: int, first: int, last: int) -> DamagedEntriesError:
    """Return the error for those of the entries `first` to `last` that a damaged row has."""
    ledger_id, row_first = key >> 32, key & 0xFFFFFFFF
    text = f"ledger {ledger_id}: damaged entries from {row_first} on"
    return DamagedEntriesError(text, ledger_id, max(row_first, first), min(row_first + count - 1, last))


def stored_runs(connection: sqlite3.Connection, ledger_id: int) -> list[StoredRun]:
    """Return (first entry id, count, bytes) of each row of a ledger. Of all entries, read only those of the last row.

    `count` has no checksum. A wrong one would hide entries in the last row, and leaves a gap in any other row.
    """
    rows = connection.execute(
        "SELECT key, count, length(data) FROM segment WHERE key BETWEEN ? AND ?"
        " AND NOT EXISTS (SELECT 1 FROM deleted_ledger WHERE ledger_id = ?) ORDER BY key",
        (*keys_of(ledger_id), ledger_id),
    ).fetchall()
    if rows and (data := _sound(connection, rows[-1][0])) is not None:
        rows[-1] = rows[-1][0], count_of(data), len(data)
    return [(key & 0xFFFFFFFF, count, size - header_size(count)) for key, count, size in rows]


def all_rows(connection: sqlite3.Connection) -> Iterator[Row]:
    """Yield all rows unchecked: the caller checks them."""
    return connection.execute("SELECT key, count, data, checksum FROM segment ORDER BY key")


def _sound(connection: sqlite3.Connection, key: int) -> bytes | None:
    """Return the data of a row, or None when the row is damaged."""
    try:  # a damaged type may claim to be text
        row = connection.execute("SELECT CAST(data AS BLOB), checksum FROM segment WHERE key = ?", (key,)).fetchone()
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        return None
    return row[0] if row and row[0] is not None and row[1] == checksum_of(key, row[0]) else None


def has(connection: sqlite3.Connection, ledger_id: int) -> bool:
    """Return whether a ledger may have rows. Call this outside a transaction, which could not go on after damage."""
    query = "SELECT 1 FROM segment WHERE key BETWEEN ? AND ? LIMIT 1"
    try:
        return connection.execute(query, keys_of(ledger_id)).fetchone() is not None
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        return True


def mark_deleted(connection: sqlite3.Connection, ledger_ids: Iterable[int]) -> None:
    """Hide ledgers from all reads. `delete_slice` deletes their rows later. Raise `StorageError` for an invalid id."""
    rows = ((key_of(each, 0) >> 32,) for each in ledger_ids)
    connection.executemany("INSERT OR IGNORE INTO deleted_ledger VALUES (?)", rows)


def marked_deleted(connection: sqlite3.Connection) -> list[int]:
    """Return the ledgers that are marked as deleted, and still have rows."""
    return [ledger_id for (ledger_id,) in connection.execute("SELECT ledger_id FROM deleted_ledger ORDER BY ledger_id")]


class DeletedRows(NamedTuple):
    """Rows of a ledger that is marked as deleted."""

    ledger_id: int
    keys: list[int]
    damaged: int  # rows among them
    next_key: int | None  # of the next slice; None: the ledger has no more rows


def next_slice(connection: sqlite3.Connection, ledger_id: int, first_key: int = 0) -> DeletedRows:
    """Return the next rows to delete. Call this outside a transaction, in which SQLite would stop at a damaged row."""
    low, high = keys_of(ledger_id)
    rows = connection.execute(
        "SELECT key, length(data) FROM segment WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?",
        (max(low, first_key), high, SLICE_ROWS),
    ).fetchall()
    size, keys, damaged = 0, list[int](), 0
    for key, row_size in rows:
        if _sound(connection, key) is None:
            damaged += 1
        else:
            keys.append(key)
        size += row_size
        if size >= SLICE_BYTES:
            return DeletedRows(ledger_id, keys, damaged, key + 1)
    return DeletedRows(ledger_id, keys, damaged, rows[-1][0] + 1 if len(rows) == SLICE_ROWS else None)


def delete_slice(connection: sqlite3.Connection, rows: DeletedRows) -> None:
    """Delete these rows, and with the last ones the mark of their ledger.

    A damaged row stays marked, because its chain of pages may lead into those of another row, which would be freed too.
    """
    connection.executemany("DELETE FROM segment WHERE key = ?", ((key,) for key in rows.keys))
    if rows.next_key is None:
        connection.execute(
            "DELETE FROM deleted_ledger WHERE ledger_id = ?"
            " AND NOT EXISTS (SELECT 1 FROM segment WHERE key BETWEEN ? AND ?)",
            (rows.ledger_id, *keys_of(rows.ledger_id)),
        )
