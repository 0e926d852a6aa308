"""The managed cursor: the acknowledgements and the read position of a subscription, and how they are stored.

    entry        0   1   2   3   4   5   6   7   8   9
                 a   a   a   -   a   p   -   a   -   -         a: acknowledged, p: partly, -: not
                         |               |           |
           mark-delete position     read position   end of the ledger (last confirmed)

Everything up to the mark-delete position is acknowledged. Entries behind it that are acknowledged alone are in
`individual_acks`, and batches of which some messages are left are in `batch_acks`. The backlog is what lies behind the
mark-delete position, without the individually acknowledged entries. These invariants hold between two calls:

- The entry behind the mark-delete position is not acknowledged: `_advance` moves the position over a run of
  acknowledged entries, also into later ledgers.
- No individual or partial acknowledgement is at or before the mark-delete position.
- The read position is behind the mark-delete position. It moves with reads, and back with a seek or a redelivery of
  everything; dispatchers keep single entries to redeliver themselves.

Acknowledging never waits. A client that asked for an answer gets it after the commit of `save_now`; other
acknowledgements are saved within `SAVE_DELAY`. So a crash may lose acknowledgements that nobody was told of, and their
messages are delivered again, as in Pulsar.

Pulsar stores the state twice: the metadata store has a ManagedCursorInfo, and while entries are acknowledged, it only
names a ledger of the cursor, whose newest PositionInfo counts. The same records are kept here (`records.py`), because
REST shows them and Pulsar's own tools read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from urllib.parse import quote

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.cursor.paths import entry_path, ledger_path, pending_acks_path
from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.cursor.pending_record import PendingRecord
from pulsarium.broker.model.cursor.records import (
    NO_LEDGER,
    NO_PROPERTIES,
    NO_SUBSCRIPTION_PROPERTIES,
    AcksRecord,
    BatchAcks,
    CursorFormat,
    SubscriptionProperties,
    read_cursor_info,
)
from pulsarium.broker.model.cursor.save_pace import SavePace
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position, position_of
from pulsarium.broker.model.ledger.position_set import MANY, PositionSet
from pulsarium.broker.model.ledger.stores import Stat, Stores, takes_transactions
from pulsarium.broker.storage.interface import Done, StorageError
from pulsarium.proto.generated import MLDataFormats_pb2 as ml

SAVE_DELAY = 0.1  # seconds; acknowledgements without a waiting client are saved at least this often


BEHIND_THE_END = "Invalid mark deleted position"


class ManagedCursor:
    """The acknowledgements and the read position of one subscription in a managed ledger.

    `mark_delete` is the mark-delete position, up to which everything is acknowledged. A durable cursor stores its state
    in the metadata store, or in a ledger of its own. The cursor of a reader is not stored.
    """

    def __init__(self, ledger: ManagedLedger, name: str, stores: Stores, *, durable: bool, start: Position) -> None:
        self.ledger = ledger
        self.name = name
        self.durable = durable
        self.start = start  # the subscription ignores everything before this position
        self.mark_delete = start
        self.individual_acks = PositionSet()  # behind the mark-delete position; individuallyDeletedMessages of stats
        self.batch_acks = BatchAcks()
        self.properties = NO_PROPERTIES
        self.cursor_properties = NO_SUBSCRIPTION_PROPERTIES
        self.saves = 0
        self.info = b""  # the ManagedCursorInfo in the metadata store, after the first save
        self.stat = Stat(stores.clock.now_ms())
        self.ledger_id = NO_LEDGER  # the ledger that stores this cursor, or NO_LEDGER when the metadata store does
        self.ledger_last_entry = -1
        self.ledger_open = False  # takes records; the ledger found after a restart does not
        self._kept_ledger_id = NO_LEDGER  # the ledger of the last successful commit
        self.last_switch_ms = stores.clock.now_ms()
        self._stores = stores
        self._format = CursorFormat(stores.config, forgets_parts=stores.profile.unload_forgets)
        self._keeps = durable and stores.storage.keeps_entries
        self._stored_mark = start
        self._opened_at = start  # the mark-delete position that was stored before the ledger was opened
        # the properties of the stored info; None when the info has to be written
        self._stored_properties: SubscriptionProperties | None = None
        self._acks_record: AcksRecord | None = None  # the encoded current acknowledgements, when they were needed
        self._save_timer: Timer | None = None
        self._pace = SavePace(stores)
        rate = stores.config.managedLedgerDefaultMarkDeleteRateLimit
        self._save_delay = max(SAVE_DELAY, 1 / rate) if rate else SAVE_DELAY
        self.read_position = ledger.next(start)
        # the error at this position, until a read is tried again
        self.unreadable: tuple[Position, StorageError] | None = None
        self.pending_acks: PendingAcks | None = None  # with transactionCoordinatorEnabled
        if takes_transactions(stores.config, ledger.name):
            record = PendingRecord(pending_acks_path(ledger.name, name), stores, durable=durable)
            self.pending_acks = PendingAcks(name, self, record, stores)
        self.consumed = self._consumed_before()

    # life cycle

    def restore(self, value: bytes) -> None:
        """Restore the stored state."""
        self.info = value
        self.start = EARLIEST  # the start is not stored: anything before may have been acknowledged
        self.stat.changed(self._stores.clock.now_ms())
        info = read_cursor_info(value)
        self.cursor_properties = SubscriptionProperties((text.name, text.value) for text in info.cursorProperties)
        self._stored_properties = self.cursor_properties
        self._format.restore(self, info)
        self._opened_at = self.mark_delete
        entries = {int(name): entry for name, entry in self._stores.recovered_under(ledger_path(info.cursorsLedgerId))}
        if entries:  # as in Pulsar, without entries the state of the ledger's creation counts
            self.ledger_id, self.ledger_last_entry = info.cursorsLedgerId, max(entries)
            self._format.restore(self, ml.PositionInfo.FromString(entries.pop(self.ledger_last_entry)))
        for stale in entries:  # left by a failed commit
            self._store(entry_path(self.ledger_id, stale), None)
        self._stored_mark = self.mark_delete
        self._move_mark(self.mark_delete)
        self.consumed = self._consumed_before()
        self.rewind()
        if self.pending_acks is not None:
            self.pending_acks.recover()

    def reopen(self) -> None:
        """Reset the cursor after its topic was unloaded, and is loaded again."""
        self.close()
        if self._stores.profile.unload_forgets:
            self.forget_what_is_not_kept()
        self.consumed = self._consumed_before()
        self.rewind()

    def _consumed_before(self) -> int:
        """Return the first value of Pulsar's messagesConsumedCounter, which is negative after a load with a backlog."""
        return self.ledger.entries_added - self.backlog()

    # acknowledging

    def is_acked(self, position: Position) -> bool:
        return position <= self.mark_delete or position in self.individual_acks

    @property
    def has_parts(self) -> bool:
        """Return whether any entry is partly acknowledged, or acknowledged in an open transaction."""
        return bool(self.batch_acks) or bool(self.pending_acks)

    def left_of(self, position: Position) -> int | None:
        """Return the bits of the messages of an entry that are not acknowledged, or None when all remain.

        Messages that open transactions have acknowledged are excluded.
        """
        left = self.batch_acks.bits(position)
        return left if self.pending_acks is None else self.pending_acks.left_of(position, left)

    def is_settled(self, position: Position) -> bool:
        """Return whether an entry needs no delivery, because it is acknowledged, maybe in open transactions."""
        return self.is_acked(position) or self.left_of(position) == 0

    def ack(self, position: Position) -> bool:
        """Acknowledge one entry, and return whether that changed anything."""
        mark = self.mark_delete
        ledger_id, entry_id = position
        ledger = self.ledger.ledgers.get(ledger_id)
        if position <= mark or ledger is None or not 0 <= entry_id < ledger.confirmed:
            return False
        acks = self.individual_acks
        if ledger_id == mark.ledger_id and entry_id == mark.entry_id + 1:
            if acks:
                end = acks.take_run(ledger_id, entry_id + 1)
                if end != entry_id:
                    position = Position(ledger_id, end)
                    self._acks_record = None
            self._set_mark(position)
            if acks and position.entry_id + 1 == ledger.confirmed:
                self._advance()
        elif position in acks:
            return False
        else:
            acks.add(position)
            if self._acks_record is not None and position <= self._acks_record.through:
                self._acks_record = None
            if ledger_id != mark.ledger_id:  # else an unacknowledged entry stands in between
                self._advance()
            if self.batch_acks:
                self.batch_acks.forget(position)
        self.consumed += 1
        return True

    def ack_all(self, positions: Sequence[Position]) -> None:
        """Acknowledge entries as `ack` does one after the other. Many take less time for each."""
        if len(positions) < MANY:
            for position in positions:
                self.ack(position)
            return
        for ledger_id, run in groupby(positions, key=itemgetter(0)):
            if ledger_id in self.ledger.ledgers and ledger_id >= self.mark_delete.ledger_id:
                self._ack_many(ledger_id, [entry_id for _, entry_id in run])

    def _ack_many(self, ledger_id: int, entry_ids: list[int]) -> None:
        mark, stop = self.mark_delete, self.ledger.ledgers[ledger_id].confirmed
        first = mark.entry_id + 1 if ledger_id == mark.ledger_id else 0
        new = self.individual_acks.add_new(ledger_id, [each for each in entry_ids if first <= each < stop])
        if not new:
            return
        self.consumed += len(new)
        if self._acks_record is not None and (ledger_id, new[0]) <= self._acks_record.through:
            self._acks_record = None
        for entry_id in new if self.batch_acks else ():
            self.batch_acks.forget(Position(ledger_id, entry_id))
        if ledger_id != mark.ledger_id or new[0] == first:  # else an unacknowledged entry stands in between
            self._advance()

    def ack_batch(self, position: Position, words: Sequence[int]) -> bool:
        """Acknowledge part of a batch (PIP-54), and return whether that completes the entry."""
        if self.is_acked(position) or not self.ledger.is_valid(position):
            return False
        return self.batch_acks.merge(position, words) and self.ack(position)

    def ack_cumulative(self, position: Position) -> bool:
        """Acknowledge everything up to `position`, and return whether that changed anything."""
        if position <= self.mark_delete or position > self.ledger.last_confirmed:
            return False
        ledger = self.ledger.ledgers.get(position.ledger_id)
        if position.entry_id < -1:  # the mark-delete position could never advance from below -1
            position = Position(position.ledger_id, -1)
        elif ledger is not None and position.entry_id >= ledger.confirmed:  # behind the end of an earlier ledger
            position = Position(ledger.id, ledger.confirmed - 1)
            if position <= self.mark_delete:
                return False
        known = self.individual_acks.count_through(position)
        self.consumed += self.ledger.count_after(self.mark_delete, position) - known
        self._move_mark(position)
        self._advance()
        return True

    def why_not_through(self, position: Position) -> str:
        """Return why Pulsar refuses to acknowledge everything up to `position`, or an empty text."""
        if position > self.ledger.last_confirmed:
            return BEHIND_THE_END
        if position >= self.mark_delete:
            return ""
        return (
            "org.apache.bookkeeper.mledger.impl.ManagedCursorImpl$MarkDeletingMarkedPosition: Mark deleting an already "
            f"mark-deleted position. Current mark-delete: {self.mark_delete} -- attempted mark delete: {position}"
        )

    def _advance(self) -> None:
        """Advance the mark-delete position over the acknowledged entries behind it, also in later ledgers."""
        mark = self.mark_delete
        while self.individual_acks:
            following = self.ledger.next(mark)
            end = self.individual_acks.take_run(*following)
            if end < following.entry_id:
                break
            mark = Position(following.ledger_id, end)
            self._acks_record = None
        if mark != self.mark_delete:
            self._set_mark(mark)

    def _move_mark(self, position: Position) -> None:
        if self.individual_acks:
            self.individual_acks.remove_through(position)
            self._acks_record = None
        self._set_mark(position)

    def _set_mark(self, position: Position) -> None:
        self.mark_delete = position
        if self.batch_acks:
            self.batch_acks.forget_through(position)
        if self.read_position <= position:
            self.read_position = self.ledger.next(position)

    # reading

    def backlog(self) -> int:
        """Return the number of entries that are not acknowledged."""
        return self.ledger.count_after(self.mark_delete) - len(self.individual_acks)

    def has_more(self) -> bool:
        """Return whether unread entries exist that consumers may read."""
        return self.read_position <= self.ledger.max_read

    def is_held(self) -> bool:
        """Return whether the unread entries wait for the end of an open transaction."""
        return self.ledger.transactions.held_at is not None and self.read_position <= self.ledger.last_confirmed

    def read(self, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        """Return up to `limit` unacknowledged entries, and move the read position behind them. Return [] at the end.

        Return None while entries are being loaded; `ready()` is called afterwards. Raise the error of an unreadable
        entry, and raise it again without reading the disk until `unreadable` is None.
        """
        found: list[tuple[Position, bytes]] = []
        while not found and self.has_more():
            start = self.ledger.next(Position(self.read_position.ledger_id, self.read_position.entry_id - 1))
            if self.unreadable is not None and self.unreadable[0] == start:
                raise self.unreadable[1].with_traceback(None)
            try:
                entries = self.ledger.read(start, limit, ready)
            except StorageError as error:
                self.unreadable = start, error
                raise
            if entries is None:
                return None
            if not entries:
                break
            ledger_id, entry_id = start
            acked = self.individual_acks.of(ledger_id)
            numbered = enumerate(entries, entry_id)
            if acked is None:
                found = [(position_of((ledger_id, number)), entry) for number, entry in numbered]
            else:
                found = [(position_of((ledger_id, number)), entry) for number, entry in numbered if number not in acked]
            self.read_position = Position(ledger_id, entry_id + len(entries))
        return found

    def rewind(self) -> None:
        """Move the read position back to the first unacknowledged entry.

        The cursor of a reader may stand before all ledgers, because compaction may have kept trimmed entries.
        """
        mark = self.mark_delete
        trimmed = not self.durable and mark.ledger_id not in self.ledger.ledgers
        self.read_position = Position(mark.ledger_id, mark.entry_id + 1) if trimmed else self.ledger.next(mark)

    def reset(self, target: Position, ack_set: Sequence[int] = ()) -> None:
        """Move the cursor so that `target` is read next (SEEK). Later acknowledgements are dropped."""
        if target == EARLIEST:
            read = self.ledger.next(self.ledger.first_position())
        elif target.ledger_id == LATEST.ledger_id:
            read = self.ledger.next(self.ledger.last_confirmed)
        else:
            read = self.ledger.clamp(target)
        self.consumed -= len(self.individual_acks)
        self.individual_acks.clear()
        self._acks_record = None
        self.batch_acks.clear()
        before, self.mark_delete = self.mark_delete, self.ledger.previous(read)
        self.start = min(self.start, self.mark_delete)
        self.consumed += self.ledger.count_after(before) - self.ledger.count_after(self.mark_delete)
        self.read_position = read
        if ack_set and read == target:
            self.batch_acks.merge(target, ack_set)
        self.save()

    # storing

    @property
    def path(self) -> str:
        return f"{self.ledger.path}/{quote(self.name, safe='')}"

    def save_now(self) -> None:
        """Save for a client that waits (`after_save`), now or soon: a large record is saved once for many clients."""
        if not self._pace.put_off(self.save):
            self.save()

    def after_save(self, done: Done) -> None:
        """Call `done` when what `save_now` was called for is stored, or has failed."""
        self._pace.after_save(done)

    def save(self) -> None:
        """Persist point: the cursor.

        The metadata store takes the state until the first whole entry is acknowledged. Then the cursor's own ledger
        does.
        """
        self._cancel_timer()
        if not self.durable:
            return
        self.saves += 1
        moved = bool(self.individual_acks) or self.mark_delete != self._stored_mark
        if self.ledger_open:
            self._append_record(new=moved)
        elif self.ledger_id != NO_LEDGER or moved:
            self._open_ledger()
            self._append_record(new=True)
        if not self.ledger_open or self._stored_properties is not self.cursor_properties:
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
        # a new ledger may get the same id, because the counter was not stored either
        if self.ledger_id != self._kept_ledger_id:
            self.ledger_open = False
        self.save_soon()

    def save_soon(self) -> None:
        """Save within a delay, because no client waits for the change (managedLedgerDefaultMarkDeleteRateLimit)."""
        if self.durable and self._save_timer is None:
            delay = max(self._save_delay, self._pace.pause())
            self._save_timer = self._stores.clock.call_later(delay, self.save)

    def close(self) -> None:
        """Save the state when the topic is unloaded or the broker stops.

        The metadata store takes the state if it fits.
        """
        if self._save_timer is not None or self._pace.is_waiting:
            self.save()
        if self.ledger_id == NO_LEDGER:
            return
        if self.ledger_open and not self._format.fits_metadata(self.individual_acks):
            self._append_record(new=True)
        else:
            self._forget_ledger()
            self._store_info()
        self.ledger_open = False

    def forget_what_is_not_kept(self) -> None:
        """Drop the acknowledgements that a closed cursor does not store (managedLedgerMaxUnackedRangesToPersist)."""
        if not (self.individual_acks or self.batch_acks):
            return
        kept: ml.ManagedCursorInfo | ml.PositionInfo
        if self.ledger_id == NO_LEDGER:
            kept = read_cursor_info(self._format.cursor_info(self, NO_SUBSCRIPTION_PROPERTIES, 0))
        else:
            kept = ml.PositionInfo.FromString(self._format.position_info(self, self._encoded_acks()))
        self.individual_acks.clear()
        self.batch_acks.clear()
        self._acks_record = None
        self._format.restore(self, kept)

    def delete(self) -> None:
        """Delete the stored state of the subscription. The cursor itself stays as it is, in case the commit fails."""
        self._cancel_timer()
        if self.pending_acks is not None:
            self.pending_acks.delete()
        if self.durable:
            self._delete_record()
            self._stores.turn.store(self.path, None)

    def _cancel_timer(self) -> None:
        self._pace.saving()
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None

    def _open_ledger(self) -> None:
        """Open a ledger whose first entry is the current state, as in Pulsar."""
        self._forget_ledger()
        self.ledger_id, self.ledger_last_entry, self.ledger_open = self._stores.next_ledger_id(), 0, True
        self._opened_at = self._stored_mark
        self.last_switch_ms = self._stores.clock.now_ms()
        self._stored_properties = None

    def _delete_record(self) -> None:
        if self.ledger_id != NO_LEDGER:
            self._store(entry_path(self.ledger_id, self.ledger_last_entry), None)

    def _forget_ledger(self) -> None:
        self._delete_record()
        self.ledger_id, self.ledger_last_entry, self.ledger_open = NO_LEDGER, -1, False

    def _store_info(self) -> None:
        self._stored_properties = self.cursor_properties
        now_ms = self._stores.clock.now_ms()
        if self.ledger_id == NO_LEDGER:
            self.info = self._format.cursor_info(self, self.cursor_properties, now_ms)
        else:
            self.info = self._format.ledger_info(self, self.ledger_id, self._opened_at, self.cursor_properties, now_ms)
        self.stat.changed(now_ms)
        self._store(self.path, self.info)

    def _append_record(self, *, new: bool) -> None:
        """Append a record to the cursor's ledger. Only the newest record is stored, because no other is ever read.

        Without `new`, replace the last record, because Pulsar writes no record for parts of batches alone.
        """
        # first, so that a record which cannot be encoded does not delete the last one
        record = self._format.position_info(self, self._encoded_acks()) if self._keeps else b""
        if new:
            self._store(entry_path(self.ledger_id, self.ledger_last_entry), None)
            self.ledger_last_entry += 1
        if self._keeps:
            self._store(entry_path(self.ledger_id, self.ledger_last_entry), record)
            self._pace.wrote(len(record))

    def _encoded_acks(self) -> AcksRecord:
        if self._acks_record is None:
            self._acks_record = self._format.acks_record(self.individual_acks)
        return self._acks_record

    def individual_acks_size(self) -> int:
        """Return the bytes that the individual acknowledgements take in a record."""
        return len(self._encoded_acks().data) if self.durable else 0

    def _store(self, path: str, value: bytes | None) -> None:
        if self._keeps:
            self._stores.turn.store(path, value)
