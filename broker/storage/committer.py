"""The commit thread, which appends to the entry log.

While there is work, it repeats these steps:

1. Take all waiting batches (up to GROUP_BYTES), and append them as one record.
2. Hand all their `done` calls to the event loop with one wake-up.
3. Let another thread bring enough commits into the database: see `applier.py`.

A small batch that finds no other under way is written by the event loop itself, while the device answers fast: two
threads that wake each other cost more than the write. `persist.py` names the points between these steps. A failed
record fails the later batches of its era: see `Storage.commit`.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from pulsarium.broker.config.options import Durability
from pulsarium.broker.logs import PartLog
from pulsarium.broker.storage import segments
from pulsarium.broker.storage.applier import Applier, NewFile
from pulsarium.broker.storage.database import DATABASE_NAME, put_metadata, set_applied, set_newest, transaction
from pulsarium.broker.storage.entry_log import EntryLog, Written
from pulsarium.broker.storage.interface import Batch, Done, Entries, EntryRun, StorageError
from pulsarium.broker.storage.pace import Pace
from pulsarium.broker.storage.persist import Hook, PersistPoint
from pulsarium.broker.storage.place import NO_ROOM, OpenedFiles, is_short_of_room
from pulsarium.broker.storage.segments import Row, key_of
from pulsarium.broker.storage.unapplied import Unapplied
from pulsarium.broker.storage.worker import Barrier, Worker

log = PartLog("storage")

GROUP_BYTES = 8 << 20  # of entries in one record
LOOK_BYTES = 1 << 20  # of log, between two looks at the room on the disk
SMALL_BYTES = 128  # that a commit takes beside its entries, about
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
PLACE_SECONDS = 1.0  # between two checks of existing files


class CommittedBatch(NamedTuple):
    """A batch with its callback."""

    batch: Batch
    done: Done


class MergedBatches:
    """The merged batches of one transaction, in order."""

    def __init__(self) -> None:
        self.waiting: list[Done] = []
        self.runs: dict[int, list[EntryRun]] = {}
        self.metadata: dict[str, bytes | None] = {}
        self.deleted_ledgers: list[int] = []
        self.era = 0
        self.bytes = 0

    def add(self, commit: CommittedBatch) -> None:
        self.waiting.append(commit.done)
        for ledger_id, runs in commit.batch.entries.items():
            self.runs.setdefault(ledger_id, []).extend(runs)
        self.bytes += commit.batch.size
        self.metadata.update(commit.batch.metadata)
        self.deleted_ledgers += commit.batch.deleted_ledgers
        self.era = commit.batch.era

    def is_empty(self) -> bool:
        return not (self.runs or self.metadata or self.deleted_ledgers)

    def rows(self) -> list[Row]:
        """Return the rows of the group. Raise `StorageError` for ids that are too large."""
        for ledger_id in self.deleted_ledgers:
            key_of(ledger_id, 0)
        return [row for ledger_id, runs in self.runs.items() for row in segments.rows_of(ledger_id, runs)]


class Replacement(Barrier):
    """A request to replace everything in the store."""

    def __init__(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        super().__init__()
        self._metadata = metadata
        self._entries = entries

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the new state into the open transaction, which may be larger than memory."""
        connection.execute("PRAGMA cache_spill=ON")
        for table in ("segment", "deleted_ledger", "metadata", "run"):
            connection.execute(f"DELETE FROM {table}")
        segments.insert(connection, (row for ledger, run in self._entries for row in segments.rows_of(ledger, [run])))
        put_metadata(connection, self._metadata.items())
        connection.execute("PRAGMA cache_spill=OFF")


