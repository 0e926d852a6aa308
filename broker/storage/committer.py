"""The commit thread, the only thread that writes and deletes.

While there is work, it repeats these steps:

1. Take all waiting batches (up to GROUP_BYTES), and write them in one transaction.
2. Hand all their `done` calls to the event loop with one wake-up.
3. Delete a slice of a deleted ledger.
4. Let another thread copy the log into the database file: see `checkpoints.py`.

`persist.py` names the points between these steps. A failed transaction fails the later batches of its era: see
`Storage.commit`.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pulsarium.broker.logs import Log
from pulsarium.broker.storage import segments
from pulsarium.broker.storage.checkpoints import Checkpoints
from pulsarium.broker.storage.database import PAGE_SIZE, put_metadata, transaction
from pulsarium.broker.storage.deletions import Deletions
from pulsarium.broker.storage.interface import Batch, Done, Durability, Entries, Run, StorageError, code_of
from pulsarium.broker.storage.persist import Hook, PersistPoint
from pulsarium.broker.storage.place import NO_ROOM, Place, Room
from pulsarium.broker.storage.worker import Worker

log = Log("storage")

GROUP_BYTES = 8 << 20  # of entries in one transaction
LOOK_BYTES = 1 << 20  # of log, between two looks at the room on the disk
PLACE_SECONDS = 1.0  # between two checks of existing files
THREAD_ALIVE_SECONDS = 0.5  # between two checks of a thread while a caller waits


class Commit(NamedTuple):
    """A batch with its callback."""

    batch: Batch
    done: Done


class Group:
    """The merged batches of one transaction, in order."""

    def __init__(self) -> None:
        self.waiting: list[Done] = []
        self.runs: dict[int, list[Run]] = {}
        self.metadata: dict[str, bytes | None] = {}
        self.deleted_ledgers: list[int] = []
        self.era = 0
        self.bytes = 0

    def add(self, commit: Commit) -> None:
        self.waiting.append(commit.done)
        for ledger_id, runs in commit.batch.entries.items():
            self.runs.setdefault(ledger_id, []).extend(runs)
            for run in runs:
                self.bytes += sum(map(len, run.entries))
        self.metadata.update(commit.batch.metadata)
        self.deleted_ledgers += commit.batch.deleted_ledgers
        self.era = commit.batch.era

    def is_empty(self) -> bool:
        return not (self.runs or self.metadata or self.deleted_ledgers)

    @property
    def is_one_row(self) -> bool:
        """Return whether a single statement writes the group, as for a message whose producer waits before the next."""
        rest = self.metadata or self.deleted_ledgers or len(self.runs) != 1 or self.bytes > segments.ROW_BYTES
        return not rest and all(len(runs) == 1 for runs in self.runs.values())

    def write(self, connection: sqlite3.Connection) -> int:
        """Write everything into the open transaction. Return the bytes that the log grows by, about."""
        # Runs are packed one by one, so that a large group is not in memory twice.
        rows = (row for ledger_id, runs in self.runs.items() for row in segments.rows_of(ledger_id, runs))
        row_count = segments.insert(connection, rows) if self.runs else 0
        kept = [(path, value) for path, value in self.metadata.items() if value is not None]
        if kept:
            put_metadata(connection, kept)
        if len(kept) < len(self.metadata):
            gone = [(path,) for path, value in self.metadata.items() if value is None]
            connection.executemany("DELETE FROM metadata WHERE path = ?", gone)
        if self.deleted_ledgers:
            segments.mark_deleted(connection, self.deleted_ledgers)
        # The log takes whole pages, at least one for each row and each path.
        return self.bytes + PAGE_SIZE * (row_count + len(self.metadata))


class Barrier:
    """A request that the event loop blocks on, until all earlier requests are served."""

    def __init__(self) -> None:
        self.finished = threading.Event()
        self.error: StorageError | None = None

    def done(self, error: StorageError | None) -> None:
        self.error = error
        self.finished.set()


class Replacement(Barrier):
    """A request to replace everything in the store."""

    def __init__(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        super().__init__()
        self._metadata = metadata
        self._entries = entries

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the new state into the open transaction, which may be larger than memory."""
        connection.execute("PRAGMA cache_spill=ON")
        for table in ("segment", "deleted_ledger", "metadata"):
            connection.execute(f"DELETE FROM {table}")
        segments.insert(connection, (row for ledger, run in self._entries for row in segments.rows_of(ledger, [run])))
        put_metadata(connection, self._metadata.items())
        connection.execute("PRAGMA cache_spill=OFF")


