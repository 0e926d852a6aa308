"""Key hashes with a negatively acknowledged entry, and the later entries that wait behind it (PIP-493)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet


class RetryingHashes:
    """Negatively acknowledged entries by the hash of their key, until they are acknowledged.

    Entries of a hash that come later than the earliest of these are held. So are entries of all hashes while too many
    are negatively acknowledged, except the earliest of each hash, whose acknowledgements make room.
    """

    def __init__(self) -> None:
        self._refused: dict[int, PositionSet] = {}  # by hash
        self._hash_of: dict[Position, int] = {}
        self._in_order = PositionSet()  # the positions of `_hash_of`
        self._held: dict[int, PositionSet] = {}  # by hash
        self._beyond = PositionSet()  # held because there were too many

    def __len__(self) -> int:
        """Return the number of negatively acknowledged entries."""
        return len(self._hash_of)

    @property
    def hashes(self) -> int:
        """Return the number of hashes that retry."""
        return len(self._refused)

    @property
    def held(self) -> Iterator[PositionSet]:
        """Yield the entries that are held."""
        yield from self._held.values()
        yield self._beyond

    def add(self, position: Position, key_hash: int) -> None:
        """Note that an entry was negatively acknowledged."""
        self._refused.setdefault(key_hash, PositionSet()).add(position)
        self._hash_of[position] = key_hash
        self._in_order.add(position)

    def holds_back(self, position: Position, key_hash: int, most: int) -> bool:
        """Return whether an entry must wait. If so, hold it. `most` is the limit of negatively acknowledged entries."""
        refused = self._refused.get(key_hash)
        first = None if refused is None else refused.first()
        if first is not None and position > first:
            self._held.setdefault(key_hash, PositionSet()).add(position)
            return True
        if position != first and len(self) >= most:
            self._beyond.add(position)
            return True
        return False

    def acknowledged(self, positions: Iterable[Position], most: int) -> list[Position]:
        """Forget acknowledged entries, and return the entries that this frees."""
        freed: list[Position] = []
        for position in positions:
            key_hash = self._hash_of.pop(position, None)
            if key_hash is not None:
                self._in_order.discard(position)
                refused = self._refused[key_hash]
                refused.discard(position)
                freed += self._behind(key_hash, refused.first())
        if freed or self._beyond:
            freed += self._beyond if len(self) < most else ()
            for position in freed:
                self._beyond.discard(position)
        return freed

    def acknowledged_through(self, mark_delete: Position, most: int) -> list[Position]:
        """Forget all entries up to the mark-delete position, and return the entries that this frees."""
        return self.acknowledged(list(takewhile(lambda each: each <= mark_delete, self._in_order)), most)

    def _behind(self, key_hash: int, first: Position | None) -> list[Position]:
        """Stop holding the entries of a hash up to `first`, its earliest now, or all without any."""
        if first is None:
            del self._refused[key_hash]
            return list(self._held.pop(key_hash, ()))
        held = self._held.get(key_hash, PositionSet())
        freed = [position for position in held if position <= first]
        held.remove_through(first)
        return freed

    def holds(self, position: Position) -> bool:
        """Return whether an entry is held."""
        return any(position in positions for positions in self.held)

    def forget(self) -> None:
        """Forget all entries, because the cursor was moved or no consumer is left."""
        self._refused.clear()
        self._hash_of.clear()
        self._in_order.clear()
        self._held.clear()
        self._beyond.clear()
