"""Count redeliveries, and find messages that are delivered again and again and never acknowledged."""

from __future__ import annotations

from typing import Final, NamedTuple

from pulsarium.broker.model.ledger.position import Position

LOOP: Final = 5
"""The redeliveries of a message from which on it is in a loop."""
MOST_LOOPS: Final = 100  # entries in a loop that a subscription knows at a time


class RedeliveryLoop(NamedTuple):
    """An entry that consumers return each time. `consumer` has it now, or would have, or is None."""

    position: Position
    deliveries: int
    consumer: str | None


class RedeliveryCounts(dict[Position, int]):
    """The redelivery counts of unacknowledged entries."""

    def __init__(self) -> None:
        super().__init__()
        self._loops: set[Position] = set()

    def again(self, position: Position) -> int:
        """Count one redelivery of an entry, and return how many it has had."""
        count = self[position] = self.get(position, 0) + 1
        if count >= LOOP and (len(self._loops) < MOST_LOOPS or self._forget_ended()):
            self._loops.add(position)
        return count

    def _forget_ended(self) -> bool:
        """Forget loops that ended. Return whether any did."""
        known = len(self._loops)
        self._loops = {each for each in self._loops if self.get(each, 0) >= LOOP}
        return len(self._loops) < known

    def worst(self) -> Position | None:
        """Return the entry in a loop that was redelivered most often, or None."""
        self._forget_ended()
        return max(self._loops, key=lambda each: (self[each], each), default=None)


class Rewinds:
    """Count redeliveries to the consumer of an Exclusive or Failover subscription that makes no progress."""

    __slots__ = ("_mark", "count")

    def __init__(self) -> None:
        self.count = 0
        self._mark: Position | None = None

    def again(self, mark: Position) -> None:
        """Count one redelivery of everything behind a mark-delete position."""
        self.count = self.count + 1 if self._mark == mark else 1
        self._mark = mark

    def at(self, mark: Position) -> int:
        """Return how often everything behind this mark-delete position was redelivered."""
        return self.count if self._mark == mark else 0
