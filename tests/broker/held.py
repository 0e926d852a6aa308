"""A store in memory whose commits and reads a test can hold back, or let fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Self

import trio

from pulsarium.broker.storage.interface import Batch, Done, Entries, EntryRun, ReadDone, StorageError, StoredRun


class HeldStorage:
    """A store that keeps entries, as a data directory does. Committed changes are visible in `entries` and `metadata`.

    While `holding`, commits wait for `release` or `fail`; while `holding_reads`, reads wait for `release_reads`.
    """

    refusal = ""
    keeps_entries = True
    has_lost_commits: bool = False

    def __init__(self) -> None:
        self.entries: dict[int, dict[int, bytes]] = {}  # ledger id -> entry id -> entry
        self.metadata: dict[str, bytes] = {}
        self.holding = False
        self.holding_reads = False
        self.waiting: deque[tuple[Batch, Done]] = deque()
        self.reads = 0
        self._failed_era = -1
        self._waiting_reads: list[tuple[int, int, int, ReadDone]] = []

    # the test's side

    def release(self, count: int | None = None) -> None:
        """Perform the first `count` commits that wait, or perform all and hold back no more."""
        if count is None:
            self.holding = False
            while self.waiting:  # also commits that these lead to
                self._commit(*self.waiting.popleft())
        for _ in range(count or 0):
            self._commit(*self.waiting.popleft())

    def fail(self, count: int = 1) -> None:
        """Fail the first commits that wait. The other commits of their era fail when they are released."""
        for _ in range(count):
            batch, done = self.waiting.popleft()
            self._failed_era = batch.era
            done(StorageError("commit failed: the disk is full"))

    def hold(self, *, reads: bool) -> None:
        """Hold back commits, and with `reads` also reads."""
        self.holding, self.holding_reads = True, reads

    def let_go(self) -> None:
        """Perform the waiting commits in order, with those that follow from them, and then the waiting reads."""
        while self.waiting:
            self.release(1)
        self.release()
        self.release_reads()

    def left_behind(self) -> Self:
        """Return the store as a broker leaves it that is killed now: without the commits that wait."""
        left = type(self)()
        left.entries = {ledger_id: dict(entries) for ledger_id, entries in self.entries.items()}
        left.metadata = dict(self.metadata)
        return left

    def release_reads(self) -> None:
        self.holding_reads = False
        waiting, self._waiting_reads = self._waiting_reads, []
        for ledger_id, first, last, done in waiting:
            self.read(ledger_id, first, last, done)

    # the broker's side

    def load_metadata(self) -> dict[str, bytes]:
        self._failed_era = -1  # a new broker counts its eras from 0
        return dict(self.metadata)

    def stored_runs(self, ledger_id: int) -> list[StoredRun]:
        """Return runs of at most two entries, so that a block is assembled from several runs. A gap ends a run."""
        runs: list[StoredRun] = []
        for entry_id, entry in sorted(self.entries.get(ledger_id, {}).items()):
            first, count, size = runs[-1] if runs else (-1, 0, 0)
            if runs and count == 1 and entry_id == first + 1:
                runs[-1] = (first, 2, size + len(entry))
            else:
                runs.append((entry_id, 1, len(entry)))
        return runs

    def settle(self) -> None:
        while self.waiting:
            self._commit(*self.waiting.popleft())

    def replace(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        new: dict[int, dict[int, bytes]] = {}
        for ledger_id, run in entries:
            new.setdefault(ledger_id, {}).update(enumerate(run.entries, run.first_entry_id))
        self.metadata, self.entries = dict(metadata), new

    def commit(self, batch: Batch, done: Done) -> None:
        if self.holding or self.waiting:  # commits stay in order
            self.waiting.append((batch, done))
        else:
            self._commit(batch, done)

    def _commit(self, batch: Batch, done: Done) -> None:
        if batch.era <= self._failed_era:
            done(StorageError("commit failed: an earlier one did"))
        else:
            self._keep(batch)
            done(None)

    def _keep(self, batch: Batch) -> None:
        for ledger_id, runs in batch.entries.items():
            kept = self.entries.setdefault(ledger_id, {})
            for run in runs:
                kept.update(enumerate(run.entries, run.first_entry_id))
        for path, value in batch.metadata.items():
            if value is None:
                self.metadata.pop(path, None)
            else:
                self.metadata[path] = value
        for ledger_id in batch.deleted_ledgers:
            self.entries.pop(ledger_id, None)

    def spill(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        raise NotImplementedError

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        if self.holding_reads:
            self._waiting_reads.append((ledger_id, first, last, done))
            return
        self.reads += 1
        done(self.read_now(ledger_id, first, last))

    def read_now(self, ledger_id: int, first: int, last: int) -> list[bytes]:
        return [self.entries[ledger_id][entry_id] for entry_id in range(first, last + 1)]

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep_forever()
