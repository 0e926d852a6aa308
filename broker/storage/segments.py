"""Entries in a SQLite table: one row a run, so that 256 entries cost one insert.

A row's key is `ledger id << 32 | first entry id`: a ledger is a range of keys, and a run is found by its last key at or
below the entry. Plain functions on a connection; transactions are the caller's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing

from pulsarium.broker.storage.errors import StorageError
from pulsarium.broker.storage.interface import Run, StoredRun
from pulsarium.broker.storage.packing import header_size, pack, unpack

ROW_BYTES = 256 * 1024  # of entries. Longer rows save nothing more, and make reading a single entry dearer.
SLICE_BYTES = 16 << 20  # deleting walks each row's chain of pages: about 0.15 ms a MB
SLICE_ROWS = 1000

SCHEMA = """
CREATE TABLE IF NOT EXISTS segment (key INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS deleted_ledger (ledger_id INTEGER PRIMARY KEY);
"""

Row = tuple[int, int, bytes]  # key, count, packed entries


def key_of(ledger_id: int, entry_id: int) -> int:
    """Where an entry's row is sorted in. Raises StorageError for ids that the key has no room for."""
    if not (0 <= ledger_id < 1 << 31 and 0 <= entry_id < 1 << 32):
        raise StorageError(f"ledger {ledger_id}, entry {entry_id}: beyond what the store can number")
    return ledger_id << 32 | entry_id


def rows_of(ledger_id: int, runs: Iterable[Run]) -> Iterator[Row]:
    """Rows for the runs of one ledger: adjacent ones joined, long ones cut, to about ROW_BYTES each."""
    first, joined, size = 0, list[bytes](), 0
    for run in runs:
        for piece, piece_size in _cut(run):
            if joined and (piece.first_entry_id != first + len(joined) or size + piece_size > ROW_BYTES):
                yield key_of(ledger_id, first), len(joined), pack(joined)
                joined, size = [], 0
            if not joined:
                first = piece.first_entry_id
            joined += piece.entries
            size += piece_size
    if joined:
        yield key_of(ledger_id, first), len(joined), pack(joined)


def _cut(run: Run) -> Iterator[tuple[Run, int]]:
    total = sum(map(len, run.entries))
    if total <= ROW_BYTES:
        yield run, total
        return
    start, size = 0, 0
    for index, entry in enumerate(run.entries):
        if index > start and size + len(entry) > ROW_BYTES:
            yield Run(run.first_entry_id + start, run.entries[start:index]), size
            start, size = index, 0
        size += len(entry)
    yield Run(run.first_entry_id + start, run.entries[start:]), size


def insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> int:
    """Add rows; returns how many. A run that starts at a stored run's first entry is an error."""
    return connection.executemany("INSERT INTO segment VALUES (?, ?, ?)", rows).rowcount


_READ = """
SELECT key, data FROM segment
WHERE key >= ifnull((SELECT key FROM segment WHERE key BETWEEN :ledger AND :first ORDER BY key DESC LIMIT 1), :first)
  AND key <= :last
  AND NOT EXISTS (SELECT 1 FROM deleted_ledger WHERE ledger_id = :ledger_id)
ORDER BY key
"""


def read(connection: sqlite3.Connection, ledger_id: int, first: int, last: int) -> list[bytes]:
    """The entries `first` to `last`, both included, from one snapshot. Raises StorageError when one is missing."""
    entries: list[bytes] = []
    keys = {"ledger": key_of(ledger_id, 0), "first": key_of(ledger_id, first), "last": key_of(ledger_id, last)}
    # Closed even when a row is damaged: an open cursor would keep its snapshot, and the log could not be reused.
    with closing(connection.execute(_READ, {**keys, "ledger_id": ledger_id})) as cursor:
        for key, data in cursor:
            row_first = key & 0xFFFFFFFF
            wanted = first + len(entries)
            if row_first > wanted:
                break
            entries += unpack(data, wanted - row_first, last + 1 - row_first)
    if len(entries) != max(0, last + 1 - first):
        raise StorageError(f"ledger {ledger_id}: entry {first + len(entries)} of {first}..{last} is not stored")
    return entries


def stored_runs(connection: sqlite3.Connection, ledger_id: int) -> list[StoredRun]:
    """(first entry id, count, bytes) of each row of a ledger. Reads no entries."""
    rows = connection.execute(
        "SELECT key, count, length(data) FROM segment WHERE key BETWEEN ? AND ?"
        " AND NOT EXISTS (SELECT 1 FROM deleted_ledger WHERE ledger_id = ?) ORDER BY key",
        (*_keys_of(ledger_id), ledger_id),
    )
    return [(key & 0xFFFFFFFF, count, size - header_size(count)) for key, count, size in rows]


def mark_deleted(connection: sqlite3.Connection, ledger_ids: Iterable[int]) -> None:
    """Hide ledgers: nothing of them is read any more. Their rows go with `delete_slice`."""
    connection.executemany("INSERT OR IGNORE INTO deleted_ledger VALUES (?)", ((each,) for each in ledger_ids))


def marked_deleted(connection: sqlite3.Connection) -> list[int]:
    """The ledgers which still have rows to be deleted."""
    return [ledger_id for (ledger_id,) in connection.execute("SELECT ledger_id FROM deleted_ledger ORDER BY ledger_id")]


def delete_slice(connection: sqlite3.Connection, ledger_id: int) -> bool:
    """Delete the next rows of a ledger marked deleted, and the mark with the last of them. True: that is it."""
    low, high = _keys_of(ledger_id)
    rows = connection.execute(
        "SELECT key, length(data) FROM segment WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?", (low, high, SLICE_ROWS)
    ).fetchall()
    size, until = 0, low
    for key, row_size in rows:
        until, size = key, size + row_size
        if size >= SLICE_BYTES:
            break
    connection.execute("DELETE FROM segment WHERE key BETWEEN ? AND ?", (low, until))
    finished = len(rows) < SLICE_ROWS and (not rows or until == rows[-1][0])
    if finished:
        connection.execute("DELETE FROM deleted_ledger WHERE ledger_id = ?", (ledger_id,))
    return finished


def _keys_of(ledger_id: int) -> tuple[int, int]:
    return key_of(ledger_id, 0), key_of(ledger_id, 0xFFFFFFFF)
