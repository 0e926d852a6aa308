"""Brokers that confirm what they do not keep: what this suite has to notice, else it proves nothing."""

from __future__ import annotations

import time
from functools import partial

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.committer import Commit, Committer, Group
from pulsarium.broker.storage.entry_log import Written
from pulsarium.broker.storage.interface import Run, StorageError

CURSORS = "/cursor-ledgers/"
SOON = 0.005  # seconds in which a receipt is with its client


def keep_nothing() -> None:
    """Nothing is written."""

    def append(self: Committer, group: Group) -> list[Written]:
        return []

    Committer._append = append  # type: ignore[method-assign]


def keep_no_acknowledgements() -> None:
    """Cursors stay where they were."""
    add = Group.add

    def without_cursors(self: Group, commit: Commit) -> None:
        add(self, commit)
        self.metadata = {path: value for path, value in self.metadata.items() if not path.startswith(CURSORS)}

    Group.add = without_cursors  # type: ignore[method-assign]


def keep_one_less() -> None:
    """Store the first entry of each run of several in the place of its last one."""
    insert = segments.rows_of

    def rows_of(ledger_id: int, runs: list[Run]) -> object:
        for run in runs:
            if len(run.entries) > 1:
                run.entries[-1] = run.entries[0]
        return insert(ledger_id, runs)

    segments.rows_of = rows_of  # type: ignore[assignment]


def confirm_too_early() -> None:
    """Receipts go out before the commit; it is there a moment later, unless there is no later."""
    commit = Committer._commit

    def early(self: Committer, group: Group) -> StorageError | None:
        self.hand_back([partial(done, None) for done in group.waiting])
        group.waiting = []
        time.sleep(SOON)
        return commit(self, group)

    Committer._commit = early  # type: ignore[method-assign]


LIES = {each.__name__: each for each in (keep_nothing, keep_no_acknowledgements, keep_one_less, confirm_too_early)}
