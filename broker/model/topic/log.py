"""What outlives a persistent topic's being loaded: its managed ledger and its cursors."""

from __future__ import annotations

from urllib.parse import unquote

from pulsarium.broker.model.compaction.record import CompactionRecord
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.stores import Stores
from pulsarium.broker.model.topic.deduplication import Deduplication


class TopicLog:
    """A managed ledger with its durable cursors, recovered from the store or new."""

    def __init__(self, name: str, stores: Stores) -> None:
        self.ledger = ManagedLedger(name, stores)
        self.cursors: dict[str, ManagedCursor] = {}
        self.deduplication: Deduplication | None = None
        self._stores = stores
        for cursor_name, value in stores.recovered_under(self.ledger.path):
            cursor = self.open_cursor(unquote(cursor_name), self.ledger.first_position())
            cursor.restore(value)
        self.compaction = CompactionRecord(self, stores)

    def reopen(self) -> None:
        """The topic was unloaded and is loaded again."""
        self.ledger.reopen()
        for cursor in self.cursors.values():
            cursor.reopen()

    def open_cursor(self, name: str, start: Position) -> ManagedCursor:
        """A new durable cursor."""
        cursor = self.cursors[name] = ManagedCursor(self.ledger, name, self._stores, durable=True, start=start)
        return cursor

    def reader_cursor(self, name: str, start: Position) -> ManagedCursor:
        """A cursor that keeps nothing."""
        return ManagedCursor(self.ledger, name, self._stores, durable=False, start=start)

    def forget_cursor(self, name: str) -> None:
        self.cursors.pop(name, None)

    def delete(self) -> None:
        """Forget entries and cursors."""
        self.compaction.delete()
        for cursor in self.cursors.values():
            cursor.delete()
        self.cursors.clear()
        self.ledger.delete()
