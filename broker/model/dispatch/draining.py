"""Key hashes with unacknowledged messages, and hashes that drain because another consumer owns them now (PIP-379)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.consumer import Consumer


class KeyOwner(NamedTuple):
    """The consumer that has an entry, and the hash of the entry's key."""

    consumer: Consumer
    key_hash: int


class Draining:
    """A draining hash: its entries are held while its former consumer has unacknowledged messages of the hash."""

    __slots__ = ("blocked_attempts", "consumer")

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.blocked_attempts = 0


class OwedKeys:
    """Key hashes of the entries that consumers have not acknowledged.

    A hash that is drained returns the entries held for it.
    """

    def __init__(self) -> None:
        self.draining: dict[int, Draining] = {}
        self.drained: dict[Consumer, int] = {}  # number of drained hashes for each consumer
        self.held: dict[int, PositionSet] = {}  # held entries by hash
        self._owners: dict[Position, KeyOwner] = {}
        self._owed: dict[Consumer, dict[int, int]] = {}  # number of entries by hash for each consumer

    @property
    def entries(self) -> int:
        """Return the number of unacknowledged entries."""
        return len(self._owners)

    def __contains__(self, consumer: Consumer) -> bool:
        return consumer in self._owed

    def join(self, consumer: Consumer) -> None:
        self._owed[consumer] = {}

    def leave(self, consumer: Consumer) -> list[Position]:
        """Remove a consumer with all its entries, and return the entries that this frees."""
        for position in consumer.pending:
            del self._owners[position]
        del self._owed[consumer]
        freed = self._free([each for each, draining in self.draining.items() if draining.consumer is consumer])
        self.drained.pop(consumer, None)
        return freed

    # entries

    def owner(self, position: Position) -> KeyOwner | None:
        return self._owners.get(position)

    def owe(self, consumer: Consumer, deliveries: Iterable[Delivery], owners: Iterable[KeyOwner]) -> None:
        """Record delivered entries, each with its owner: `consumer`, and the hash."""
        owed = self._owed[consumer]
        for delivery, owner in zip(deliveries, owners, strict=True):
            self._owners[delivery.position] = owner
            owed[owner.key_hash] = owed.get(owner.key_hash, 0) + 1

    def settle(self, positions: Iterable[Position]) -> list[Position]:
        """Remove acknowledged entries, and return the entries that this frees."""
        free: list[int] = []
        for position in positions:
            owner = self._owners.pop(position, None)
            if owner is None:
                continue
            consumer, key_hash = owner
            owed = self._owed[consumer]
            owed[key_hash] -= 1
            if not owed[key_hash]:
                del owed[key_hash]
                draining = self.draining.get(key_hash)
                if draining is not None and draining.consumer is consumer:
                    free.append(key_hash)
        return self._free(free) if free else []

    # hashes

    def holds_back(self, position: Position, owner: KeyOwner) -> bool:
        """Return whether the hash of an entry drains. If so, hold the entry."""
        draining = self.draining.get(owner.key_hash)
        if draining is None or draining.consumer is owner.consumer:
            return False
        draining.blocked_attempts += 1
        self.held.setdefault(owner.key_hash, PositionSet()).add(position)
        return True

    def reassign(self, select: Callable[[int], Consumer | None]) -> list[Position]:
        """Drain hashes that changed hands, and return the held entries of hashes that came back to their consumer."""
        back: list[int] = []
        for consumer, hashes in self._owed.items():
            for key_hash in hashes:
                if select(key_hash) is not consumer:
                    self.draining.setdefault(key_hash, Draining(consumer))
                elif key_hash in self.draining:
                    back.append(key_hash)
        return self._free(back)

    def _free(self, hashes: Iterable[int]) -> list[Position]:
        freed: list[Position] = []
        for key_hash in hashes:
            consumer = self.draining.pop(key_hash).consumer
            self.drained[consumer] = self.drained.get(consumer, 0) + 1
            freed += self.held.pop(key_hash, ())
        return freed

    def draining_of(self, consumer: Consumer) -> dict[int, tuple[int, int]]:
        """Return the draining hashes of a consumer: unacknowledged entries, and how often an entry was held back."""
        owed = self._owed[consumer]
        return {
            key_hash: (owed.get(key_hash, 0), draining.blocked_attempts)
            for key_hash, draining in self.draining.items()
            if draining.consumer is consumer
        }

    def forget(self) -> None:
        """Forget all entries, because the cursor was moved or no consumer is left."""
        self.draining.clear()
        self.held.clear()
        self._owners.clear()
        for owed in self._owed.values():
            owed.clear()