class Committer(Worker[Commit | Barrier]):
    """Commit batches on a connection, and close the connection at the end."""

    def __init__(self, connection: sqlite3.Connection, at: Hook, path: Path, durability: Durability) -> None:
        super().__init__("storage commit")
        self.refusal = ""  # why messages are refused; the event loop reads this
        self._room = Room(connection, path, PAGE_SIZE)
        self._is_full = False
        self._unseen_bytes = LOOK_BYTES  # of log, since the last look
        self._connection = connection
        self._at = at
        self._deletions = Deletions(connection, at)  # reads, so that the connection knows of the log
        self._checkpoints = Checkpoints(connection, path, durability, at)
        self._place = Place((path, path.with_name(f"{path.name}-wal")))
        self._gone = ""  # what happened to the files
        self._place_seen = time.monotonic()
        self._barrier: Barrier | None = None  # the request behind a group
        self._failed_era = -1
        self._failure = ""  # the error of that era, as text, because an exception would keep the group in memory

    def wait_for(self, barrier: Barrier) -> None:
        """Submit a barrier, and block until it is served. Raise `StorageError` on failure."""
        if self._deadline is not None or not self._thread.is_alive():
            raise StorageError("the store is closed")
        self.submit(barrier)
        while not barrier.finished.wait(THREAD_ALIVE_SECONDS):
            if not self._thread.is_alive():
                raise StorageError("the commit thread has died")
        if barrier.error is not None:
            raise barrier.error

    def serve(self, request: Commit | Barrier) -> None:
        if isinstance(request, Barrier):
            request.done(self._pass(request))
            self.background()
            return
        if request.batch.era <= self._failed_era:
            self.hand_back([partial(request.done, StorageError(self._failure))])
            return
        group = self._group(request)
        error = None if group.is_empty() else self._commit(group)
        if error is not None:
            self._failed_era, self._failure = group.era, str(error)
        self.hand_back([partial(done, error) for done in group.waiting])
        self._at(PersistPoint.ACKNOWLEDGED)
        if self._barrier is not None:
            self.serve(self._barrier)
        self.background()  # even with requests waiting, because deletions and copies have to keep up with commits

    def _group(self, request: Commit) -> Group:
        group = Group()
        next_request: Commit | Barrier | None = request
        while isinstance(next_request, Commit):
            group.add(next_request)
            next_request = self.poll() if group.bytes < GROUP_BYTES else None
        self._barrier = next_request
        return group

    def _commit(self, group: Group) -> StorageError | None:
        if self._is_gone():
            return StorageError(f"commit failed: {self._gone}")
        try:
            if group.is_one_row and not self._connection.in_transaction:
                # The statement is a transaction by itself: BEGIN and COMMIT would double its cost.
                self._at(PersistPoint.WRITTEN)
                log_bytes = group.write(self._connection)
            else:
                with transaction(self._connection):
                    log_bytes = group.write(self._connection)
                    self._at(PersistPoint.WRITTEN)
        except Exception as error:  # any error, such as of an id too large, because the thread has to live on
            failure = StorageError(f"commit failed: {error}")
            failure.__cause__ = error
            self.report(failure)
            self._is_gone(look=True)
            if code_of(error) == sqlite3.SQLITE_FULL:
                # The database may still take the contents of the log, which frees the room of the log.
                self._checkpoints.all_at_once()
                self._unseen_bytes = LOOK_BYTES
            return failure
        self._at(PersistPoint.COMMITTED)
        self.report(None)
        self._checkpoints.grew(log_bytes)
        self._unseen_bytes += log_bytes
        self._deletions.add(group.deleted_ledgers)
        self._deletions.resume()
        return None

    def _pass(self, barrier: Barrier) -> StorageError | None:
        if not isinstance(barrier, Replacement):
            return None
        if self._is_gone(look=True):
            return StorageError(f"replacing failed: {self._gone}")
        try:
            with transaction(self._connection):
                barrier.write(self._connection)
                self._at(PersistPoint.WRITTEN)
        except Exception as error:
            return error if isinstance(error, StorageError) else StorageError(f"replacing failed: {error}")
        self._at(PersistPoint.COMMITTED)
        self._checkpoints.all_at_once()
        self._deletions = Deletions(self._connection, self._at)
        return None

    def background(self) -> bool:
        deleted = self._deletions.step()
        if deleted:
            self._checkpoints.grew(64 * PAGE_SIZE)
        try:
            self._checkpoints.step()
        except StorageError as error:
            self.report(error)
        self._look_for_room()
        if self._gone:
            self._is_gone(look=True)
        return deleted

    def _look_for_room(self) -> None:
        if self._unseen_bytes < LOOK_BYTES and not self._is_full:
            return
        was_full, self._is_full = self._is_full, self._room.is_short()
        if self._unseen_bytes >= LOOK_BYTES:
            self._unseen_bytes = 0
            if self._is_full:  # keep the log as short as possible
                self._checkpoints.all_at_once()
        if self._is_full and not was_full:
            log.error("the disk is almost full: messages are refused until there is room")
        elif was_full and not self._is_full:
            log.info("the disk has room again: messages are accepted")
        self._say()

    def _is_gone(self, *, look: bool = False) -> bool:
        """Return whether the files are missing, so that writes are forbidden.

        The files are checked about once a second, and at once with `look`.
        """
        now = time.monotonic()
        if look or self._gone or now - self._place_seen >= PLACE_SECONDS:
            self._place_seen = now
            before, self._gone = self._gone, self._place.problem()
            if self._gone and not before:
                log.error("the data directory is lost: put it back, or restart the broker", reason=self._gone)
            elif before and not self._gone:
                log.info("the data directory is back: messages are accepted")
            self._say()
        return bool(self._gone)

    def _say(self) -> None:
        self.refusal = f"The broker refuses messages: {self._gone}" if self._gone else NO_ROOM if self._is_full else ""

    def close(self) -> None:
        self._checkpoints.close()
