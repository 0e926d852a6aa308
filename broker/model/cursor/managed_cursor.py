"""The managed cursor: what is acknowledged, where reading goes on, and how that is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import quote

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.cursor.records import NO_LEDGER, AcksRecord, BatchAcks, CursorFormat, read_cursor_info
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.ledger.stores import Stat, Stores
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.generated import MLDataFormats_pb2 as ml

SAVE_DELAY = 0.1  # seconds; acknowledgements that nobody waits for are saved at least this often


def ledger_path(ledger_id: int) -> str:
    """The folder of a cursor's ledger."""
    return f"/cursor-ledgers/{ledger_id}"


def entry_path(ledger_id: int, entry_id: int) -> str:
    """Where an entry of it is kept."""
    return f"{ledger_path(ledger_id)}/{entry_id}"


class ManagedCursor:
    """What one subscription has consumed of a managed ledger.

    `mark_delete` is the last position up to which everything is acknowledged. A durable cursor keeps its state in the
    metadata store, and in a ledger of its own; a reader's does not.
    """

    def __init__(self, ledger: ManagedLedger, name: str, stores: Stores, *, durable: bool, start: Position) -> None:
        self.ledger = ledger
        self.name = name
        self.durable = durable
        self.start = start  # what was before is nothing to it
        self.mark_delete = start
        self.individual_acks = PositionSet()  # behind the mark: individuallyDeletedMessages of the stats
        self.batch_acks = BatchAcks()
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
        self._acks_record: AcksRecord | None = None  # of these as they are, once it was needed
        self._save_timer: Timer | None = None
        rate = stores.config.managedLedgerDefaultMarkDeleteRateLimit
        self._save_delay = max(SAVE_DELAY, 1 / rate) if rate else SAVE_DELAY
        self.read_position = ledger.next(start)
        self.unreadable: tuple[Position, StorageError] | None = None  # what stops reading, until it is tried again
        self.pending_acks = PendingAcks(self, stores) if stores.config.transactionCoordinatorEnabled else None
        self.consumed = self._consumed_before()

    # life

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
        self._move_mark(self.mark_delete)
        self.consumed = self._consumed_before()
        self.rewind()
        if self.pending_acks is not None:
            self.pending_acks.recover()

    def reopen(self) -> None:
        """The topic was unloaded and is loaded again."""
        self.close()
        if self._stores.profile.unload_forgets:
            self.forget_what_is_not_kept()
        self.consumed = self._consumed_before()
        self.rewind()

    def _consumed_before(self) -> int:
        """Where Pulsar's counter begins: less than nothing, where a ledger counts added entries from 0 again."""
        return self.ledger.entries_added - self.backlog()

    # acknowledging

    def is_acked(self, position: Position) -> bool:
        return position <= self.mark_delete or position in self.individual_acks

    @property
    def has_parts(self) -> bool:
        """Whether `left_of` has anything to say."""
        return bool(self.batch_acks) or bool(self.pending_acks)

    def left_of(self, position: Position) -> int | None:
        """The messages of an entry that are still to be acknowledged, a bit for each; None: all of it.

        What open transactions acknowledged is not among them.
        """
        left = self.batch_acks.bits(position)
        return left if self.pending_acks is None else self.pending_acks.left_of(position, left)

    def is_settled(self, position: Position) -> bool:
        """Whether nobody is given an entry: it is acknowledged, in open transactions perhaps."""
        return self.is_acked(position) or self.left_of(position) == 0

    def ack(self, position: Position) -> bool:
        """Acknowledge one entry; whether that changed anything."""
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
            if ledger_id != mark.ledger_id:  # else something between the two is not acknowledged
                self._advance()
            if self.batch_acks:
                self.batch_acks.forget(position)
        self.consumed += 1
        return True

    def ack_batch(self, position: Position, words: Sequence[int]) -> bool:
        """Acknowledge part of a batch (PIP-54); whether the whole entry is acknowledged by it."""
        if self.is_acked(position) or not self.ledger.is_valid(position):
            return False
        return self.batch_acks.merge(position, words) and self.ack(position)

    def ack_cumulative(self, position: Position) -> bool:
        """Acknowledge everything up to `position`; whether that changed anything."""
        if position <= self.mark_delete or position > self.ledger.last_confirmed:
            return False
        ledger = self.ledger.ledgers.get(position.ledger_id)
        if position.entry_id < -1:  # single acks would never reach the first entry from there
            position = Position(position.ledger_id, -1)
        elif ledger is not None and position.entry_id >= ledger.confirmed:  # beyond the end of an earlier ledger
            position = Position(ledger.id, ledger.confirmed - 1)
            if position <= self.mark_delete:
                return False
        known = self.individual_acks.count_through(position)
        self.consumed += self.ledger.count_after(self.mark_delete, position) - known
        self._move_mark(position)
        self._advance()
        return True

    def _advance(self) -> None:
        """Move the mark over what follows it and is acknowledged, into later ledgers too."""
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
        """Entries that are not acknowledged."""
        return self.ledger.count_after(self.mark_delete) - len(self.individual_acks)

    def has_more(self) -> bool:
        """Whether there are entries that were not read yet, and may be."""
        return self.read_position <= self.ledger.max_read

    def is_held(self) -> bool:
        """Whether those that were not read yet stand behind an open transaction."""
        return self.ledger.transactions.held_at is not None and self.read_position <= self.ledger.last_confirmed

    def read(self, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        """The next unacknowledged entries, at most `limit`, and moves on past them; [] at the end.

        None: they are being loaded, `ready()` is called when they are there. Raises why they cannot be read, and does
        so at that place without a look at the disk until `unreadable` is None again.
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
                found = [(Position(ledger_id, number), entry) for number, entry in numbered]
            else:
                found = [(Position(ledger_id, number), entry) for number, entry in numbered if number not in acked]
            self.read_position = Position(ledger_id, entry_id + len(entries))
        return found

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged.

        A reader's mark may stand before all ledgers: compaction may have kept something of those that were trimmed.
        """
        mark = self.mark_delete
        trimmed = not self.durable and mark.ledger_id not in self.ledger.ledgers
        self.read_position = Position(mark.ledger_id, mark.entry_id + 1) if trimmed else self.ledger.next(mark)

    def reset(self, target: Position, ack_set: Sequence[int] = ()) -> None:
        """Move to `target`, inclusive, wherever it is (SEEK); later acknowledgements are forgotten."""
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

    # keeping

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
        moved = bool(self.individual_acks) or self.mark_delete != self._stored_mark
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
        if self.ledger_open and not self._format.fits_metadata(self.individual_acks):
            self._append_record(new=True)
        else:
            self._forget_ledger()
            self._store_info()
        self.ledger_open = False

    def forget_what_is_not_kept(self) -> None:
        """Hold only what a closed cursor reads back, as after a restart (managedLedgerMaxUnackedRangesToPersist)."""
        if not (self.individual_acks or self.batch_acks):
            return
        kept: ml.ManagedCursorInfo | ml.PositionInfo
        if self.ledger_id == NO_LEDGER:
            kept = read_cursor_info(self._format.cursor_info(self, NO_LEDGER, {}, 0))
        else:
            kept = ml.PositionInfo.FromString(self._format.position_info(self, self._encoded_acks()))
        self.individual_acks.clear()
        self.batch_acks.clear()
        self._acks_record = None
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
            record = self._format.position_info(self, self._encoded_acks())
            self._store(entry_path(self.ledger_id, self.ledger_last_entry), record)

    def _encoded_acks(self) -> AcksRecord:
        if self._acks_record is None:
            self._acks_record = self._format.acks_record(self.individual_acks)
        return self._acks_record

    def individual_acks_size(self) -> int:
        """Bytes that the individual acknowledgements take in a record."""
        return len(self._encoded_acks().data) if self.durable else 0

    def _store(self, path: str, value: bytes | None) -> None:
        if self._keeps:
            self._stores.turn.store(path, value)
