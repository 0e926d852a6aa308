"""Store the places of entries in the database, so that an entry of the log is found by its ledger and number.

A row of `run` has the places of up to ROW_PIECES consecutive rows of one ledger in one entry log file. So ten million
messages that were committed one by one are 80,000 rows. The key is that of the first entry: see `segments.py`. Each row
has a CRC32C. The functions work on a connection, in transactions of their callers.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.interface import DamagedEntriesError, code_of
from pulsarium.broker.storage.record import ROW_HEAD_BYTES, RowPlace
from pulsarium.broker.storage.segments import key_of, keys_of
from pulsarium.proto.entry import crc32c

ROW_PIECES = 128

SCHEMA = """
CREATE TABLE IF NOT EXISTS run
    (key INTEGER PRIMARY KEY, file INTEGER NOT NULL, bytes INTEGER NOT NULL, pieces BLOB NOT NULL,
    checksum INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS run_file ON run (file, bytes);
"""

_PIECE = struct.Struct("<IIII")  # first entry, number of entries, offset in the file, bytes of the packed entries
RunRow = tuple[int, Any, Any, Any, Any]  # key, file, bytes of the log, pieces, checksum; damaged ones may have any type

_COLUMNS = "SELECT key, file, bytes, pieces, checksum FROM run"


def add(connection: sqlite3.Connection, ledger_id: int, pieces: Sequence[RowPlace]) -> None:
    """Add places behind those that a ledger has. Join them with the newest row while it has room."""
    last = connection.execute(
        f"{_COLUMNS} WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1", keys_of(ledger_id)
    ).fetchone()
    rows, start = list[RunRow](), 0
    if last is not None and _is_sound(last) and last[1] == pieces[0].file:
        room = ROW_PIECES - len(last[3]) // _PIECE.size
        joined = _same_file(pieces[: max(room, 0)])
        if joined:
            rows.append(_row(last[0], [*unpack(last), *joined]))
            start = len(joined)
    while start < len(pieces):
        some = _same_file(pieces[start : start + ROW_PIECES])
        rows.append(_row(key_of(ledger_id, some[0].first), some))
        start += len(some)
    connection.executemany("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?)", rows)


def live(connection: sqlite3.Connection) -> dict[int, int]:
    """Return the bytes that no deletion covers, by file."""
    return dict(connection.execute("SELECT file, sum(bytes) FROM run GROUP BY file"))


def _same_file(pieces: Sequence[RowPlace]) -> Sequence[RowPlace]:
    for number, piece in enumerate(pieces):
        if piece.file != pieces[0].file:
            return pieces[:number]
    return pieces


def _row(key: int, pieces: Sequence[RowPlace]) -> RunRow:
    packed = b"".join(_PIECE.pack(each.first, each.entries, each.offset, each.size) for each in pieces)
    file, size = pieces[0].file, sum(ROW_HEAD_BYTES + each.size for each in pieces)
    return key, file, size, packed, _checksum(key, file, size, packed)


def _checksum(key: int, file: int, size: int, pieces: bytes) -> int:
    return crc32c(pieces, crc32c(struct.pack("<QQQ", key, file, size)))


def _is_sound(row: RunRow) -> bool:
    key, file, size, pieces, checksum = row
    if not (isinstance(pieces, bytes) and isinstance(file, int) and isinstance(size, int)):
        return False
    return min(file, size) >= 0 and bool(checksum == _checksum(key, file, size, pieces))


def unpack(row: RunRow) -> list[RowPlace]:
    """Return the places of a row. Raise `DamagedEntriesError` for a damaged row."""
    key, file, _, pieces, _ = row
    if not _is_sound(row):
        ledger_id, first = key >> 32, key & 0xFFFFFFFF
        raise DamagedEntriesError(f"ledger {ledger_id}: damaged index from entry {first} on", ledger_id, first, first)
    return [RowPlace(first, count, file, offset, size) for first, count, offset, size in _PIECE.iter_unpack(pieces)]


_WANTED = f"""{_COLUMNS}
WHERE key >= ifnull((SELECT key FROM run WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1), ?)
  AND key <= ?
  AND NOT EXISTS (SELECT 1 FROM deleted_ledger WHERE ledger_id = ?)
ORDER BY key
"""


def pieces_of(connection: sqlite3.Connection, ledger_id: int, first: int, last: int) -> list[RowPlace]:
    """Return the places of the rows that may have the entries `first` to `last`, both included, in order.

    Raise `DamagedEntriesError` for the entries whose places are damaged.
    """
    low, key, high = key_of(ledger_id, 0), key_of(ledger_id, first), key_of(ledger_id, last)
    try:
        rows = connection.execute(_WANTED, (low, key, key, high, ledger_id)).fetchall()
    except sqlite3.DatabaseError as error:
        if code_of(error) != sqlite3.SQLITE_CORRUPT:
            raise
        text = f"ledger {ledger_id}: damaged index between the entries {first} and {last}"
        raise DamagedEntriesError(text, ledger_id, first, last) from None
    found = list[RowPlace]()
    for number, row in enumerate(rows):
        try:
            found += unpack(row)
        except DamagedEntriesError as error:
            # the row ends before the next one
            behind = (rows[number + 1][0] & 0xFFFFFFFF) - 1 if number + 1 < len(rows) else last
            raise DamagedEntriesError(str(error), ledger_id, max(error.first, first), min(behind, last)) from None
    return [each for each in found if each.first <= last and each.first + each.entries > first]


def all_rows(connection: sqlite3.Connection) -> Iterable[RunRow]:
    """Yield all rows, unchecked."""
    return connection.execute(f"{_COLUMNS} ORDER BY key")


def rows_of_file(connection: sqlite3.Connection, file: int, count: int) -> list[RunRow]:
    """Return up to `count` rows of a file, unchecked."""
    return connection.execute(f"{_COLUMNS} WHERE file = ? LIMIT ?", (file, count)).fetchall()


def delete_slice(connection: sqlite3.Connection, ledger_id: int) -> bool:
    """Delete some places of a deleted ledger. Return False when none is left, or only damaged ones."""
    rows = connection.execute(
        f"{_COLUMNS} WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?", (*keys_of(ledger_id), segments.SLICE_ROWS)
    ).fetchall()
    sound = [row for row in rows if _is_sound(row)]
    for row in sound:
        remove(connection, row)
    return bool(sound)


def delete(connection: sqlite3.Connection, ledger_id: int) -> bool:
    """Delete the places of a small ledger. Return False when the ledger has more, or damaged ones."""
    delete_slice(connection, ledger_id)
    return not has(connection, ledger_id)


def has(connection: sqlite3.Connection, ledger_id: int) -> bool:
    """Return whether a ledger has places, in whatever state."""
    row = connection.execute("SELECT 1 FROM run WHERE key BETWEEN ? AND ? LIMIT 1", keys_of(ledger_id)).fetchone()
    return row is not None


def remove(connection: sqlite3.Connection, row: RunRow) -> None:
    connection.execute("DELETE FROM run WHERE key = ?", (row[0],))
