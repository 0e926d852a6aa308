"""Account for the numbered messages of one stream: which ones were confirmed, which were seen, and how often."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_TOLD = 5  # violations that a stream reports; the first one usually causes the others


@dataclass
class Seen:
    """A set of numbers from 0 in little memory: all numbers below `low`, and some above."""

    low: int = 0
    above: set[int] = field(default_factory=set)

    def add(self, number: int) -> bool:
        """Add a number, and return whether the number is new."""
        if number < self.low or number in self.above:
            return False
        self.above.add(number)
        while self.low in self.above:
            self.above.remove(self.low)
            self.low += 1
        return True


class Account:
    """The account of a stream in lanes. A lane is a key, or the whole stream without keys, and numbers from 0.

    With `ordered`, each new message of a lane must have the next number. With `once`, no message may come twice.
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
        """Record that a message has its receipt."""
        if self._published[lane].add(number):
            self.confirmed += 1

    def saw(self, number: int, lane: int = 0) -> bool:
        """Record that a consumer received a message, and return whether for the first time."""
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
        """Forget a lane that has ended, and report a violation if a confirmed message of it was never seen."""
        if self._published[lane].low > self._lanes[lane].low:
            self.violate(f"{self._lanes[lane].low} of lane {lane} was never seen")
        del self._published[lane], self._lanes[lane]

    def violate(self, what: str) -> None:
        if len(self.violations) < MOST_TOLD:
            self.violations.append(f"{self.name}: {what}")

    @property
    def missing(self) -> list[tuple[int, int]]:
        """Return the lane and the number of the first messages that were confirmed and not seen."""
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


def tell(accounts: Sequence[Account], *, finished: bool = False) -> None:
    """Print the figures of all streams together, as a line of JSON. The last line (`finished`) includes each stream."""
    told = {
        "sent": sum(account.confirmed for account in accounts),
        "seen": sum(account.seen for account in accounts),
        "again": sum(account.again for account in accounts),
        "violations": [violation for account in accounts for violation in account.violations],
        "streams": [[each.name, each.confirmed, each.seen, each.again] for each in accounts] if finished else [],
    }
    print(json.dumps(told), flush=True)