class Committer(Worker[CommittedBatch | Barrier]):
    """Append batches to the entry log."""

    def __init__(
        self, entry_log: EntryLog, unapplied: Unapplied, applier: Applier, durability: Durability, at: Hook
    ) -> None:
        super().__init__("storage commit")
        self.refusal = ""  # why messages are refused; the event loop reads this
        self._log = entry_log
        self._unapplied = unapplied
        self._applier = applier
        self._at = at
        self._is_full = False
        self._unseen_bytes = LOOK_BYTES  # of log, since the last look
        directory = entry_log.files.directory
        files = [directory / f"{DATABASE_NAME}{suffix}" for suffix in ("", "-wal")]
        self._place = OpenedFiles(entry_log.files.descriptor, files)
        self._gone = ""  # what happened to the files
        self._place_seen = time.monotonic()
        self._barrier: Barrier | None = None  # the request behind a group
        self._failed_era = -1
        self._failure = ""  # the error of that era, as text, because an exception would keep the group in memory
        self._writing = threading.Lock()  # held by the one thread that writes, and uses all of the above
        self._pace = Pace(durability)
        self._unanswered = 0  # commits of the thread whose `done` was not called; only the event loop uses this

    # on the event loop

    def commit(self, commit: CommittedBatch) -> None:
        """Write a batch at once, or let the thread write it."""
        if not self._commits_now(commit):
            self._unanswered += 1
            self.submit(commit)

    def wait_for(self, barrier: Barrier) -> None:
        """Submit a barrier, and block until it is served. Raise `StorageError` on failure."""
        if not self.is_serving:
            raise StorageError("the store is closed")
        self.submit(barrier)
        self.wait_until(barrier)

    def _answered(self, count: int) -> None:
        self._unanswered -= count

    def _commits_now(self, commit: CommittedBatch) -> bool:
        """Write a small batch on the event loop, unless another one is under way."""
        if self._unanswered or not (self.is_serving and self._pace.allows(commit.batch)):
            return False
        if not self._writing.acquire(blocking=False):
            return False
        try:
            if self._log.needs_file or self._applier.is_behind or self._gone:
                return False
            error = self._result(self._group(commit, alone=True))
        finally:
            self._writing.release()
        commit.done(error)
        self._at(PersistPoint.ACKNOWLEDGED)
        if self._unseen_bytes >= LOOK_BYTES:
            self.submit(Barrier())  # the thread looks for room
        return True

    # on the thread that has the lock

    def serve(self, request: CommittedBatch | Barrier) -> None:
        if isinstance(request, Barrier):
            with self._writing:
                error = self._pass(request)
            request.done(error)
            self.background()
            return
        with self._writing:
            group = self._group(request)
            result = self._result(group)
        answers = [partial(done, result) for done in group.waiting]
        self.hand_back([*answers, partial(self._answered, len(answers))])
        self._at(PersistPoint.ACKNOWLEDGED)
        if self._barrier is not None:
            self.serve(self._barrier)
        self.background()

    def _group(self, request: CommittedBatch, *, alone: bool = False) -> MergedBatches:
        group = MergedBatches()
        next_request: CommittedBatch | Barrier | None = request
        is_refused = request.batch.era <= self._failed_era
        while isinstance(next_request, CommittedBatch):
            group.add(next_request)
            next_request = None if alone or is_refused or group.bytes >= GROUP_BYTES else self.poll()
        self._barrier = next_request
        return group

    def _result(self, group: MergedBatches) -> StorageError | None:
        """Store a group. Return the error of the group, or of the era that it belongs to."""
        if group.era <= self._failed_era:
            return StorageError(self._failure)
        error = None if group.is_empty() else self._commit(group)
        if error is not None:
            self._failed_era, self._failure = group.era, str(error)
        return error

    def _commit(self, group: MergedBatches) -> StorageError | None:
        if self._is_gone():
            return StorageError(f"commit failed: {self._gone}")
        try:
            written = self._append(group)
        except Exception as error:  # any error, such as of an id too large, because the thread has to live on
            is_full = isinstance(error, OSError) and error.errno in FULL
            failure = StorageError(f"commit failed: {'the disk is full' if is_full else error}")
            failure.__cause__ = error
            self.report(failure)
            self._is_gone(look=True)
            if is_full:
                self._unseen_bytes = LOOK_BYTES
            return failure
        self._at(PersistPoint.COMMITTED)
        self._unapplied.add(written, group.metadata, group.deleted_ledgers, self._log.end)
        self.report(None)
        self._unseen_bytes += group.bytes + SMALL_BYTES
        self._applier.grew(deleted=bool(group.deleted_ledgers))
        return None

    def _append(self, group: MergedBatches) -> list[Written]:
        if self._applier.is_behind:
            self._applier.do()
        for ledger_id, runs in group.runs.items():
            self._unapplied.refuse_stored(ledger_id, runs[0].first_entry_id)
        rows = group.rows()
        if self._log.needs_file:
            self._log.begin_file()
            self._place.follow(self._log.files.path(self._log.end.file))
            self._applier.submit(NewFile(self._log.end.file))
        self._at(PersistPoint.BEGUN)
        self._pace.begin()
        written = self._log.append(rows, group.metadata, group.deleted_ledgers, partial(self._at, PersistPoint.WRITTEN))
        self._pace.end(group.bytes)
        return written

    def _pass(self, barrier: Barrier) -> StorageError | None:
        if not isinstance(barrier, Replacement):
            return None
        if self._is_gone(look=True):
            return StorageError(f"replacing failed: {self._gone}")
        try:
            self._applier.do(partial(self._replace, barrier))
        except StorageError as error:
            return error
        return None

    def _replace(self, replacement: Replacement, connection: sqlite3.Connection) -> None:
        """Replace everything, on the thread of the applier, while this one waits."""
        try:
            with transaction(connection):
                replacement.write(connection)
                set_applied(connection, self._log.end)
                set_newest(connection, self._log.end.file)
                self._at(PersistPoint.WRITTEN)
        except Exception as error:
            raise error if isinstance(error, StorageError) else StorageError(f"replacing failed: {error}") from error
        self._unapplied.forget(self._log.end)
        self._at(PersistPoint.COMMITTED)

    def background(self) -> bool:
        if not (self._wants_to_look or self._gone):
            return False  # without the lock, which the event loop needs to write
        with self._writing:
            self._look_for_room()
            if self._gone:
                self._is_gone(look=True)
        return False

    @property
    def _wants_to_look(self) -> bool:
        return self._unseen_bytes >= LOOK_BYTES or self._is_full

    def _look_for_room(self) -> None:
        if not self._wants_to_look:
            return
        self._unseen_bytes = 0
        was_full, self._is_full = self._is_full, is_short_of_room(self._log.files.directory)
        if self._is_full and not was_full:
            log.error("the disk is almost full: messages are refused until there is room")
        elif was_full and not self._is_full:
            log.info("the disk has room again: messages are accepted")
        self._say()

    def _is_gone(self, *, look: bool = False) -> bool:
        """Return whether the files are missing, so that writes are forbidden.

        The files are checked about once a second, and at once with `look` or after a change of the directory. So no
        client has a receipt for what goes into a deleted file.
        """
        now = time.monotonic()
        look = self._place.has_changed() or look  # in this order, because each commit has to ask
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
