"""Assign the segments of a scalable topic to the consumers of one subscription.

Consumers are names, and each algorithm depends only on its arguments. So a new controller assigns as its predecessor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from pulsarium.broker.model.scalable.layout import Segment

LAST_HASH = 0xFFFF
Range = tuple[int, int]  # first and last hash


class Share(NamedTuple):
    """A segment of a consumer. A segment with several consumers has the ranges of all its entry buckets."""

    segment_id: int
    buckets: tuple[Range, ...] = ()


def bucket_ranges(splits: Iterable[int]) -> tuple[Range, ...]:
    """Return the ranges of the entry buckets between these boundaries."""
    starts = [0, *splits]
    return tuple(zip(starts, [*(each - 1 for each in starts[1:]), LAST_HASH], strict=True))


def in_order(segments: Iterable[Segment]) -> list[Segment]:
    """Return segments by range, then by id."""
    return sorted(segments, key=lambda each: each.place)


def assignable(segments: Mapping[int, Segment], drained: Set[int], *, ordered: bool, ancestors: bool) -> list[Segment]:
    """Return the segments that consumers may have, in order.

    With `ordered`, a segment waits until consumers have drained the segments before it, so that each key keeps its
    order. With `ancestors`, as in 5.0.1, sealed segments wait too, all sealed ancestors count, and a drained segment
    has no consumer any more. Without, as in 5.0.0-M1, only active segments wait, and only for their parents.
    """
    behind = waiting(segments, drained, ancestors=ancestors)

    def may_be_read(segment: Segment) -> bool:
        if ancestors and not segment.active and segment.id in drained:
            return False
        return not ordered or not (segment.active or ancestors) or segment.id not in behind

    return in_order(filter(may_be_read, segments.values()))


def waiting(segments: Mapping[int, Segment], drained: Set[int], *, ancestors: bool = True) -> set[int]:
    """Return the segments behind a segment that is not drained: all of them, or only its children."""
    found: set[int] = set()
    for number in sorted(segments):  # parents before their children
        for parent in segments[number].parents:
            if parent in segments and (_holds(segments[parent], drained) or (ancestors and parent in found)):
                found.add(number)
    return found


def _holds(segment: Segment, drained: Set[int]) -> bool:
    """Return whether the segments behind a segment wait for it."""
    return not segment.active and segment.id not in drained


def undrained(segments: Mapping[int, Segment], drained: Set[int]) -> list[int]:
    """Return the sealed segments that are not known to be drained."""
    return [each.id for each in in_order(segments.values()) if _holds(each, drained)]


def round_robin(segments: Sequence[Segment], consumers: Collection[str]) -> dict[str, list[Share]]:
    """Assign whole segments in turn, as 5.0.0-M1 does. Consumers that are left over have none."""
    names = sorted(consumers)
    shares: dict[str, list[Share]] = {name: [] for name in names}
    for index, segment in enumerate(segments if names else ()):
        shares[names[index % len(names)]].append(Share(segment.id))
    return shares


def shared(segments: Sequence[Segment], consumers: Collection[str]) -> dict[str, list[Share]]:
    """Assign segments as 5.0.1 does: consumers that are left over share the entry buckets of segments."""
    names = sorted(consumers)
    if len(names) <= len(segments) or not segments:
        return round_robin(segments, names)
    owners = _owners([each.buckets for each in segments], len(names))
    shares: dict[str, list[Share]] = {name: [] for name in names}
    free = iter(names)
    for segment, count in zip(segments, owners, strict=True):
        share = Share(segment.id, bucket_ranges(segment.splits) if count > 1 else ())
        for _ in range(count):
            shares[next(free)].append(share)
    return shares


def _owners(buckets: Sequence[int], consumers: int) -> list[int]:
    """Return how many consumers each segment has: one each, then more in rounds, at most one a bucket."""
    owners = [1] * len(buckets)
    surplus = min(consumers, sum(buckets)) - len(buckets)
    while surplus > 0:
        for index, most in enumerate(buckets):
            if surplus and owners[index] < most:
                owners[index] += 1
                surplus -= 1
    return owners
