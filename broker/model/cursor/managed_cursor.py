"""The managed cursor: mark-delete position, holes, and where reading goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.cursor.batch_acks import BatchAcks
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger, Stores
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.proto.generated import MLDataFormats_pb2 as ml

SAVE_DELAY = 0.1  # seconds; acknowledgements that nobody waits for are saved at least this often


class ManagedCursor:
    """What one subscription has consumed of a managed ledger.

    `mark_delete` is the last position up to which everything is acknowledged. A durable cursor keeps its state in the
    store; a reader's does not.
    """

    def __init__(self, ledger: ManagedLedger, name: str, stores: Stores, *, durable: bool, start: Position) -> None:
        self.ledger = ledger
        self.name = name
        self.durable = durable
        self.mark_delete = start
        self.read_position = ledger.next(start)
        self.holes = PositionSet()
        self.batch_acks = BatchAcks()
        self.properties: dict[str, int] = {}
        self.cursor_properties: dict[str, str] = {}
        self.consumed = 0
        self.ledger_id = -1  # of the cursor's own ledger, as internalStats shows it
        self.saves = 0
        self.last_switch_ms = stores.clock.now_ms()
        self._stores = stores
        self._save_timer: Timer | None = None
        rate = stores.config.managedLedgerDefaultMarkDeleteRateLimit
        self._save_delay = max(SAVE_DELAY, 1 / rate) if rate else SAVE_DELAY

    # keeping

    @property
    def path(self) -> str:
        return f"{self.ledger.path}/{quote(self.name, safe='')}"

    def save(self) -> None:
        """Persist point: the cursor."""
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        if not self.durable:
            return
        if self.ledger_id < 0:
            self.ledger_id = self._stores.next_ledger_id()
        self.saves += 1
        if self._stores.storage.keeps_entries:
            self._stores.turn.store(self.path, self._info().SerializeToString())

    def save_soon(self) -> None:
        """Something changed that nobody waits for (managedLedgerDefaultMarkDeleteRateLimit)."""
        if self.durable and self._save_timer is None:
            self._save_timer = self._stores.clock.call_later(self._save_delay, self.save)

    def save_if_due(self) -> None:
        """Do now what `save_soon` would do later."""
        if self._save_timer is not None:
            self.save()

    def _info(self) -> ml.ManagedCursorInfo:
        info = ml.ManagedCursorInfo(
            cursorsLedgerId=-1,
            markDeleteLedgerId=self.mark_delete.ledger_id,
            markDeleteEntryId=self.mark_delete.entry_id,
            lastActive=self._stores.clock.now_ms(),
        )
        for before, last in self.holes.ranges():
            kept = info.individualDeletedMessages.add()
            kept.lowerEndpoint.ledgerId, kept.lowerEndpoint.entryId = before
            kept.upperEndpoint.ledgerId, kept.upperEndpoint.entryId = last
        for position, words in self.batch_acks.items():
            batch = info.batchedEntryDeletionIndexInfo.add()
            batch.position.ledgerId, batch.position.entryId = position
            batch.deleteSet.extend(words)
        for name, number in self.properties.items():
            info.properties.add(name=name, value=number)
        for name, text in self.cursor_properties.items():
            info.cursorProperties.add(name=name, value=text)
        return info

    def restore(self, value: bytes) -> None:
        """Take the state that was kept."""
        info = ml.ManagedCursorInfo.FromString(value)
        self.mark_delete = Position(info.markDeleteLedgerId, info.markDeleteEntryId)
        for kept in info.individualDeletedMessages:
            self.holes.add_range(
                kept.upperEndpoint.ledgerId, kept.lowerEndpoint.entryId + 1, kept.upperEndpoint.entryId + 1
            )
        for batch in info.batchedEntryDeletionIndexInfo:
            self.batch_acks.merge(Position(batch.position.ledgerId, batch.position.entryId), batch.deleteSet)
        for number in info.properties:
            self.properties[number.name] = number.value
        for text in info.cursorProperties:
            self.cursor_properties[text.name] = text.value
        self.rewind()

    def delete(self) -> None:
        """The subscription is gone."""
        if self._save_timer is not None:
            self._save_timer.cancel()
        if self.durable:
            self._stores.turn.store(self.path, None)

    # acknowledging

    def is_acked(self, position: Position) -> bool:
        return position <= self.mark_delete or position in self.holes

    def ack(self, position: Position) -> bool:
        """Acknowledge one entry; whether that changed anything."""
        mark = self.mark_delete
        in_order = position.entry_id == mark.entry_id + 1 and position.ledger_id == mark.ledger_id
        if in_order and not self.holes and self.ledger.is_valid(position):
            self.mark_delete = position
            if self.read_position <= position:
                self.read_position = self.ledger.next(position)
        elif self.is_acked(position) or not self.ledger.is_valid(position):
            return False
        else:
            self.holes.add(position)
            self._advance()
        self.consumed += 1
        if self.batch_acks:
            self.batch_acks.forget(position)
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
        if ledger is not None and position.entry_id >= ledger.confirmed:  # beyond the end of an earlier ledger
            position = Position(ledger.id, ledger.confirmed - 1)
            if position <= self.mark_delete:
                return False
        self.consumed += self.ledger.count_after(self.mark_delete, position) - self.holes.count_through(position)
        self._move_mark(position)
        self._advance()
        return True

    def _advance(self) -> None:
        """Move the mark over the holes that follow it, into later ledgers too."""
        moved = False
        mark = self.mark_delete
        while True:
            following = self.ledger.next(mark)
            end = self.holes.run_end(following)
            if end < following.entry_id:
                break
            mark = Position(following.ledger_id, end)
            moved = True
        if moved:
            self._move_mark(mark)

    def _move_mark(self, position: Position) -> None:
        self.mark_delete = position
        if self.holes:
            self.holes.remove_through(position)
        if self.batch_acks:
            self.batch_acks.forget_through(position)
        if self.read_position <= position:
            self.read_position = self.ledger.next(position)

    # reading

    def backlog(self) -> int:
        """Entries that are not acknowledged."""
        return self.ledger.count_after(self.mark_delete) - self.holes.count_through(self.ledger.last_confirmed)

    def has_more(self) -> bool:
        """Whether there are entries that were not read yet."""
        return self.read_position <= self.ledger.last_confirmed

    def read(self, limit: int, ready: Callable[[], None]) -> list[tuple[Position, bytes]] | None:
        """The next unacknowledged entries, at most `limit`, and moves on past them; [] at the end.

        None: they are being loaded, `ready()` is called when they are there.
        """
        found: list[tuple[Position, bytes]] = []
        while not found and self.has_more():
            start = self.ledger.next(Position(self.read_position.ledger_id, self.read_position.entry_id - 1))
            entries = self.ledger.read(start, limit, ready)
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
        """Read again from the first entry that is not acknowledged."""
        self.read_position = self.ledger.next(self.mark_delete)

    def reset(self, target: Position, ack_set: Sequence[int] = ()) -> None:
        """Move to `target`, inclusive, wherever it is (SEEK); later acknowledgements are forgotten."""
        if target == EARLIEST:
            read = self.ledger.next(self.ledger.first_position())
        elif target.ledger_id == LATEST.ledger_id:
            read = self.ledger.next(self.ledger.last_confirmed)
        else:
            read = self.ledger.clamp(target)
        self.holes.clear()
        self.batch_acks.clear()
        self.mark_delete = self.ledger.previous(read)
        self.read_position = read
        if ack_set and read == target:
            self.batch_acks.merge(target, ack_set)
        self.save()
