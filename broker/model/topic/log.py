"""What outlives a persistent topic's being loaded: its managed ledger and its cursors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pulsarium.broker.model.compaction.record import CompactionRecord
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.ledger.managed_ledger import LedgerListener, ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.shadow_ledger import ShadowLedger
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.topic.deduplication import Deduplication
from pulsarium.broker.model.transaction.record import BufferRecord

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.persistent import PersistentTopic
    from pulsarium.proto.generated import MLDataFormats_pb2 as ml


class TopicLog(LedgerListener):
    """A managed ledger with its durable cursors, recovered from the store or new; the topic hears of the ledger."""

    def __init__(
        self,
        name: str,
        stores: Stores,
        kind: type[ManagedLedger] = ManagedLedger,
        kept: ml.ManagedLedgerInfo | None = None,
        unload: Callable[[], None] = lambda: None,
    ) -> None:
        self.topic: PersistentTopic | None = None  # once it is loaded
        self._unload = unload
        self._deleted = False
        self.ledger = kind(name, stores, kept, self)
        self.cursors: dict[str, ManagedCursor] = {}
        self.leaving: dict[str, ManagedCursor] = {}  # those whose deletion is on its way: it may fail
        self.deduplication: Deduplication | None = None
        self._stores = stores
        for cursor_name, value in stores.recovered_under(self.ledger.path):
            cursor = self.open_cursor(unquote(cursor_name), self.ledger.first_position())
            cursor.restore(value)
            if cursor.pending_acks is not None:
                cursor.pending_acks.recover()
        self.compaction = CompactionRecord(self, stores)
        enabled = stores.config.transactionCoordinatorEnabled and kind is not ShadowLedger
        self.transactions = BufferRecord(self.ledger, stores) if enabled else None

    def reopen(self) -> None:
        """The topic was unloaded and is loaded again."""
        self._deleted = False
        self.ledger.reopen()
        for cursor in self.cursors.values():
            cursor.reopen()
        if self.deduplication is not None:
            self.deduplication.reopen()

    def confirmed(self) -> None:
        if self.topic is not None:
            self.topic.confirmed()

    def rolled(self) -> None:
        """Let go of the ledger that ended. Where no cursor is durable the periodic check does so, as in Pulsar."""
        if self.topic is not None and self.cursors:
            self.topic.trim_soon()

    def fenced(self) -> None:
        """Send clients away: they come back to a topic that is loaded anew."""
        if not self._deleted:  # else another of this name may be in use
            self._unload()

    def going(self, last: Position) -> None:
        if self.topic is not None:
            self.topic.trimmer.going(last)

    def open_cursor(self, name: str, start: Position) -> ManagedCursor:
        """A new durable cursor."""
        cursor = self.cursors[name] = self._cursor(name, start, durable=True)
        return cursor

    def reader_cursor(self, name: str, start: Position) -> ManagedCursor:
        """A cursor that keeps nothing."""
        return self._cursor(name, start, durable=False)

    def _cursor(self, name: str, start: Position, *, durable: bool) -> ManagedCursor:
        cursor = ManagedCursor(self.ledger, name, self._stores, durable=durable, start=start)
        if self._stores.config.transactionCoordinatorEnabled:
            cursor.pending_acks = PendingAcks(cursor, self._stores)
        return cursor

    def forget_cursor(self, name: str) -> None:
        self.cursors.pop(name, None)

    def take_back(self, cursor: ManagedCursor) -> None:
        """Its deletion failed."""
        self.cursors[cursor.name] = cursor
        cursor.save_soon()  # what was to be saved when it was deleted

    def delete(self) -> None:
        """Let the store forget entries and cursors: `forget` once that is kept, else all is as it was."""
        self.compaction.delete()
        if self.transactions is not None:
            self.transactions.delete()
        for cursor in self.cursors.values():
            cursor.delete()
        self.ledger.delete()
        self._deleted = True

    def undelete(self) -> None:
        """The deletion failed."""
        for cursor in self.cursors.values():
            self.take_back(cursor)

    def forget(self) -> None:
        """It is deleted."""
        self.compaction.forget()
        self.ledger.forget()
