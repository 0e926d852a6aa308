"""Read entries: the newest commits, the entry log, and the rows of the database are one sequence for readers."""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from pulsarium.broker.storage import index, segments
from pulsarium.broker.storage.interface import DamagedEntriesError, StoredRun
from pulsarium.broker.storage.log_files import LogFiles, OpenFile
from pulsarium.broker.storage.record import ROW_HEAD_BYTES, RowPlace, row_at
from pulsarium.broker.storage.segments import Row, header_size, key_of
from pulsarium.broker.storage.unapplied import Unapplied

RUN_BYTES = segments.ROW_BYTES  # of a stored run, unless one row has more
LAST_ENTRY = 0xFFFFFFFF
TRIES = 5  # a file may be moved into the database while a reader looks for its entries


def read(
    connection: sqlite3.Connection, files: LogFiles, unapplied: Unapplied, ledger_id: int, first: int, last: int
) -> list[bytes]:
    """Return the entries `first` to `last`, both included.

    Raise `DamagedEntriesError` for the entries of the first row that is damaged or missing.
    """
    for _ in range(TRIES - 1):
        try:
            return _read(connection, files, unapplied, ledger_id, first, last)
        except FileNotFoundError:
            continue
    try:
        return _read(connection, files, unapplied, ledger_id, first, last)
    except FileNotFoundError as error:
        text = f"ledger {ledger_id}: {error.filename} is missing, with entries from {first} on"
        raise DamagedEntriesError(text, ledger_id, first, last) from None


def _read(
    connection: sqlite3.Connection, files: LogFiles, unapplied: Unapplied, ledger_id: int, first: int, last: int
) -> list[bytes]:
    entries: list[bytes] = []
    wanted = first
    if unapplied.is_deleted(ledger_id):
        text = f"ledger {ledger_id}: entry {first} of {first}..{last} is not stored"
        raise DamagedEntriesError(text, ledger_id, first, last)
    rows = LogRows(files)
    for piece in _pieces(connection, unapplied, ledger_id, first, last):
        if piece.first > wanted:
            entries += segments.read(connection, ledger_id, wanted, piece.first - 1)
        row = rows.row(ledger_id, piece)
        if row is None:
            text = f"ledger {ledger_id}: damaged entries from {piece.first} on"
            end = min(piece.first + piece.entries - 1, last)
            raise DamagedEntriesError(text, ledger_id, max(piece.first, first), end)
        entries += segments.unpack(row[2], max(wanted - piece.first, 0), last + 1 - piece.first)
        wanted = piece.first + piece.entries
    if wanted <= last:
        entries += segments.read(connection, ledger_id, wanted, last)
    return entries


def stored_runs(connection: sqlite3.Connection, unapplied: Unapplied, ledger_id: int) -> list[StoredRun]:
    """Return (first entry id, count, bytes) of the stored runs of a ledger, in order."""
    newest = unapplied.pieces(ledger_id, 0, LAST_ENTRY)
    if unapplied.is_deleted(ledger_id):
        return []
    pieces = _merged(newest, index.pieces_of(connection, ledger_id, 0, LAST_ENTRY))
    moved = segments.stored_runs(connection, ledger_id)  # read last, so some may have been moved after their places
    runs = list[StoredRun]()
    for first, count, size in ((each.first, each.entries, each.size - header_size(each.entries)) for each in pieces):
        if _has(moved, first):
            continue
        if runs and runs[-1][0] + runs[-1][1] == first and runs[-1][2] + size <= RUN_BYTES:
            runs[-1] = runs[-1][0], runs[-1][1] + count, runs[-1][2] + size
        else:
            runs.append((first, count, size))
    return sorted(runs + moved)


def _has(runs: Sequence[StoredRun], entry_id: int) -> bool:
    """Return whether one of the runs, which are in order, has an entry."""
    number = bisect_right(runs, entry_id, key=lambda run: run[0]) - 1
    return number >= 0 and entry_id < runs[number][0] + runs[number][1]


def _pieces(
    connection: sqlite3.Connection, unapplied: Unapplied, ledger_id: int, first: int, last: int
) -> list[RowPlace]:
    """Return the places of the entries `first` to `last`, in order."""
    key_of(ledger_id, first)
    newest = unapplied.pieces(ledger_id, first, last)
    if newest and newest[0].first <= first:
        return newest
    return _merged(newest, index.pieces_of(connection, ledger_id, first, last))


def _merged(newest: Sequence[RowPlace], indexed: Sequence[RowPlace]) -> list[RowPlace]:
    """Return all places once, although the applier may have brought some of the newest ones into the index."""
    return sorted({each.first: each for each in (*indexed, *newest)}.values())


class LogRows:
    """Rows of the entry log. Their files stay open as long as this object."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files
        self._open: dict[int, OpenFile] = {}

    def row(self, ledger_id: int, piece: RowPlace) -> Row | None:
        """Return the row at a place, or None for a damaged row. Raise `FileNotFoundError` without its file."""
        file = self._open.get(piece.file)
        if file is None:
            file = self._open[piece.file] = self._files.open(piece.file)
        row = row_at(os.pread(file.descriptor, ROW_HEAD_BYTES + piece.size, piece.offset), 0)
        if row is None or row[0] != key_of(ledger_id, piece.first) or row[1] != piece.entries:
            return None
        return row


def log_rows(connection: sqlite3.Connection, files: LogFiles, unapplied: Unapplied) -> Iterator[tuple[int, Row | None]]:
    """Yield all rows of the log with their keys, in the order of ledgers. A damaged row is None."""
    ledgers = {key >> 32 for key, *_ in index.all_rows(connection)} | unapplied.ledgers()
    rows = LogRows(files)
    for ledger_id in sorted(ledgers):
        for piece in _pieces(connection, unapplied, ledger_id, 0, LAST_ENTRY):
            yield key_of(ledger_id, piece.first), rows.row(ledger_id, piece)
