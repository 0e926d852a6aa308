"""The store of a broker without a data directory, which keeps nothing after the end of the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from pulsarium.broker.storage.interface import Batch, Done, Entries, EntryRun, ReadDone, StorageError, StoredRun

if TYPE_CHECKING:
    from pulsarium.broker.storage.spill import Spill


class MemoryStorage:
    """A `Storage` without durability: a commit finishes at once, and entries stay in the entry cache.

    Entries that the cache has no room for are spilled to a temporary file. The first spill opens the file and a thread.
    """

    refusal = ""  # entries that cannot be spilled stay in memory
    keeps_entries = False
    has_lost_commits = False

    def __init__(self) -> None:
        self._metadata: dict[str, bytes] = {}
        self._spill: Spill | None = None
        self._spilled: set[int] = set()
        self._nursery: trio.Nursery | None = None  # while the store runs

    def load_metadata(self) -> dict[str, bytes]:
        return dict(self._metadata)

    def stored_runs(self, ledger_id: int) -> list[StoredRun]:
        """Return the spilled runs of a ledger."""
        return [] if self._spill is None else self._spill.stored_runs(ledger_id)

    def commit(self, batch: Batch, done: Done) -> None:
        for path, value in batch.metadata.items():
            if value is None:
                self._metadata.pop(path, None)
            else:
                self._metadata[path] = value
        if forgotten := self._spilled.intersection(batch.deleted_ledgers):
            self._spilled -= forgotten
            assert self._spill is not None
            self._spill.forget(forgotten)
        done(None)

    def spill(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        if self._spill is None:
            self._spill = self._open_spill()
        self._spilled.add(ledger_id)
        self._spill.put(ledger_id, run, done)

    def _open_spill(self) -> Spill:
        from pulsarium.broker.storage.spill import Spill  # most brokers never need SQLite

        spill = Spill()
        if self._nursery is not None:
            spill.start()
        return spill

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        if self._spill is None:
            done(StorageError(f"ledger {ledger_id}: nothing was spilled"))
        else:
            self._spill.read(ledger_id, first, last, done)

    def read_now(self, ledger_id: int, first: int, last: int) -> list[bytes]:
        if self._spill is None:
            raise StorageError(f"ledger {ledger_id}: nothing was spilled")
        return self._spill.read_now(ledger_id, first, last)

    def settle(self) -> None:
        """Do nothing, because every commit finishes at once."""

    def replace(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        new, ledgers = None, set[int]()
        try:
            for ledger_id, run in entries:
                new = new or self._open_spill()
                new.put_now(ledger_id, run)
                ledgers.add(ledger_id)
        except BaseException:
            if new is not None:
                self._let_go(new)
            raise
        old, self._spill, self._spilled, self._metadata = self._spill, new, ledgers, dict(metadata)
        if old is not None:
            self._let_go(old)

    def _let_go(self, spill: Spill) -> None:
        """Close a spill that no reader uses."""
        if self._nursery is None:
            spill.abandon()
        else:
            self._nursery.start_soon(spill.stop, 0)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                if self._spill is not None:
                    self._spill.start()
                task_status.started()
                await trio.sleep_forever()
        finally:
            if self._spill is not None:
                await self._spill.stop(0)  # the rest of the data ends with the process too
