"""How a cursor is kept: in the metadata store, and in a ledger of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.cursor.batch_acks import BatchAcks
from pulsarium.broker.model.cursor.records import NO_LEDGER, CursorFormat, HolesRecord, read_cursor_info
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.ledger.stores import Stat, Stores
from pulsarium.proto.generated import MLDataFormats_pb2 as ml

if TYPE_CHECKING:
    from pulsarium.broker.model.transaction.pending_acks import PendingAcks

SAVE_DELAY = 0.1  # seconds; acknowledgements that nobody waits for are saved at least this often


def ledger_path(ledger_id: int) -> str:
    """The folder of a cursor's ledger."""
    return f"/cursor-ledgers/{ledger_id}"


def entry_path(ledger_id: int, entry_id: int) -> str:
    """Where an entry of it is kept."""
    return f"{ledger_path(ledger_id)}/{entry_id}"


class KeptCursor:
    """What was acknowledged, and its keeping. Knows nothing of acknowledging and reading.

    A durable cursor keeps its state in the store; a reader's does not.
    """

    def __init__(self, ledger: ManagedLedger, name: str, stores: Stores, *, durable: bool, start: Position) -> None:
        self.ledger = ledger
        self.name = name
        self.durable = durable
        self.start = start  # what was before is nothing to it
        self.mark_delete = start
        self.holes = PositionSet()
        self.batch_acks = BatchAcks()
        self.pending_acks: PendingAcks | None = None  # none where there are no transactions
        self.properties: dict[str, int] = {}
        self.cursor_properties: dict[str, str] = {}
        self.saves = 0
        self.info = b""  # a ManagedCursorInfo: what the metadata store has of it, once it was saved
        self.stat = Stat(stores.clock.now_ms())
        self.ledger_id = NO_LEDGER  # the ledger that keeps this cursor, where not the metadata store does
        self.ledger_last_entry = -1
        self.ledger_open = False  # written to; not so the one that a restart found
        self._kept_ledger_id = NO_LEDGER  # the one that the last commit named
        self.last_switch_ms = stores.clock.now_ms()
        self._stores = stores
        self._format = CursorFormat(stores.config, forgets_parts=stores.profile.unload_forgets)
        self._keeps = durable and stores.storage.keeps_entries
        self._stored_mark = start
        self._stored_properties: dict[str, str] | None = None  # those of its info there; None: it must be written
        self._holes_record: HolesRecord | None = None  # of the holes as they are, once it was needed
        self._save_timer: Timer | None = None
        rate = stores.config.managedLedgerDefaultMarkDeleteRateLimit
        self._save_delay = max(SAVE_DELAY, 1 / rate) if rate else SAVE_DELAY

    @property
    def path(self) -> str:
        return f"{self.ledger.path}/{quote(self.name, safe='')}"

    def save(self) -> None:
        """Persist point: the cursor.

        Into the metadata store until the first whole entry is acknowledged, from then on into a ledger of its own.
        """
        self._cancel_timer()
        if not self.durable:
            return
        self.saves += 1
        moved = bool(self.holes) or self.mark_delete != self._stored_mark
        if self.ledger_open:
            self._append_record(new=moved)
        elif self.ledger_id != NO_LEDGER or moved:
            self._open_ledger()
            self._append_record(new=True)
        if not self.ledger_open or self._stored_properties != self.cursor_properties:
            self._store_info()
        self._stored_mark = self.mark_delete
        if self.pending_acks is not None:
            self.pending_acks.record.forget_applied()
        if self._keeps:
            self._stores.turn.after_commit(partial(self._saved, self.ledger_id))

    def _saved(self, ledger_id: int, error: Exception | None) -> None:
        if error is None:
            self._kept_ledger_id = ledger_id
            return
        self._stored_properties = None
        if self.ledger_id != self._kept_ledger_id:  # its id may be given again: the counter was not kept either
            self.ledger_open = False
        self.save_soon()

    def save_soon(self) -> None:
        """Something changed that nobody waits for (managedLedgerDefaultMarkDeleteRateLimit)."""
        if self.durable and self._save_timer is None:
            self._save_timer = self._stores.clock.call_later(self._save_delay, self.save)

    def close(self) -> None:
        """The topic is unloaded or the broker stops: what is kept then goes into the metadata store, if it fits."""
        if self._save_timer is not None:
            self.save()
        if self.ledger_id == NO_LEDGER:
            return
        if self.ledger_open and not self._format.fits_metadata(self.holes):
            self._append_record(new=True)
        else:
            self._forget_ledger()
            self._store_info()
        self.ledger_open = False

    def forget_what_is_not_kept(self) -> None:
        """Hold only what a closed cursor reads back, as after a restart (managedLedgerMaxUnackedRangesToPersist)."""
        if not (self.holes or self.batch_acks):
            return
        kept: ml.ManagedCursorInfo | ml.PositionInfo
        if self.ledger_id == NO_LEDGER:
            kept = read_cursor_info(self._format.cursor_info(self, NO_LEDGER, {}, 0))
        else:
            kept = ml.PositionInfo.FromString(self._format.position_info(self, self._encoded_holes()))
        self.holes.clear()
        self.batch_acks.clear()
        self._holes_record = None
        self._format.restore(self, kept)

    def delete(self) -> None:
        """The subscription goes. Nothing changes here: where that is not kept, it stays."""
        self._cancel_timer()
        if self.pending_acks is not None:
            self.pending_acks.delete()
        if self.durable:
            self._delete_record()
            self._stores.turn.store(self.path, None)

    def _cancel_timer(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None

    def _open_ledger(self) -> None:
        """Begin a ledger; as in Pulsar the state as it was is its first entry."""
        self._forget_ledger()
        self.ledger_id, self.ledger_last_entry, self.ledger_open = self._stores.next_ledger_id(), 0, True
        self.last_switch_ms = self._stores.clock.now_ms()
        self._stored_properties = None

    def _delete_record(self) -> None:
        if self.ledger_id != NO_LEDGER:
            self._store(entry_path(self.ledger_id, self.ledger_last_entry), None)

    def _forget_ledger(self) -> None:
        self._delete_record()
        self.ledger_id, self.ledger_last_entry, self.ledger_open = NO_LEDGER, -1, False

    def _store_info(self) -> None:
        self._stored_properties = dict(self.cursor_properties)
        now_ms = self._stores.clock.now_ms()
        self.info = self._format.cursor_info(self, self.ledger_id, self.cursor_properties, now_ms)
        self.stat.changed(now_ms)
        self._store(self.path, self.info)

    def _append_record(self, *, new: bool) -> None:
        """The next entry of the cursor's ledger; only the newest one is kept, since nobody reads another.

        Not `new`: it takes the place of the last one, since Pulsar writes none for parts of batches alone.
        """
        if new:
            self._store(entry_path(self.ledger_id, self.ledger_last_entry), None)
            self.ledger_last_entry += 1
        if self._keeps:
            record = self._format.position_info(self, self._encoded_holes())
            self._store(entry_path(self.ledger_id, self.ledger_last_entry), record)

    def _encoded_holes(self) -> HolesRecord:
        if self._holes_record is None:
            self._holes_record = self._format.holes_record(self.holes)
        return self._holes_record

    def holes_size(self) -> int:
        """Bytes that the holes take in a record."""
        return len(self._encoded_holes().data) if self.durable else 0

    def _store(self, path: str, value: bytes | None) -> None:
        if self._keeps:
            self._stores.turn.store(path, value)

    def restore(self, value: bytes) -> None:
        """Take the state that was kept."""
        self.info = value
        self.start = EARLIEST  # not kept: whatever was before may have been acknowledged
        self.stat.changed(self._stores.clock.now_ms())
        info = read_cursor_info(value)
        self.cursor_properties = {text.name: text.value for text in info.cursorProperties}
        self._stored_properties = dict(self.cursor_properties)
        self._format.restore(self, info)
        entries = {int(name): entry for name, entry in self._stores.recovered_under(ledger_path(info.cursorsLedgerId))}
        if entries:  # else as in Pulsar: back to where the cursor stood when the ledger was begun
            self.ledger_id, self.ledger_last_entry = info.cursorsLedgerId, max(entries)
            self._format.restore(self, ml.PositionInfo.FromString(entries.pop(self.ledger_last_entry)))
        for stale in entries:  # the commit that should have deleted it failed
            self._store(entry_path(self.ledger_id, stale), None)
        self._stored_mark = self.mark_delete
