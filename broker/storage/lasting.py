"""The store of an exploration, which keeps everything in memory over crashes of its brokers."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from pulsarium.broker.storage.interface import Batch, Done, Entries, EntryRun, ReadDone, StorageError, StoredRun


class LastingStorage:
    """A `Storage` whose commits finish at once, and which stores as much as a data directory does."""

    refusal = ""
    keeps_entries = True
    has_lost_commits = False

    def __init__(self) -> None:
        self._metadata: dict[str, bytes] = {}
        self._runs: dict[int, list[EntryRun]] = {}  # by ledger, in order
        self._token = trio.lowlevel.current_trio_token()

    def load_metadata(self) -> dict[str, bytes]:
        return dict(self._metadata)

    def stored_runs(self, ledger_id: int) -> list[StoredRun]:
        runs = self._runs.get(ledger_id, ())
        return [(first, len(entries), sum(map(len, entries))) for first, entries in runs]

    def commit(self, batch: Batch, done: Done) -> None:
        for ledger_id, runs in batch.entries.items():
            self._runs.setdefault(ledger_id, []).extend(runs)
        for path, value in batch.metadata.items():
            if value is None:
                self._metadata.pop(path, None)
            else:
                self._metadata[path] = value
        for ledger_id in batch.deleted_ledgers:
            self._runs.pop(ledger_id, None)
        done(None)

    def spill(self, ledger_id: int, run: EntryRun, done: Done) -> None:
        """Refuse, because a store that keeps entries is never asked."""
        raise NotImplementedError

    def read(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        self._token.run_sync_soon(self._read_later, ledger_id, first, last, done)

    def _read_later(self, ledger_id: int, first: int, last: int, done: ReadDone) -> None:
        try:
            found = self.read_now(ledger_id, first, last)
        except StorageError as error:
            done(error)
        else:
            done(found)

    def read_now(self, ledger_id: int, first: int, last: int) -> list[bytes]:
        found = [
            entry
            for begin, entries in self._runs.get(ledger_id, ())
            for entry in entries[max(0, first - begin) : max(0, last + 1 - begin)]
        ]
        if len(found) < last + 1 - first:
            raise StorageError(f"ledger {ledger_id} lacks some of the entries {first} to {last}")
        return found

    def settle(self) -> None:
        """Do nothing, because every commit finishes at once."""

    def replace(self, metadata: Mapping[str, bytes], entries: Entries) -> None:
        runs: dict[int, list[EntryRun]] = {}
        for ledger_id, run in entries:
            runs.setdefault(ledger_id, []).append(run)
        self._metadata, self._runs = dict(metadata), runs

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep_forever()
