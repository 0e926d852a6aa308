"""The managed ledger and cursors of a persistent topic, which stay while the topic is unloaded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from urllib.parse import unquote

from pulsarium.broker.model.compaction.record import LEDGER_PROPERTY, CompactionRecord
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.paths import ledger_path
from pulsarium.broker.model.cursor.records import read_cursor_info
from pulsarium.broker.model.ledger.info_compression import unpack
from pulsarium.broker.model.ledger.managed_ledger import LedgerListener, ManagedLedger, ShadowLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores, takes_transactions
from pulsarium.broker.model.topic.deduplication import Deduplication
from pulsarium.broker.model.transaction.record import BufferRecord
from pulsarium.proto.generated import MLDataFormats_pb2 as ml
from pulsarium.proto.special_names import COMPACTION_CURSOR


class TopicLog(LedgerListener):
    """A managed ledger with its durable cursors, recovered or new. Reports events of the ledger to the loaded topic."""

    def __init__(
        self,
        name: str,
        stores: Stores,
        kind: type[ManagedLedger] = ManagedLedger,
        kept: ml.ManagedLedgerInfo | None = None,
        unload: Callable[[], None] = lambda: None,
    ) -> None:
        self.topic: LedgerListener | None = None  # set while the topic is loaded
        self._unload = unload
        self._deleted = False
        self.ledger = kind(name, stores, kept, self)
        self.cursors: dict[str, ManagedCursor] = {}
        self.leaving: dict[str, ManagedCursor] = {}  # cursors whose deletion is not committed yet, and may fail
        self.deduplication: Deduplication | None = None
        self.config = stores.config
        self._stores = stores
        for cursor_name, value in stores.recovered_under(self.ledger.path):
            cursor = self.open_cursor(unquote(cursor_name), self.ledger.first_position())
            cursor.restore(value)
        self.compaction = CompactionRecord(self, stores)
        enabled = takes_transactions(stores.config, name) and kind is not ShadowLedger
        self.transactions = BufferRecord(self.ledger, stores) if enabled else None

    def reopen(self) -> None:
        """Prepare for a topic that is loaded again."""
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
        """Trim the ledger that ended. Without durable cursors, only the periodic check trims, as in Pulsar."""
        if self.cursors:
            self.trim_soon()

    def fenced(self) -> None:
        """Unload the topic, so that clients load it again."""
        if not self._deleted:  # else another topic of this name may be in use
            self._unload()

    def going(self, last: Position) -> None:
        if self.topic is not None:
            self.topic.going(last)

    def trim_soon(self) -> None:
        """Have the loaded topic trim ledgers that nobody needs any more."""
        if self.topic is not None:
            self.topic.rolled()

    def open_cursor(self, name: str, start: Position) -> ManagedCursor:
        """Create a durable cursor."""
        cursor = self.cursors[name] = self._cursor(name, start, durable=True)
        return cursor

    def reader_cursor(self, name: str, start: Position) -> ManagedCursor:
        """Create a cursor that is not stored."""
        return self._cursor(name, start, durable=False)

    def _cursor(self, name: str, start: Position, *, durable: bool) -> ManagedCursor:
        return ManagedCursor(self.ledger, name, self._stores, durable=durable, start=start)

    def forget_cursor(self, name: str) -> None:
        self.cursors.pop(name, None)

    def take_back(self, cursor: ManagedCursor) -> None:
        """Restore a cursor whose deletion failed."""
        self.cursors[cursor.name] = cursor
        cursor.save_soon()  # store the changes that were due when it was deleted

    def delete(self) -> None:
        """Delete entries and cursors from the store. `forget` or `undelete` follows."""
        self.compaction.delete()
        if self.transactions is not None:
            self.transactions.delete()
        for cursor in self.cursors.values():
            cursor.delete()
        self.ledger.delete()
        self._deleted = True

    def undelete(self) -> None:
        """Restore the cursors after the deletion failed."""
        for cursor in self.cursors.values():
            self.take_back(cursor)

    def forget(self) -> None:
        """Forget everything after the deletion."""
        self.compaction.forget()
        self.ledger.forget()


def delete_damaged(name: str, stores: Stores) -> None:
    """Delete a damaged managed ledger from the store: the metadata below its path, and the ledgers that this names.

    Records that cannot be decoded any more stay, where nothing reads them.
    """
    kept = stores.storage.load_metadata()
    path, written = f"/managed-ledgers/{name}", f"/compaction/{name}"
    folders = {path, f"/transactions/buffers/{name}"}
    acks = f"/transactions/pending-acks/{name}/"
    folders.update(each.rpartition("/")[0] for each in kept if each.startswith(acks))
    ledgers = set[int]()
    with suppress(Exception):
        ledgers.update(each.ledgerId for each in ml.ManagedLedgerInfo.FromString(unpack(kept[path])).ledgerInfo)
    for cursor in [each for each in kept if each.startswith(f"{path}/")]:
        with suppress(Exception):
            info = read_cursor_info(kept[cursor])
            folder = ledger_path(info.cursorsLedgerId)
            folders.add(folder)
            records = [ml.PositionInfo.FromString(kept[each]) for each in kept if each.startswith(f"{folder}/")]
            if cursor != f"{path}/{COMPACTION_CURSOR}":  # a consumer may write a property of this name too
                continue
            properties = chain(info.properties, *(record.properties for record in records))
            ledgers.update(each.value for each in properties if each.name == LEDGER_PROPERTY)
    if written in kept:
        ledgers.add(int(kept[written]))
    for each in [each for each in kept if each in (path, written) or each.rpartition("/")[0] in folders]:
        stores.turn.store(each, None)
    for ledger_id in sorted(ledgers):
        stores.turn.delete_ledger(ledger_id)
    for each in (path, written):  # a new topic of this name must not recover these
        stores.recovered(each)
    for folder in folders:
        stores.recovered_under(folder)
