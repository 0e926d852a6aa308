"""A subscription whose consumers acknowledge in transactions, on a store that can hold back commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.cursor.pending_record import PendingEntry
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.proto.message_id import TxnId
from tests.broker.held import HeldStorage
from tests.broker.model.dispatch.clients import FakeClient, Stand

NOTHING_OVER = -1  # the low watermark while no transaction is over


def txn(least: int, most: int = 0) -> TxnId:
    return TxnId(most, least)


def part(position: Position, size: int, *indexes: int, says_size: bool = True) -> PendingEntry:
    """Return an acknowledgement of these batch indexes of an entry."""
    left = (1 << size) - 1
    for index in indexes:
        left &= ~(1 << index)
    return PendingEntry(position, left, size if says_size else 0, 1)


class Pended(Stand):
    """A stand with transactions, where each call is a turn of its own."""

    def __init__(self, storage: HeldStorage | None = None, **config: Any) -> None:
        self.store = storage or HeldStorage()
        super().__init__(self.store, **{"transactionCoordinatorEnabled": True, **config})
        self.client = FakeClient()

    @property
    def pending(self) -> PendingAcks:
        found = self.subscription.pending_acks
        assert found is not None
        return found

    def killed(self) -> Pended:
        """Return a new broker on what the store has committed, as after a kill."""
        store = HeldStorage()
        store.entries, store.metadata = self.store.entries, dict(self.store.metadata)
        return Pended(store)

    @property
    def kept(self) -> list[str]:
        """Return the names of the pending acknowledgements in the store, below the path of the subscription."""
        folder = self.pending.record.path + "/"
        return sorted(path[len(folder) :] for path in self.store.metadata if path.startswith(folder))

    def acks(self, of: TxnId, consumer: Consumer, *acked: Position | PendingEntry) -> None:
        acks = [each if isinstance(each, PendingEntry) else PendingEntry(each) for each in acked]
        try:
            self.subscription.acknowledge_in(of, consumer, acks)
        finally:
            self.end_turn()

    def acks_through(self, of: TxnId, acked: Position | PendingEntry) -> None:
        try:
            self.pending.acknowledge_through(of, acked if isinstance(acked, PendingEntry) else PendingEntry(acked))
        finally:
            self.end_turn()

    def commit(self, of: TxnId, low_watermark: int = NOTHING_OVER) -> None:
        self.pending.end(of, commit=True, low_watermark=low_watermark)
        self.end_turn()

    def abort(self, of: TxnId, low_watermark: int = NOTHING_OVER) -> None:
        self.pending.end(of, commit=False, low_watermark=low_watermark)
        self.end_turn()

    @property
    def got(self) -> list[tuple[Position, int, Sequence[int]]]:
        """Return the deliveries since the last call: the position, the redelivery count and the ack set of each."""
        deliveries, self.client.got = self.client.got, []
        return [(each.position, each.redelivery_count, list(each.ack_set)) for each in deliveries]

    @property
    def acked(self) -> set[Position]:
        """Return the positions of the entries that are acknowledged."""
        cursor, ledger = self.subscription.cursor, self.topic.ledger
        found, position = set(), ledger.next(ledger.first_position())
        while position <= ledger.last_confirmed:
            if cursor.is_acked(position):
                found.add(position)
            position = ledger.next(position)
        return found


def consuming(type: int, *entries: bytes, permits: int = 10, **config: Any) -> tuple[Pended, Consumer, list[Position]]:
    """Publish these entries and return the stand, a consumer that received them, and their positions."""
    stand = Pended(**config)
    sent = stand.publish(*entries)
    return stand, stand.join(stand.client, type, permits=permits), sent
