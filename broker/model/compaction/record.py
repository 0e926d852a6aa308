"""Store the compaction of a topic: its cursor, which names the compacted ledger, and the ledger to delete."""

from __future__ import annotations

from typing import Protocol

from pulsarium.broker.model.compaction.compacted import CompactedLedger, NothingCompacted
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.records import CursorProperties
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.storage.interface import Done
from pulsarium.proto.special_names import COMPACTION_CURSOR

LEDGER_PROPERTY = "CompactedTopicLedger"


class CompactedLog(Protocol):
    """The log of a topic, which outlives an unload."""

    cursors: dict[str, ManagedCursor]

    @property
    def ledger(self) -> ManagedLedger: ...

    def open_cursor(self, name: str, start: Position) -> ManagedCursor: ...


class CompactionRecord:
    """The stored compaction of a topic. It stays with the topic's log during an unload.

    A durable cursor names the compacted ledger, and stands at the horizon, so that trimming keeps the entries behind
    it. The store also has the id of the ledger that the next start deletes. That is a ledger being written, or the
    previous compacted ledger after a new one was named.
    """

    def __init__(self, log: CompactedLog, stores: Stores) -> None:
        self.compacted: CompactedLedger | NothingCompacted = NothingCompacted()
        self._log = log
        self._stores = stores
        self.mark_before: Position | None = None  # the mark-delete position that counts while `adopt` may still fail
        self._adopting: Ledger | None = None
        self._undeleted: list[int] = []  # ledgers that are still stored, because the commit failed
        cursor = self.cursor
        if cursor is not None and LEDGER_PROPERTY in cursor.properties:
            ledger_id = cursor.properties[LEDGER_PROPERTY]
            self.compacted = CompactedLedger.recovered(ledger_id, cursor.mark_delete, stores)
        left = stores.recovered(self._path)
        if left is not None:
            self._delete(int(left))

    @property
    def _path(self) -> str:
        return f"/compaction/{self._log.ledger.name}"

    @property
    def cursor(self) -> ManagedCursor | None:
        return self._log.cursors.get(COMPACTION_CURSOR)

    def open_cursor(self) -> ManagedCursor:
        """Return the compaction cursor. Open it if needed, so that trimming keeps entries until they are compacted."""
        cursor = self.cursor
        if cursor is None:
            cursor = self._log.open_cursor(COMPACTION_CURSOR, self._log.ledger.first_position())
            cursor.save()
        return cursor

    def begin(self) -> Ledger:
        """Return a new ledger to write to."""
        undeleted, self._undeleted = self._undeleted, []
        for ledger_id in undeleted:
            self._delete(ledger_id)
        ledger = Ledger(self._stores.next_ledger_id(), self._stores.cache, self._stores.clock.now_ms())
        self._stores.turn.store(self._path, str(ledger.id).encode())
        return ledger

    def adopt(self, ledger: Ledger, horizon: Position, done: Done) -> None:
        """Make `ledger` the compacted ledger after its entries are committed. Persist point: the cursor."""
        cursor, before = self.open_cursor(), self.compacted
        mark, properties = cursor.mark_delete, cursor.properties
        self.mark_before, self._adopting = mark, ledger

        def adopted(error: Exception | None) -> None:
            self.mark_before = self._adopting = None
            if error is None:
                self.compacted = CompactedLedger(ledger, horizon)
                if isinstance(before, CompactedLedger):
                    self.discard(before.ledger)
            else:
                cursor.mark_delete, cursor.properties = mark, properties  # to be saved again
            done(error)

        cursor.ack_cumulative(horizon)
        cursor.properties = CursorProperties({LEDGER_PROPERTY: ledger.id})
        cursor.save()
        old = str(before.ledger.id).encode() if isinstance(before, CompactedLedger) else None
        self._stores.turn.store(self._path, old)
        self._stores.turn.after_commit(adopted)

    def discard(self, ledger: Ledger) -> None:
        """Delete a ledger that no reader uses."""
        ledger.drop()
        self._delete(ledger.id)

    def _delete(self, ledger_id: int) -> None:
        def deleted(error: Exception | None) -> None:
            if error is not None:
                self._undeleted.append(ledger_id)

        self._stores.turn.delete_ledger(ledger_id)
        self._stores.turn.store(self._path, None)
        self._stores.turn.after_commit(deleted)

    def delete(self) -> None:
        """Delete the stored ledgers of a deleted topic. Call `forget` after the commit."""
        ids = [*self._undeleted]
        if isinstance(self.compacted, CompactedLedger):
            ids.append(self.compacted.ledger.id)
        if self._adopting is not None:
            ids.append(self._adopting.id)
        for ledger_id in ids:
            self._stores.turn.delete_ledger(ledger_id)
        if ids:
            self._stores.turn.store(self._path, None)

    def forget(self) -> None:
        """Release the compacted ledger of a deleted topic."""
        if isinstance(self.compacted, CompactedLedger):
            self.compacted.ledger.drop()
