"""Hold the index of the commits that the database does not have yet.

Writers add commits. The applier takes all of them at once, writes them into the database, and only then lets them go.
So a reader that looks here first, and into the database afterwards, misses nothing.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from pulsarium.broker.storage.entry_log import RecordEnd, Tail, Written
from pulsarium.broker.storage.interface import StorageError
from pulsarium.broker.storage.record import RowPlace


class UnappliedPart:
    """Consecutive commits."""

    def __init__(self, start: RecordEnd) -> None:
        self.pieces: dict[int, list[RowPlace]] = {}  # by ledger id, in order
        self.metadata: dict[str, bytes | None] = {}
        self.deleted_ledgers: set[int] = set()
        self.start = self.end = start
        self.bytes = 0  # of log
        self.changes = 0

    @property
    def is_empty(self) -> bool:
        return self.start == self.end


class Unapplied:
    """The commits behind the applied ones. One writer at a time adds to them, on any thread."""

    def __init__(self, applied: RecordEnd) -> None:
        self._lock = threading.Lock()
        self._parts = (UnappliedPart(applied), UnappliedPart(applied))  # what the applier works on; what came since

    def add(
        self, written: Iterable[Written], metadata: Mapping[str, bytes | None], deleted: Sequence[int], end: RecordEnd
    ) -> None:
        """Add a commit, which ends at `end`."""
        with self._lock:
            part = self._parts[1]
            pieces = part.pieces
            for ledger_id, piece in written:
                known = pieces.get(ledger_id)
                if known is None:
                    pieces[ledger_id] = [piece]
                else:
                    known.append(piece)
                part.bytes += piece.size
                part.changes += 1
            if metadata:
                part.metadata.update(metadata)
                part.changes += len(metadata)
                part.bytes += sum(len(value) for value in metadata.values() if value)
            part.deleted_ledgers.update(deleted)
            part.end = end

    def take(self) -> UnappliedPart:
        """Return the commits to apply next: those of the last call until `applied` was called for them."""
        with self._lock:
            working, since = self._parts
            if working.is_empty:
                working, since = since, UnappliedPart(since.end)
                self._parts = working, since
            return working

    def applied(self) -> None:
        """Let the taken commits go, because the database has them."""
        with self._lock:
            _, since = self._parts
            self._parts = UnappliedPart(since.start), since

    def forget(self, end: RecordEnd) -> None:
        """Let all commits before `end` go, because the database was replaced."""
        with self._lock:
            self._parts = UnappliedPart(end), UnappliedPart(end)

    @property
    def size(self) -> int:
        working, since = self._parts
        return working.bytes + since.bytes

    @property
    def changes(self) -> int:
        working, since = self._parts
        return working.changes + since.changes

    def refuse_stored(self, ledger_id: int, first: int) -> None:
        """Raise `StorageError` when the newest commits have entries of a ledger from `first` on."""
        for part in self._parts:
            pieces = part.pieces.get(ledger_id)
            if pieces and pieces[-1].first + pieces[-1].entries > first:
                raise StorageError(f"ledger {ledger_id}, entry {first}: the entry is stored already")

    def is_deleted(self, ledger_id: int) -> bool:
        """Return whether these commits delete a ledger."""
        return any(ledger_id in part.deleted_ledgers for part in self._parts)

    def ledgers(self) -> set[int]:
        """Return the ledgers that have entries in these commits, and stay."""
        return {ledger_id for part in self._parts for ledger_id in part.pieces if not self.is_deleted(ledger_id)}

    def pieces(self, ledger_id: int, first: int, last: int) -> list[RowPlace]:
        """Return the places of the rows that have the entries `first` to `last`, both included, in order."""
        found = list[RowPlace]()
        for part in self._parts:
            pieces = part.pieces.get(ledger_id, ())
            start = bisect_left(pieces, first, key=_last_entry)
            found += pieces[start : bisect_right(pieces, last, lo=start, key=_first_entry)]
        return found

    def held(self) -> AbstractContextManager[object]:
        """Return a context in which no commit is added, and none is let go.

        A reader of `over` needs it while the applier runs: a change that the database did not have yet must still be
        here, and a change that is here must not be older than the database.
        """
        return self._lock

    def over(self, metadata: dict[str, bytes]) -> dict[str, bytes]:
        """Return the metadata of the database with the changes of these commits."""
        changed = {**self._parts[0].metadata, **self._parts[1].metadata}
        kept = {path: value for path, value in metadata.items() if path not in changed}
        return {**kept, **{path: value for path, value in changed.items() if value is not None}}


def _first_entry(piece: RowPlace) -> int:
    return piece.first


def _last_entry(piece: RowPlace) -> int:
    return piece.first + piece.entries - 1


def recovered(tail: Tail) -> Unapplied:
    """Return the commits that a process left in the log, behind those in the database."""
    unapplied = Unapplied(tail.end)
    for record in tail.records():
        unapplied.add(record.pieces, record.metadata, record.deleted_ledgers, tail.end)
    return unapplied
