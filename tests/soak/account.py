"""What becomes of the numbered messages of one stream: what was confirmed, what was seen, and how often."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

MOST_TOLD = 5  # violations of a stream: one of them is usually the cause of the others


@dataclass
class Seen:
    """Numbers from 0, in a few bytes: all below `low`, and some above."""

    low: int = 0
    above: set[int] = field(default_factory=set)

    def add(self, number: int) -> bool:
        """Whether it is new."""
        if number < self.low or number in self.above:
            return False
        self.above.add(number)
        while self.low in self.above:
            self.above.remove(self.low)
            self.low += 1
        return True


class Account:
    """Of a stream whose lanes (keys; one, where there are none) are numbered from 0, each for itself.

    `ordered`: what is new in a lane is the one after the last. `once`: nothing comes twice.
    """

    def __init__(self, name: str, *, ordered: bool = False, once: bool = False) -> None:
        self.name = name
        self.confirmed = 0
        self.seen = 0
        self.again = 0
        self.violations: list[str] = []
        self._ordered = ordered
        self._once = once
        self._published: defaultdict[int, Seen] = defaultdict(Seen)
        self._lanes: defaultdict[int, Seen] = defaultdict(Seen)

    def publish(self, number: int, lane: int = 0) -> None:
        """It has its receipt."""
        if self._published[lane].add(number):
            self.confirmed += 1

    def saw(self, number: int, lane: int = 0) -> bool:
        """A consumer has it; whether for the first time."""
        found = self._lanes[lane]
        expected = found.low
        if not found.add(number):
            self.again += 1
            if self._once:
                self.violate(f"{number} of lane {lane} came twice")
            return False
        self.seen += 1
        if self._ordered and number != expected:
            self.violate(f"{number} of lane {lane} came where {expected} was next")
        return True

    def forget(self, lane: int) -> None:
        """It is over, and what is missing of it is told."""
        if self._published[lane].low > self._lanes[lane].low:
            self.violate(f"{self._lanes[lane].low} of lane {lane} was never seen")
        del self._published[lane], self._lanes[lane]

    def violate(self, what: str) -> None:
        if len(self.violations) < MOST_TOLD:
            self.violations.append(f"{self.name}: {what}")

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The first of those that were confirmed and not seen: lane and number."""
        found: list[tuple[int, int]] = []
        for lane, published in self._published.items():
            seen = self._lanes[lane]
            for number in (*range(seen.low, published.low), *sorted(published.above)):
                if number >= seen.low and number not in seen.above:
                    found.append((lane, number))
                    if len(found) == MOST_TOLD:
                        return found
        return found

    @property
    def is_complete(self) -> bool:
        return not self.missing
