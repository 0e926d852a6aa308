"""What the broker asks of a store.

Everything here is called on the event loop, and every callback comes back on it. Nothing is durable before the
`done(None)` of its commit; what "durable" means is the store's `Durability` (see `persist.py` for the points between).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import trio


class StorageError(Exception):
    """The store could not do what was asked: disk full, I/O error, damaged or foreign file, directory in use."""


class DamagedEntriesError(StorageError):
    """These entries of a ledger cannot be read, now or later. Those before and behind them can."""

    def __init__(self, text: str, ledger_id: int, first: int, last: int) -> None:
        super().__init__(text)
        self.ledger_id = ledger_id
        self.first = first
        self.last = last


def code_of(error: BaseException) -> int:
    """SQLite's primary result code, as sqlite3.SQLITE_FULL; 0 for what is no error of SQLite itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


Done = Callable[[Exception | None], None]
"""Told once how a request ended: None, or why it did not happen.

When syncing the log failed, it may have happened all the same: see `PersistPoint.WRITTEN`.
"""

ReadDone = Callable[[list[bytes] | Exception], None]
"""Told once: the entries asked for, in order, or why they cannot be read."""

StoredRun = tuple[int, int, int]
"""(first entry id, number of entries, bytes of the entries)."""

Durability = Literal["none", "os", "fsync"]
"""What commits of a data directory survive: nothing is promised, the end of the process, the end of the machine."""


class Run(NamedTuple):
    """Consecutive entries of one ledger. Belongs to the store once handed over: do not change it any more."""

    first_entry_id: int
    entries: list[bytes]


WRITTEN_BY = "/pulsarium/version"
"""The path of the version that wrote the metadata last: an older version names it when it refuses the format."""

Entries = Iterable[tuple[int, Run]]
"""Ledger ids and their runs, in order."""


@dataclass(slots=True)
class Batch:
    """What one turn of the broker wants kept: all of it or nothing, and nothing without the batches before it.

    Ledger ids are below 2**31, entry ids below 2**32. A deleted ledger's id is never used again.
    """

    entries: dict[int, list[Run]] = field(default_factory=dict)  # ledger id -> runs to append
    metadata: dict[str, bytes | None] = field(default_factory=dict)  # path -> value; None deletes
    deleted_ledgers: list[int] = field(default_factory=list)
    era: int = 0  # how many eras ended by a commit that failed, as far as the broker knew; see `Storage.commit`

    def is_empty(self) -> bool:
        return not (self.entries or self.metadata or self.deleted_ledgers)


class Storage(Protocol):
    """One store, of one broker process. Failures are `StorageError`s."""

    keeps_entries: bool
    """True: `commit` stores entries, so the entry cache may drop what is committed. False: it has to `spill` it."""

    @property
    def refusal(self) -> str:
        """Why no message is taken now, for clients; empty when they are. What else is committed still may succeed."""

    def load_metadata(self) -> dict[str, bytes]:
        """All metadata, for the start of the broker. Blocks."""

    def stored_runs(self, ledger_id: int) -> list[StoredRun]:
        """What the store has of a ledger, in order, cut as the store likes. Blocks; for the recovery of a topic."""

    def commit(self, batch: Batch, done: Done) -> None:
        """Keep a batch. In order: `done` of an earlier batch comes first. `done` may be called before this returns.

        Once a batch of an era has failed, all later ones of that era fail, also an empty one: they were built on what
        is not there. Batches of a later era were handed over by somebody who knew. Eras never go back.
        """

    def spill(self, ledger_id: int, run: Run, done: Done) -> None:
        """Move a run out of memory. Only for a store with `keeps_entries` False."""

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        """Read the entries `first` to `last`, both included. Sees everything whose commit or spill is done."""

    def read_now(self, ledger_id: int, first: int, last: int) -> list[bytes]:
        """The same, blocking: for admin peeks of up to 64 entries."""

    def settle(self) -> None:
        """Wait until what was handed over is kept, or will never be; its `done` calls come later. Blocks."""

    def replace(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        """Put this in the place of everything that is kept: all of it, or StorageError and nothing changed. Blocks.

        Also until what was handed over before is kept. Ids of ledgers that were deleted may come again.
        """

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; then finish what was handed over, for at most about a second, and close."""
