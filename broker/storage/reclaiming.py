"""Give back the room of entry log files whose entries are mostly deleted.

A file without entries is deleted. Before that, the few entries that a mostly dead file still has are moved into rows of
the database (`segments.py`), in slices. They have outlived their neighbors, and the database reuses the room of single
rows. So a byte is written twice only if the byte stays while those around it go.
"""

from __future__ import annotations

import sqlite3

from pulsarium.broker.logs import PartLog
from pulsarium.broker.storage import index, segments
from pulsarium.broker.storage.database import DATABASE_NAME, applied, transaction
from pulsarium.broker.storage.entries import LogRows
from pulsarium.broker.storage.index import RunRow
from pulsarium.broker.storage.interface import EntryRun, StorageError
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.persist import Hook, PersistPoint
from pulsarium.broker.storage.segments import rows_of, unpack

log = PartLog("storage")

MOSTLY_DEAD = 1 / 2  # a file with at most this part of its bytes alive
SLICE_ROWS = 16  # of the index, in one transaction
SLICE_BYTES = 4 << 20


class Reclaiming:
    """The files before the one up to which the database has the log."""

    def __init__(self, connection: sqlite3.Connection, files: LogFiles, at: Hook) -> None:
        self._connection = connection
        self._files = files
        self._at = at
        self._paused = False
        self._damaged: set[int] = set()  # files that cannot be moved

    def resume(self) -> None:
        """Look again, because something was applied or deleted."""
        self._paused = False

    def step(self) -> bool:
        """Move a slice, or delete a file. Return False when nothing is left, or a failure waits for `resume`."""
        if self._paused:
            return False
        number = None
        try:
            number = self._next()
            if number is not None:
                self._reclaim(number)
                return True
        except (OSError, sqlite3.Error) as error:
            log.warning("an entry log file cannot be given back yet", file=number, reason=error)
        except StorageError as error:
            log.error("an entry log file with damaged entries stays", file=number, reason=error)
            assert number is not None
            self._damaged.add(number)
            return True
        self._paused = True
        return False

    def _next(self) -> int | None:
        """Return a file to give back, or None."""
        until = applied(self._connection).file
        live = index.live(self._connection)
        for number in self._files.numbers():
            if number >= until:
                break
            size = self._files.path(number).stat().st_size
            if number not in self._damaged and live.get(number, 0) <= size * MOSTLY_DEAD:
                return number
        return None

    def _reclaim(self, number: int) -> None:
        rows = index.rows_of_file(self._connection, number, SLICE_ROWS)
        if rows:
            with transaction(self._connection):
                self._move(rows)
                self._at(PersistPoint.MOVING)
            return
        # Until here, a machine crash may take the transactions that made the file needless.
        self._files.sync_beside(f"{DATABASE_NAME}-wal")
        self._at(PersistPoint.REMOVING)
        self._files.remove(number)

    def _move(self, rows: list[RunRow]) -> None:
        stored, size = LogRows(self._files), 0
        for row in rows:
            ledger_id, runs = row[0] >> 32, list[EntryRun]()
            for piece in index.unpack(row):
                found = stored.row(ledger_id, piece)
                if found is None:
                    raise StorageError(f"ledger {ledger_id}: damaged entries from {piece.first} on")
                runs.append(EntryRun(piece.first, unpack(found[2])))
                size += piece.size
            segments.insert(self._connection, rows_of(ledger_id, runs))
            index.remove(self._connection, row)
            if size >= SLICE_BYTES:
                break
