"""STICKY: consumers bring the ranges that they want; a key in none of them goes to nobody (B-10, C-10)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING

from pulsarium.broker.model.dispatch.selector.selector import Range, Selector, merged
from pulsarium.broker.model.errors import ConsumerAssignError, OwnerMustAnswerError

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.consumer import Consumer


class StickyRanges(Selector):
    """No hash has two owners; a range may reach beyond the last hash."""

    def __init__(self) -> None:
        self._starts: list[int] = []  # sorted
        self._ends: list[int] = []  # of the range at each start
        self._owners: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """As above; raises OwnerMustAnswerError when the ranges are another's."""
        ranges = consumer.key_shared.ranges
        _check(ranges)
        other = self._first_conflict(ranges)
        if other is not None:
            refusal = ConsumerAssignError(f"Range conflict with consumer {_described(other)}")
            raise OwnerMustAnswerError(other.client, refusal)
        self._set([*self._stretches(), *((start, end, consumer) for start, end in ranges)])

    def _first_conflict(self, ranges: Iterable[Range]) -> Consumer | None:
        for start, end in ranges:
            at = bisect_right(self._starts, start)
            for index in range(max(at - 1, 0), min(at + 1, len(self._starts))):
                if _overlap((start, end), (self._starts[index], self._ends[index])):
                    return self._owners[index]
        return None

    def remove(self, consumer: Consumer) -> None:
        self._set([stretch for stretch in self._stretches() if stretch[2] is not consumer])

    def _set(self, stretches: list[tuple[int, int, Consumer]]) -> None:
        stretches.sort(key=lambda stretch: stretch[0])
        self._starts = [start for start, _, _ in stretches]
        self._ends = [end for _, end, _ in stretches]
        self._owners = [owner for _, _, owner in stretches]

    def select(self, hash: int) -> Consumer | None:
        index = bisect_right(self._starts, hash) - 1
        return self._owners[index] if index >= 0 and hash <= self._ends[index] else None

    def ranges(self) -> dict[Consumer, list[Range]]:
        return merged(self._stretches())

    def _stretches(self) -> Iterable[tuple[int, int, Consumer]]:
        return zip(self._starts, self._ends, self._owners, strict=True)


def _check(ranges: Iterable[Range]) -> None:
    """Refuse ranges that make no sense in themselves."""
    in_order = sorted(ranges, key=lambda each: each[0])
    if not in_order:
        raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
    for each, following in zip_longest(in_order, in_order[1:]):
        if each[0] > each[1]:
            raise ConsumerAssignError(f"Fixed hash range start > end for range: {_shown(each)}")
        if following is not None and _overlap(each, following):
            raise ConsumerAssignError(
                f"Consumer's own ranges conflict: {_shown(each)} overlaps with {_shown(following)}"
            )


def _overlap(one: Range, other: Range) -> bool:
    return max(one[0], other[0]) <= min(one[1], other[1])


def _shown(each: Range) -> str:
    return f"[{each[0]},{each[1]}]"


def _described(consumer: Consumer) -> str:
    """As Pulsar writes it, but for the inner life of the connection (transcript 055)."""
    subscription = consumer.subscription
    return (
        f"Consumer{{subscription={type(subscription).__name__}{{topic={subscription.topic.name}, "
        f"name={subscription.name}}}, consumerId={consumer.consumer_id}, consumerName={consumer.name}, "
        f"address={consumer.client.address}}}"
    )
