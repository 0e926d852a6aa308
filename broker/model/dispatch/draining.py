"""Key hashes with unacknowledged messages, and hashes that drain because another consumer owns them now (PIP-379)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.base import Consumer


class KeyOwner:
    """The consumer to which entries of a key hash go, and how many of them it has not acknowledged."""

    __slots__ = ("consumer", "entries", "key_hash")

    def __init__(self, consumer: Consumer, key_hash: int) -> None:
        self.consumer = consumer
        self.key_hash = key_hash
        self.entries = 0


class Draining:
    """A draining hash: its entries are held while its former consumer has unacknowledged messages of the hash."""

    __slots__ = ("blocked_attempts", "consumer")

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.blocked_attempts = 0


FEW = 10_000  # owners of hashes that may stay without an entry
_position_of = itemgetter(0)  # of a delivery


class KeyOwners:
    """Key hashes of the entries that consumers have not acknowledged.

    A hash that is drained returns the entries held for it. A consumer has one `KeyOwner` for each hash, so that an
    entry costs no look at the hash.
    """

    def __init__(self) -> None:
        self.draining: dict[int, Draining] = {}
        self.drained: dict[Consumer, int] = {}  # number of drained hashes for each consumer
        self.held: dict[int, PositionSet] = {}  # held entries by hash
        self._owners: dict[Position, KeyOwner] = {}
        self._keys_of: dict[Consumer, dict[int, KeyOwner]] = {}  # by hash; some have no entries any more
        self._known = 0  # owners in `_keys_of` since those without entries were forgotten
        self._most_known = FEW

    @property
    def entries(self) -> int:
        """Return the number of unacknowledged entries."""
        return len(self._owners)

    def __contains__(self, consumer: Consumer) -> bool:
        return consumer in self._keys_of

    def join(self, consumer: Consumer) -> None:
        self._keys_of[consumer] = {}

    def leave(self, consumer: Consumer) -> list[Position]:
        """Remove a consumer with all its entries, and return the entries that this frees."""
        for position in consumer.pending:
            del self._owners[position]
        freed = self._free(self.draining_of(consumer))
        del self._keys_of[consumer]
        self.drained.pop(consumer, None)
        return freed

    # entries

    def owner(self, position: Position) -> KeyOwner | None:
        return self._owners.get(position)

    def owner_of(self, consumer: Consumer, key_hash: int) -> KeyOwner:
        """Return the one owner of a hash at a consumer."""
        known = self._keys_of[consumer]
        owner = known.get(key_hash)
        if owner is None:
            owner = known[key_hash] = KeyOwner(consumer, key_hash)
            self._known += 1
        return owner

    @property
    def is_full(self) -> bool:
        """Return whether `forget_settled` is due."""
        return self._known > self._most_known

    def forget_settled(self) -> None:
        """Forget owners without entries. Nobody else may keep them."""
        self._known = 0
        for consumer in self._keys_of:
            known = self._keys_of[consumer] = self.keys_of(consumer)
            self._known += len(known)
        self._most_known = FEW + 2 * self._known

    def keys_of(self, consumer: Consumer) -> dict[int, KeyOwner]:
        """Return the owners at a consumer that has entries of their hashes, by hash."""
        return {key_hash: owner for key_hash, owner in self._keys_of[consumer].items() if owner.entries}

    def owe(self, deliveries: Sequence[Delivery], owners: Sequence[KeyOwner]) -> None:
        """Record delivered entries, each with its owner."""
        self._owners.update(zip(map(_position_of, deliveries), owners, strict=True))
        for owner in owners:
            owner.entries += 1

    def settle(self, positions: Iterable[Position]) -> list[Position]:
        """Remove acknowledged entries, and return the entries that this frees."""
        free: list[int] = []
        taken, draining = self._owners.pop, self.draining
        for position in positions:
            owner = taken(position, None)
            if owner is None:
                continue
            owner.entries -= 1
            if draining and not owner.entries:
                drains = draining.get(owner.key_hash)
                if drains is not None and drains.consumer is owner.consumer:
                    free.append(owner.key_hash)
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
        for consumer in self._keys_of:
            for key_hash in self.keys_of(consumer):
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
        if not self.draining:
            return {}
        return {
            key_hash: (owner.entries, draining.blocked_attempts)
            for key_hash, owner in self.keys_of(consumer).items()
            if (draining := self.draining.get(key_hash)) is not None and draining.consumer is consumer
        }

    def forget(self) -> None:
        """Forget all entries, because the cursor was moved or no consumer is left."""
        self.draining.clear()
        self.held.clear()
        self._owners.clear()
        for keys in self._keys_of.values():
            keys.clear()
        self._known = 0
