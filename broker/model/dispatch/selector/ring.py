"""The default: a ring where each consumer has many points (B-07)."""

from __future__ import annotations

from bisect import bisect_left
from itertools import count
from typing import TYPE_CHECKING

from pulsarium.broker.model.dispatch.selector.selector import CeilingSelector

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.consumer import Consumer


class ConsistentHashRing(CeilingSelector):
    """Each consumer gets `points` points by its name (subscriptionKeySharedConsistentHashingReplicaPoints)."""

    start = 1
    size = 65535

    def __init__(self, points: int, size: int = size) -> None:
        super().__init__()
        self.size = size
        self._points = points
        self._name_index: dict[Consumer, int] = {}  # tells consumers of one name apart
        self._behind: dict[int, list[Consumer]] = {}  # who came second to a point, in order

    def _points_of(self, consumer: Consumer) -> set[int]:
        prefix = f"{consumer.name}\0{self._name_index[consumer]}\0"
        return {self.hash_of_key(f"{prefix}{number}".encode()) for number in range(self._points)}

    def add(self, consumer: Consumer) -> None:
        taken = {index for other, index in self._name_index.items() if other.name == consumer.name}
        self._name_index[consumer] = next(index for index in count() if index not in taken)
        self._marks = None
        for point in self._points_of(consumer):
            index = bisect_left(self._ends, point)
            if index < len(self._ends) and self._ends[index] == point:
                self._behind.setdefault(point, []).append(consumer)
            else:
                self._ends.insert(index, point)
                self._owners.insert(index, consumer)

    def remove(self, consumer: Consumer) -> None:
        if consumer not in self._name_index:
            return
        self._marks = None
        for point in self._points_of(consumer):
            self._leave(point, consumer)
        del self._name_index[consumer]

    def _leave(self, point: int, consumer: Consumer) -> None:
        behind = self._behind.pop(point, [])
        index = bisect_left(self._ends, point)
        if self._owners[index] is not consumer:
            behind.remove(consumer)
        elif behind:
            self._owners[index] = behind.pop(0)
        else:
            del self._ends[index], self._owners[index]
        if behind:
            self._behind[point] = behind
