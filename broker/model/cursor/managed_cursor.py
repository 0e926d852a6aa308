"""The managed cursor: mark-delete position, holes, and where reading goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pulsarium.broker.model.cursor.kept_cursor import KeptCursor
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.storage.errors import StorageError


class ManagedCursor(KeptCursor):
    """What one subscription has consumed of a managed ledger.

    `mark_delete` is the last position up to which everything is acknowledged.
    """

    def __init__(self, ledger: ManagedLedger, name: str, stores: Stores, *, durable: bool, start: Position) -> None:
        super().__init__(ledger, name, stores, durable=durable, start=start)
        self.read_position = ledger.next(start)
        self.unreadable: tuple[Position, StorageError] | None = None  # what stops reading, until it is tried again
        self.consumed = self._consumed_before()

    # life

    def restore(self, value: bytes) -> None:
        """Take the state that was kept."""
        super().restore(value)
        self._move_mark(self.mark_delete)
        self.consumed = self._consumed_before()
        self.rewind()

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
        return position <= self.mark_delete or position in self.holes

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
        holes = self.holes
        if ledger_id == mark.ledger_id and entry_id == mark.entry_id + 1:
            if holes:
                end = holes.take_run(ledger_id, entry_id + 1)
                if end != entry_id:
                    position = Position(ledger_id, end)
                    self._holes_record = None
            self._set_mark(position)
            if holes and position.entry_id + 1 == ledger.confirmed:
                self._advance()
        elif position in holes:
            return False
        else:
            holes.add(position)
            if self._holes_record is not None and position <= self._holes_record.through:
                self._holes_record = None
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
        self.consumed += self.ledger.count_after(self.mark_delete, position) - self.holes.count_through(position)
        self._move_mark(position)
        self._advance()
        return True

    def _advance(self) -> None:
        """Move the mark over the holes that follow it, into later ledgers too."""
        mark = self.mark_delete
        while self.holes:
            following = self.ledger.next(mark)
            end = self.holes.take_run(*following)
            if end < following.entry_id:
                break
            mark = Position(following.ledger_id, end)
            self._holes_record = None
        if mark != self.mark_delete:
            self._set_mark(mark)

    def _move_mark(self, position: Position) -> None:
        if self.holes:
            self.holes.remove_through(position)
            self._holes_record = None
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
        return self.ledger.count_after(self.mark_delete) - len(self.holes)

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
            acked = self.holes.of(ledger_id)
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
        self.consumed -= len(self.holes)
        self.holes.clear()
        self._holes_record = None
        self.batch_acks.clear()
        before, self.mark_delete = self.mark_delete, self.ledger.previous(read)
        self.start = min(self.start, self.mark_delete)
        self.consumed += self.ledger.count_after(before) - self.ledger.count_after(self.mark_delete)
        self.read_position = read
        if ack_set and read == target:
            self.batch_acks.merge(target, ack_set)
        self.save()
