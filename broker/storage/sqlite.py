"""The store of a data directory: an entry log, and the SQLite database `pulsarium.db`.

A commit appends to the log (`entry_log.py`), and another thread brings commits into the database (`applier.py`). The
reader's thread serves `read`, so that a catching-up consumer waits for no sync. The event loop's own connection serves
blocking calls. In WAL mode no connection waits for another.

A change is durable when `commit` has reported it as done. The durability says which failures it survives
(`database.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import trio

from pulsarium.broker.config.options import Durability
from pulsarium.broker.storage import entries as stored_entries
from pulsarium.broker.storage.applier import Applier
from pulsarium.broker.storage.committer import CommittedBatch, Committer, Replacement
from pulsarium.broker.storage.database import (
    DATABASE_NAME,
    applied,
    metadata,
    newest,
    open_database,
    open_reader,
)
from pulsarium.broker.storage.entry_log import EntryLog, Tail
from pulsarium.broker.storage.interface import Batch, Done, Entries, EntryRun, ReadDone, StorageError, StoredRun
from pulsarium.broker.storage.log_files import LogFiles
from pulsarium.broker.storage.persist import Hook, pass_by
from pulsarium.broker.storage.place import DirectoryLock
from pulsarium.broker.storage.probe import probe
from pulsarium.broker.storage.unapplied import recovered
from pulsarium.broker.storage.worker import GRACE_SECONDS, Barrier, Job, JobWorker, attempt


class SqliteStorage:
    """A `Storage` on disk. Blocking calls work from the start, and all others while `run` runs."""

    keeps_entries = True

    def __init__(
        self,
        directory: Path,
        durability: Durability = "os",
        *,
        at: Hook = pass_by,
        grace: float = GRACE_SECONDS,
    ) -> None:
        """Open or create the store in `directory`, and lock it.

        `at` is called at each persist point on the commit thread. `grace` is in seconds. Raise `StorageError` when the
        directory cannot be used, is in use, or holds something else.
        """
        path = directory / DATABASE_NAME
        self._kept: dict[str, bytes] | None = None  # the metadata, until the first use
        self._grace = grace
        self._look = Barrier()
        self._look.finished.set()
        with ExitStack() as stack:
            stack.callback(DirectoryLock(directory).release)
            # Closed in reverse order: the writer closes last, because the last connection copies SQLite's log.
            found = probe(path)
            writer = open_database(path, durability)
            self._files = LogFiles(directory)
            tail = Tail(self._files, applied(writer), newest(writer))
            self._unapplied = recovered(tail)
            for dropped in tail.dropped:
                dropped.report(self._files)
            self.has_lost_commits = bool(tail.dropped)
            self._kept = None if found is None else self._unapplied.over(found)
            self._applier = Applier(writer, self._files, self._unapplied, durability, at)
            stack.callback(self._applier.abandon)
            entry_log = EntryLog(self._files, tail.end, durability, tail.newest)
            self._committer = Committer(entry_log, self._unapplied, self._applier, durability, at)
            stack.callback(self._committer.abandon)
            self._connection = open_reader(path)
            stack.callback(self._connection.close)
            self._reader = JobWorker("storage read", open_reader(path))
            stack.callback(self._reader.abandon)
            self._opened = stack.pop_all()

    @property
    def refusal(self) -> str:
        """Return the refusal of the last look. A refusal makes the commit thread look again."""
        if self._committer.refusal and self._look.finished.is_set():
            self._look = Barrier()
            self._committer.submit(self._look)
        return self._committer.refusal

    def load_metadata(self) -> dict[str, bytes]:
        kept, self._kept = self._kept, None
        if kept is not None:
            return kept
        with self._unapplied.held():
            return self._unapplied.over(attempt(metadata, self._connection))

    def stored_runs(self, ledger_id: int) -> list[StoredRun]:
        find = partial(stored_entries.stored_runs, unapplied=self._unapplied, ledger_id=ledger_id)
        return attempt(find, self._connection)

    def commit(self, batch: Batch, done: Done) -> None:
        self._kept = None  # frees memory
        self._committer.commit(CommittedBatch(batch, done))

    def spill(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        raise NotImplementedError("committed entries are on disk already")

    def _read(self, ledger_id: int, first: int, last: int) -> partial[list[bytes]]:
        find, files = stored_entries.read, self._files
        return partial(find, files=files, unapplied=self._unapplied, ledger_id=ledger_id, first=first, last=last)

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        self._reader.submit(Job(self._read(ledger_id, first, last), done))

    def read_now(self, ledger_id: int, first: int, last: int) -> list[bytes]:
        return attempt(self._read(ledger_id, first, last), self._connection)

    def settle(self) -> None:
        self._committer.wait_for(Barrier())

    def replace(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        self._kept = None
        self._committer.wait_for(Replacement(metadata, entries))

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        ended = trio.Event()
        try:
            self._applier.start(ended)
            self._committer.start(ended)
            # What an earlier process left, and the end of what was lost.
            self._applier.grew(deleted=self._unapplied.changes > 0 or self.has_lost_commits)
            self._reader.start(ended)
            task_status.started()
            await ended.wait()
            raise StorageError("a storage thread has died")
        finally:
            await self._reader.stop(0)  # no caller waits for results any more
            self._connection.close()
            await self._committer.stop(self._grace)
            await self._applier.stop(self._grace)
            self.close()

    def close(self) -> None:
        """Close a store that was never run. `run` closes by itself."""
        self._opened.close()
