"""Spill entries that have no room in memory to a temporary file, without a data directory.

The file is a SQLite database with an empty name. SQLite deletes such a file from its directory after opening it, so
that the system frees it at the end of the process. SQLITE_TMPDIR or TMPDIR chooses the directory when the process
starts. The default is /var/tmp, which unlike /tmp is rarely in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import partial

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.database import PAGE_SIZE, TABLES, transaction
from pulsarium.broker.storage.deletions import Deletions
from pulsarium.broker.storage.interface import Done, EntryRun, StoredRun
from pulsarium.broker.storage.worker import Job, JobWorker

CACHE_KIB = 2048  # of changed pages before they are written to the file


class Spill(JobWorker):
    """The temporary store and its thread."""

    def __init__(self) -> None:
        connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute("PRAGMA journal_mode=MEMORY")  # of changed pages, not of added ones
        connection.execute("PRAGMA secure_delete=OFF")
        connection.executescript(TABLES)
        super().__init__("storage spill", connection)
        self._deletions = Deletions(connection)

    def put(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        """Store a run. `done` receives the result."""

        def insert(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                segments.insert(connection, segments.rows_of(ledger_id, [run]))
            self._deletions.resume()

        self.submit(Job(insert, done, "spill"))

    def put_now(self, ledger_id: int, run: EntryRun) -> None:
        """Store a run on the calling thread. Raise `StorageError` on failure."""
        self.now(partial(segments.insert, rows=segments.rows_of(ledger_id, [run])))

    def forget(self, ledger_ids: Iterable[int]) -> None:
        """Delete ledgers. Later runs reuse their room in the file."""

        def mark(connection: sqlite3.Connection) -> None:
            segments.mark_deleted(connection, ledger_ids)
            self._deletions.add(ledger_ids)

        self.submit(Job(mark, _ignore, "forget"))

    def stored_runs(self, ledger_id: int) -> list[StoredRun]:
        """Return the stored runs of a ledger, read on the calling thread."""
        return self.now(partial(segments.stored_runs, ledger_id=ledger_id))

    def read_now(self, ledger_id: int, first: int, last: int) -> list[bytes]:
        """Return the entries `first` to `last`, both included, read on the calling thread."""
        return self.now(partial(segments.read, ledger_id=ledger_id, first=first, last=last))

    def serve(self, request: Job) -> None:
        super().serve(request)
        self.background()

    def background(self) -> bool:
        with self._using:
            return self._deletions.step()


def _ignore(result: object) -> None:
    """Ignore the result of a deletion. The worker has logged any error."""
