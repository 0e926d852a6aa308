"""Declare the store that the broker uses.

All methods are called on the event loop, and so are all callbacks. A change is durable when its commit calls
`done(None)`. The store's `Durability` says what durable means, and `persist.py` has the points between.

Commits are stored in the order in which they were made, and in eras. The broker changes its memory first and stores
afterwards, so each batch builds on those before it. When one fails, the later ones of its era would store changes of
a state that does not exist: they fail too, without a try. Their callers take their changes back, and the next commit
begins a new era, whose memory agrees with the store again. So an error of the disk costs the messages of one
era, each of which gets an error in place of a receipt, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import trio


class StorageError(Exception):
    """A failure of the store: a full disk, an I/O error, a damaged or foreign file, or a directory in use."""


class DamagedEntriesError(StorageError):
    """Damaged entries of a ledger, which can never be read. Entries before and behind them can."""

    def __init__(self, text: str, ledger_id: int, first: int, last: int) -> None:
        super().__init__(text)
        self.ledger_id = ledger_id
        self.first = first
        self.last = last


def code_of(error: BaseException) -> int:
    """Return SQLite's primary result code, such as sqlite3.SQLITE_FULL, or 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


Done = Callable[[Exception | None], None]
"""Receive the result of a request once: None, or the error.

After an error of syncing the log, the change may be stored all the same: see `PersistPoint.WRITTEN`.
"""

ReadDone = Callable[[list[bytes] | Exception], None]
"""Receive the entries of a read once, in order, or the error."""

StoredRun = tuple[int, int, int]
"""(first entry id, number of entries, bytes of the entries)."""


class EntryRun(NamedTuple):
    """Consecutive entries of one ledger. The store owns a run that it was passed: do not change the run afterwards."""

    first_entry_id: int
    entries: list[bytes]


WRITTEN_BY = "/pulsarium/version"
"""The path of the version that last wrote the metadata. An older version names it when it refuses the format."""

Entries = Iterable[tuple[int, EntryRun]]
"""Runs with their ledger ids, in order."""


@dataclass(slots=True)
class Batch:
    """The changes of one turn. The store keeps all of them or none, and none without the batches before.

    Ledger ids are below 2**31, entry ids below 2**32. The id of a deleted ledger is never used again.
    """

    entries: dict[int, list[EntryRun]] = field(default_factory=dict)  # ledger id -> runs to append
    metadata: dict[str, bytes | None] = field(default_factory=dict)  # path -> value; None deletes
    deleted_ledgers: list[int] = field(default_factory=list)
    era: int = 0  # eras that a failed commit has ended, as far as the broker knew; see `Storage.commit`
    _size: int = -1

    def is_empty(self) -> bool:
        return not (self.entries or self.metadata or self.deleted_ledgers)

    @property
    def size(self) -> int:
        """Return the bytes of all entries. The batch must be complete."""
        if self._size < 0:
            self._size = 0
            for runs in self.entries.values():
                for run in runs:
                    self._size += sum(map(len, run.entries))
        return self._size


class Storage(Protocol):
    """The store of one broker process. All failures are `StorageError`s."""

    keeps_entries: bool
    """True when `commit` stores entries, so that the entry cache may drop them. Else the cache has to `spill` them."""

    has_lost_commits: bool
    """True when commits may have been lost before the store was opened, so clients know numbers that it does not."""

    @property
    def refusal(self) -> str:
        """Return why messages are refused now, for clients, or "". Other commits may still succeed."""

    def load_metadata(self) -> dict[str, bytes]:
        """Return all metadata, for the start of the broker. Blocks."""

    def stored_runs(self, ledger_id: int) -> list[StoredRun]:
        """Return the stored runs of a ledger, in order and of any size, for the recovery of a topic. Blocks."""

    def commit(self, batch: Batch, done: Done) -> None:
        """Store a batch. `done` is called in the order of batches, maybe before this method returns.

        After a failed batch, all later batches of its era fail, even empty ones, because they build on missing changes.
        A batch of a later era comes from a caller that knows of the failure. Eras never go back.
        """

    def spill(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        """Move a run out of memory. Only for a store whose `keeps_entries` is False."""

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        """Read the entries `first` to `last`, both included. All finished commits and spills are visible."""

    def read_now(self, ledger_id: int, first: int, last: int) -> list[bytes]:
        """Return the entries `first` to `last`, both included. Blocks, so admin peeks of up to 64 entries use it."""

    def settle(self) -> None:
        """Wait until all earlier commits are stored or have failed. Their `done` calls follow later. Blocks."""

    def replace(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        """Replace everything in the store. Raise `StorageError` when that fails, and change nothing. Blocks.

        Earlier commits are finished first. Ids of deleted ledgers may be used again afterwards.
        """

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until canceled. Then finish earlier requests, for about a second at most, and close."""
