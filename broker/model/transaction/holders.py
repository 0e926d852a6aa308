"""Which entries transactions acknowledged that are not over, and what of each nobody did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.transaction.acked import Acked


class Holders:
    """Acknowledgements by entry, each under the number of its piece. A batch may have one for each of its messages."""

    def __init__(self) -> None:
        self._held: dict[Position, dict[int, Acked]] = {}
        self._left: dict[Position, int] = {}  # as `left_of`, of entries that it was asked for

    def of(self, position: Position) -> Mapping[int, Acked]:
        """Those of an entry."""
        return self._held.get(position, {})

    def left_of(self, position: Position) -> int | None:
        """The bits that none of them acknowledged, 0 where one did the whole entry; None where there is none."""
        held = self._held.get(position)
        if held is None:
            return None
        left = self._left.get(position)
        if left is None:
            left = self._left[position] = left_by(held.values())
        return left

    def add(self, number: int, acked: Acked) -> None:
        """A piece may name an entry twice."""
        position = acked.position
        held = self._held.setdefault(position, {})
        before = held.get(number)
        if before is not None and acked.remaining is not None:
            acked = acked._replace(remaining=acked.remaining & (before.remaining or 0))
        held[number] = acked
        if position in self._left:
            self._left[position] &= acked.remaining or 0

    def remove(self, number: int, position: Position) -> None:
        """A piece holds this no longer."""
        held = self._held.get(position)
        if held is not None and held.pop(number, None) is not None:
            self._left.pop(position, None)
            if not held:
                del self._held[position]

    def forget(self, position: Position) -> None:
        """The entry was acknowledged without a transaction."""
        self._held.pop(position, None)
        self._left.pop(position, None)


def left_by(held: Iterable[Acked]) -> int:
    """The bits that none of these acknowledged."""
    return reduce(and_, (each.remaining or 0 for each in held))
