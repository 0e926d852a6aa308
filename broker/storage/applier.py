"""The thread that brings commits from the entry log into the database, and gives room back.

No commit waits for this thread, unless the device falls behind by MOST times as much as one application takes. Until
commits are applied, readers find them in `unapplied.py`, and a new start reads them from the log again. So the bounds
below are also those of a new start.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import partial

from pulsarium.broker.config.options import Durability
from pulsarium.broker.storage import index, segments
from pulsarium.broker.storage.database import change_metadata, set_applied, set_newest, transaction
from pulsarium.broker.storage.deletions import Deletions
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.persist import Hook, PersistPoint
from pulsarium.broker.storage.reclaiming import Reclaiming
from pulsarium.broker.storage.unapplied import Unapplied, UnappliedPart
from pulsarium.broker.storage.worker import Barrier, Worker, attempt

APPLY_BYTES = 32 << 20  # of log that are applied at once
APPLY_CHANGES = 20_000  # of rows and paths
MOST = 4  # times as much, and commits wait
STEPS = 16  # of deletions and moves between two requests
SOON_SECONDS = 0.5  # until a deletion is applied, so that many share one transaction


class ApplyRequest(Barrier):
    """A request to apply the commits that there are, now or soon."""

    def __init__(self, *, soon: bool = False) -> None:
        super().__init__()
        self.soon = soon


class NewFile(ApplyRequest):
    """A request to note the number of a file that the log has begun. Otherwise nobody would miss the file."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class AllWork(ApplyRequest):
    """A request to apply all commits, and to do `work` in the database afterwards."""

    def __init__(self, work: Callable[[sqlite3.Connection], None] | None = None) -> None:
        super().__init__()
        self.work = work


class Applier(Worker[ApplyRequest]):
    """The only writer of the database. It closes its connection at the end."""

    def __init__(
        self, connection: sqlite3.Connection, files: LogFiles, unapplied: Unapplied, durability: Durability, at: Hook
    ) -> None:
        super().__init__("storage apply")
        self._connection = connection
        self._connection_is_closed = False
        self._files = files
        self._unapplied = unapplied
        self._syncs = durability != "none"
        self._at = at
        self._deletions = Deletions(connection, at)
        self._reclaiming = Reclaiming(connection, files, at)
        self._asked = False  # for commits that the thread has not taken yet
        self._failed = False  # the last time, so two parts wait
        self._now = threading.Event()  # ends the wait for further deletions

    # on the threads that commit

    def grew(self, *, deleted: bool) -> None:
        """Let the thread apply commits when there are enough, or soon after a deletion."""
        share = max(self._unapplied.size / APPLY_BYTES, self._unapplied.changes / APPLY_CHANGES)
        if share < 1 and not deleted:
            return
        if not self._asked:
            self._asked = True
            self.submit(ApplyRequest(soon=share < 1))
        if share >= 1:
            self._now.set()

    @property
    def is_behind(self) -> bool:
        """Return whether commits have to wait."""
        most = MOST * APPLY_BYTES, MOST * APPLY_CHANGES
        return self._unapplied.size >= most[0] or self._unapplied.changes >= most[1]

    def do(self, work: Callable[[sqlite3.Connection], None] | None = None) -> None:
        """Apply all commits, then do `work`, and wait for both. Raise `StorageError` on failure."""
        self._now.set()
        request = AllWork(work)
        self.submit(request)
        self.wait_until(request)

    # on the thread

    def serve(self, request: ApplyRequest) -> None:
        if request.soon:
            self._now.wait(SOON_SECONDS)
        self._now.clear()
        request.done(self._serve(request))
        for _ in range(STEPS):  # even with requests waiting, because deletions have to keep up with commits
            if not self.background():
                break
        self._reclaiming.step()

    def _serve(self, request: ApplyRequest) -> StorageError | None:
        try:
            if isinstance(request, NewFile):
                attempt(partial(set_newest, number=request.number), self._connection)
                return None
            self._asked = False  # before the commits are taken, because later ones have to ask again
            while not (part := self._unapplied.take()).is_empty:
                attempt(partial(self._apply, part), self._connection)
                if not (self._failed or isinstance(request, AllWork)):  # else a flood would sync all the time
                    break
            if isinstance(request, AllWork) and request.work is not None:
                attempt(request.work, self._connection)
                self._deletions = Deletions(self._connection, self._at)
                self._reclaiming.resume()
        except StorageError as error:
            self._failed = True
            self.report(error, "apply")
            return error
        self._failed = False
        self.report(None, "apply")
        self._deletions.resume()
        return None

    def _apply(self, part: UnappliedPart, connection: sqlite3.Connection) -> None:
        if self._syncs:
            self._files.sync(part.start.file, part.end.file)
        left = [ledger_id for ledger_id in sorted(part.deleted_ledgers) if segments.has(connection, ledger_id)]
        with transaction(connection):
            for ledger_id, pieces in part.pieces.items():
                if ledger_id not in part.deleted_ledgers:
                    index.add(connection, ledger_id, pieces)
            change_metadata(connection, part.metadata)
            left += [each for each in part.deleted_ledgers.difference(left) if not index.delete(connection, each)]
            segments.mark_deleted(connection, left)
            set_applied(connection, part.end)
            self._at(PersistPoint.APPLYING)
        self._unapplied.applied()
        self._deletions.add(left)
        if part.deleted_ledgers or part.start.file < part.end.file:
            self._reclaiming.resume()

    def background(self) -> bool:
        if self._deletions.step():
            self._reclaiming.resume()
            return True
        return self._reclaiming.step()

    def close(self) -> None:
        if not self._connection_is_closed:
            self._serve(AllWork())
            self._connection_is_closed = True
            self._connection.close()
