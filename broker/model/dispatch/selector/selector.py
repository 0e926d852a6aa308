"""What all ways of sharing out the hashes have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pulsarium.broker.model.dispatch.selector.hashing import sticky_hash

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.consumer import Consumer

Range = tuple[int, int]  # first and last hash
MARKS = 1024  # of a whole ring, in `CeilingSelector._marks`


class Selector(ABC):
    """Gives each sticky key hash, `start` to `start + size - 1`, to one consumer."""

    start = 0
    size = 65536

    def hash_of_key(self, key: bytes) -> int:
        return sticky_hash(key, self.start, self.size)

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """Let a consumer take its share; raises ConsumerAssignError when there is none for it."""

    @abstractmethod
    def remove(self, consumer: Consumer) -> None:
        """Share out what a consumer had; one that never came in is no matter."""

    @abstractmethod
    def select(self, hash: int) -> Consumer | None:
        """The owner of a hash, if it has one."""

    @abstractmethod
    def ranges(self) -> dict[Consumer, list[Range]]:
        """What each consumer owns, in order: keyHashRangeArrays of the stats. Who owns nothing is not in it."""


class CeilingSelector(Selector):
    """Each owner stands at the last of its hashes: a hash belongs to who stands there or next, at the end to the first.

    One consumer may stand at several places: with 1,000 consumers there are 50,000, and a search among all of them
    takes five times as long as with one.
    """

    def __init__(self) -> None:
        self._ends: list[int] = []  # sorted
        self._owners: list[Consumer] = []  # of each end
        self._step = 1  # hashes between two marks
        self._marks: list[int] | None = None  # where to search for a hash; whoever changes the others drops it

    def select(self, hash: int) -> Consumer | None:
        owners = self._owners
        if not owners:
            return None
        marks = self._marks
        if marks is None:
            step = self._step = self.size // MARKS + 1
            marks = self._marks = [bisect_left(self._ends, mark) for mark in range(0, self.size + 2 * step, step)]
        near = hash // self._step
        index = bisect_left(self._ends, hash, marks[near], marks[near + 1])
        return owners[index if index < len(owners) else 0]

    def ranges(self) -> dict[Consumer, list[Range]]:
        if not self._owners:
            return {}
        starts = [self.start, *(end + 1 for end in self._ends)]
        stretches = list(zip(starts, self._ends, self._owners, strict=False))
        last = self.start + self.size - 1
        if starts[-1] <= last:
            stretches.append((starts[-1], last, self._owners[0]))
        return merged(stretches)


def merged(stretches: Iterable[tuple[int, int, Consumer]]) -> dict[Consumer, list[Range]]:
    """The ranges of each consumer, where neighbours are one; `stretches` come in order."""
    found: dict[Consumer, list[Range]] = {}
    for start, end, consumer in stretches:
        ranges = found.setdefault(consumer, [])
        if ranges and ranges[-1][1] + 1 == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return found
