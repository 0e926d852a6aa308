"""Make a broker confirm what it does not store. The suite proves something only if it notices this."""

from __future__ import annotations

import time
from functools import partial

from pulsarium.broker.storage import segments
from pulsarium.broker.storage.committer import Commit, Committer, Group
from pulsarium.broker.storage.entry_log import Written
from pulsarium.broker.storage.interface import Run, StorageError

CURSORS = "/cursor-ledgers/"
SOON = 0.005  # seconds in which a receipt reaches its client


def keep_nothing() -> None:
    """Store nothing."""

    def append(self: Committer, group: Group) -> list[Written]:
        return []

    Committer._append = append  # type: ignore[method-assign]


def keep_no_acknowledgements() -> None:
    """Store no changes of cursors."""
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
    """Send receipts a moment before the commit, so that a kill between the two loses confirmed messages."""
    commit = Committer._commit

    def early(self: Committer, group: Group) -> StorageError | None:
        self.hand_back([partial(done, None) for done in group.waiting])
        group.waiting = []
        time.sleep(SOON)
        return commit(self, group)

    Committer._commit = early  # type: ignore[method-assign]


LIES = {each.__name__: each for each in (keep_nothing, keep_no_acknowledgements, keep_one_less, confirm_too_early)}
