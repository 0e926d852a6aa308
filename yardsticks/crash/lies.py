"""Make a broker confirm what it does not store. The suite proves something only if it notices this."""

from __future__ import annotations

import threading
from functools import partial

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.committer import CommittedBatch, Committer, MergedBatches
from pulsarium.broker.storage.entry_log import Written
from pulsarium.broker.storage.interface import EntryRun, StorageError

CURSORS = "/cursor-ledgers/"
PASSES = 5  # of the event loop, after which a receipt is in its socket


def keep_nothing() -> None:
    """Store nothing."""

    def append(self: Committer, group: MergedBatches) -> list[Written]:
        return []

    Committer._append = append  # type: ignore[method-assign]


def keep_no_acknowledgements() -> None:
    """Store no changes of cursors."""
    add = MergedBatches.add

    def without_cursors(self: MergedBatches, commit: CommittedBatch) -> None:
        add(self, commit)
        self.metadata = {path: value for path, value in self.metadata.items() if not path.startswith(CURSORS)}

    MergedBatches.add = without_cursors  # type: ignore[method-assign]


def keep_one_less() -> None:
    """Store the first entry of each run of several in the place of its last one."""
    insert = segments.rows_of

    def rows_of(ledger_id: int, runs: list[EntryRun]) -> object:
        for run in runs:
            if len(run.entries) > 1:
                run.entries[-1] = run.entries[0]
        return insert(ledger_id, runs)

    segments.rows_of = rows_of  # type: ignore[assignment]


def confirm_too_early() -> None:
    """Send receipts before the commit, so that a kill between the two loses confirmed messages.

    The commit thread writes everything, because the event loop has to send receipts meanwhile.
    """
    commit = Committer._commit

    def let_the_thread(self: Committer, commit: CommittedBatch) -> bool:
        return False

    def early(self: Committer, group: MergedBatches) -> StorageError | None:
        self.hand_back([partial(done, None) for done in group.waiting])
        group.waiting = []
        for _ in range(PASSES):
            passed = threading.Event()
            self.hand_back([passed.set])
            passed.wait()
        return commit(self, group)

    Committer._commit = early  # type: ignore[method-assign]
    Committer._commits_now = let_the_thread  # type: ignore[method-assign]


LIES = {each.__name__: each for each in (keep_nothing, keep_no_acknowledgements, keep_one_less, confirm_too_early)}
