"""Show the contents of a data directory: its entry log files, their records and ledgers. Reads only.

The directory may be that of a running or of a killed broker. The database says which bytes are still wanted, and the
files say the rest. A running broker may append meanwhile, so the end of the newest file is no error.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Container, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from pulsarium.broker.storage import index, segments
from pulsarium.broker.storage.database import DATABASE_NAME, advice, applied, newest, open_to_look
from pulsarium.broker.storage.entry_log import RecordEnd, is_lost
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.record import (
    FILE_HEAD_BYTES,
    FileHead,
    LogRecord,
    RowPlace,
    decode,
    file_head,
    later_records,
    rest_of,
)


class InspectedRow(NamedTuple):
    """A row of an entry log file: consecutive entries of one ledger. A row that is not needed is garbage."""

    ledger_id: int
    piece: RowPlace
    needed: bool


class LogFile(NamedTuple):
    """An entry log file. `state` is "sound", or says what is wrong at which offset."""

    number: int
    name: str
    size: int
    records: int
    first_record: int
    state: str
    rows: list[InspectedRow]

    @property
    def entries(self) -> int:
        """Return the number of entries in the file."""
        return sum(row.piece.entries for row in self.rows)

    @property
    def garbage(self) -> float:
        """Return the share of the stored entries, in bytes, that no ledger needs any more."""
        total = sum(row.piece.size for row in self.rows)
        return sum(row.piece.size for row in self.rows if not row.needed) / total if total else 0.0


class InspectedLedger(NamedTuple):
    """The entries of a ledger. `moved` bytes of them are in the database, because their file was mostly garbage."""

    ledger_id: int
    entries: int
    bytes: int
    moved: int
    garbage: int


class DirectoryContents(NamedTuple):
    """The contents of a data directory. `applied` is the place up to which the database has the log."""

    applied: RecordEnd
    files: list[LogFile]
    ledgers: list[InspectedLedger]


def inspect(directory: Path) -> DirectoryContents:
    """Return the contents of a data directory. Raise `StorageError` when the directory has no readable data."""
    path = directory / DATABASE_NAME
    if not path.is_file():
        raise StorageError(f"{directory} holds no data of a broker; name the folder of serve --data")
    try:
        stopped = not path.with_name(f"{path.name}-wal").exists()
        with closing(open_to_look(path, still=stopped)) as connection:
            connection.execute("BEGIN")  # the database at one moment
            return _inspected(connection, LogFiles(directory))
    except sqlite3.Error as error:
        raise StorageError(f"cannot use {path}: {error}; {advice(error)}") from error


def _inspected(connection: sqlite3.Connection, logs: LogFiles) -> DirectoryContents:
    until, deleted = applied(connection), {*segments.marked_deleted(connection)}
    known = newest(connection)
    files = [_file(logs, number, until, known, _needed(connection, number, deleted)) for number in logs.numbers()]
    if is_lost(known, until, [file.number for file in files]):
        files.append(LogFile(known, logs.path(known).name, 0, 0, 0, "missing", []))
    return DirectoryContents(until, files, _ledgers(connection, files, deleted))


def _needed(connection: sqlite3.Connection, number: int, deleted: Container[int]) -> set[int]:
    """Return the offsets of the rows of a file that the index still has."""
    found = set[int]()
    for row in index.rows_of_file(connection, number, -1):
        with suppress(DamagedEntriesError):
            if row[0] >> 32 not in deleted:
                found.update(piece.offset for piece in index.unpack(row))
    return found


def _file(logs: LogFiles, number: int, until: RecordEnd, known: int, needed: Container[int]) -> LogFile:
    name = logs.path(number).name
    try:
        data = logs.read(number)
    except FileNotFoundError:  # a running broker has just given it back
        return LogFile(number, name, 0, 0, 0, "given back", [])
    head = file_head(data)
    if head is None:
        # A process that is killed when it creates a file leaves less.
        damaged = len(data) > FILE_HEAD_BYTES or number <= known
        return LogFile(number, name, len(data), 0, 0, "the head of the file is damaged" if damaged else "sound", [])
    records, state = _records(data, number, head)
    if number == until.file and len(data) < until.offset:
        state = f"cut at {len(data)}, with {until.offset - len(data)} applied bytes behind"
    rows = list[InspectedRow]()
    for record in records:
        fresh = (number, record.end) > (until.file, until.offset)
        rows += (InspectedRow(ledger_id, piece, fresh or piece.offset in needed) for ledger_id, piece in record.pieces)
    return LogFile(number, name, len(data), len(records), head.first_sequence, state, rows)


def _records(data: bytes, number: int, head: FileHead) -> tuple[list[LogRecord], str]:
    """Return all undamaged records of a file, and its state."""
    records, offset, sequence = list[LogRecord](), FILE_HEAD_BYTES, head.first_sequence
    while (record := decode(data, offset, number, head.salt, sequence)) is not None:
        records.append(record)
        offset, sequence = record.end, sequence + 1
    rest = rest_of(data, offset, number, head.salt, sequence)
    if rest is None:
        return records, "sound"
    if rest.unfinished:
        return records, f"an unfinished record at {offset}"
    behind = list(later_records(data, offset, number, head.salt, sequence))
    return records + behind, f"damaged at {offset}, with {len(behind)} records behind"


def _ledgers(
    connection: sqlite3.Connection, files: Iterable[LogFile], deleted: Container[int]
) -> list[InspectedLedger]:
    entries, sizes, moved, garbage = (Counter[int]() for _ in range(4))
    for key, count, size in connection.execute("SELECT key, count, length(data) FROM segment"):
        if key >> 32 not in deleted:
            entries[key >> 32] += count
            moved[key >> 32] += size
    for file in files:
        for ledger_id, piece, needed in file.rows:
            entries[ledger_id] += piece.entries if needed else 0
            (sizes if needed else garbage)[ledger_id] += piece.size
    return [
        InspectedLedger(each, entries[each], sizes[each] + moved[each], moved[each], garbage[each])
        for each in sorted(entries)
    ]
