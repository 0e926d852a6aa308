"""Assign keys of a Key_Shared subscription to consumers (B-07 to B-10).

The hashes of keys are divided by a ring, by halving ranges, or by the ranges of STICKY consumers.
"""

from __future__ import annotations

import binascii
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import count, zip_longest

import mmh3

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.errors import ConsumerAssignError, OwnerMustAnswerError
from pulsarium.broker.model.ledger.position import signed
from pulsarium.broker.model.subscription.consumer import Consumer, KeySharedOptions
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

NONE_KEY = b"NONE_KEY"  # the key of a message without key, producer name and sequence id
Range = tuple[int, int]  # first and last hash
MARKS = 1024  # number of marks on a whole ring, in `CeilingSelector._marks`
CLASSIC_SIZE = 2**31 - 2  # hashes of the ring before Pulsar 4.0


def hash_of(key: str | bytes) -> int:
    """Return the Murmur3 hash with 32 bits and seed 0, without the sign, as all hash rings in Pulsar use it."""
    return mmh3.hash(key, 0, signed=False) & 0x7FFFFFFF


def sticky_hash(key: bytes, start: int, size: int) -> int:
    """Return the hash of a key among `size` hashes from `start` on. Never 0, which means "no hash" in Pulsar."""
    return hash_of(key) % size + start or 1


def key_of(metadata: pb.MessageMetadata) -> bytes:
    """Return the key that Key_Shared uses. For a batch, that is the key of its own metadata."""
    if metadata.HasField("ordering_key"):
        return metadata.ordering_key
    if metadata.HasField("partition_key"):
        key = text_of(metadata.partition_key).encode()
        return _decoded(key) if metadata.partition_key_b64_encoded else key
    if metadata.HasField("producer_name") and metadata.HasField("sequence_id"):
        return b"%b-%d" % (text_of(metadata.producer_name).encode(), signed(metadata.sequence_id))
    return NONE_KEY


def _decoded(key: bytes) -> bytes:
    """Decode base64, with or without padding. An invalid key counts as no key."""
    padding = b"" if key.endswith(b"=") else b"=" * (-len(key) % 4)
    try:
        return binascii.a2b_base64(key + padding, strict_mode=True)
    except binascii.Error:
        return NONE_KEY


class Selector(ABC):
    """Assign each sticky key hash, `start` to `start + size - 1`, to one consumer."""

    start = 0
    size = 65536

    def hash_of_key(self, key: bytes) -> int:
        return sticky_hash(key, self.start, self.size)

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """Add a consumer. Raise `ConsumerAssignError` when no range is left for it."""

    @abstractmethod
    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer, and give its hashes to others. An unknown consumer is ignored."""

    @abstractmethod
    def select(self, hash: int) -> Consumer | None:
        """Return the owner of a hash, or None."""

    @abstractmethod
    def ranges(self) -> dict[Consumer, list[Range]]:
        """Return the ranges of each consumer in order, for keyHashRangeArrays of the stats.

        Omit consumers without a hash.
        """


class CeilingSelector(Selector):
    """A selector where each owner has the hashes up to its end. Hashes behind the last end belong to the first owner.

    One consumer may have several ends. With 1,000 consumers there are 50,000 of them, and a search among all takes five
    times as long as with one consumer.
    """

    def __init__(self) -> None:
        self._ends: list[int] = []  # sorted
        self._owners: list[Consumer] = []  # owner of each end
        self._step = 1  # hashes between two marks
        self._marks: list[int] | None = None  # where to search for a hash; reset with each change of the ends

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
    """Return the ranges of each consumer, with adjacent ranges merged. `stretches` come in order."""
    found: dict[Consumer, list[Range]] = {}
    for start, end, consumer in stretches:
        ranges = found.setdefault(consumer, [])
        if ranges and ranges[-1][1] + 1 == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return found


class ConsistentHashRing(CeilingSelector):
    """The default (B-07): each consumer has `points` points on a hash ring, by its name.

    `points` is subscriptionKeySharedConsistentHashingReplicaPoints of broker.conf.
    """

    start = 1
    size = 65535

    def __init__(self, points: int, size: int = size) -> None:
        super().__init__()
        self.size = size
        self._points = points
        self._name_index: dict[Consumer, int] = {}  # distinguishes consumers of the same name
        self._behind: dict[int, list[Consumer]] = {}  # consumers that came later to a taken point, in order

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


class AutoSplit(CeilingSelector):
    """Halve the widest range for each new consumer (subscriptionKeySharedUseConsistentHashing=false).

    Each consumer has one range. The last range ends at 65536 in the stats, a hash that no key has.
    """

    def add(self, consumer: Consumer) -> None:
        if not self._owners:
            self._ends.append(self.size)
            self._owners.append(consumer)
            return
        widths = [end - before for before, end in zip([0, *self._ends], self._ends, strict=False)]
        width = max(widths)
        if width <= 1:
            raise ConsumerAssignError(
                f"No more range can assigned to new consumer, assigned consumers {len(self._owners)}"
            )
        self._marks = None
        index = widths.index(width)
        self._ends.insert(index, self._ends[index] - (width >> 1))
        self._owners.insert(index, consumer)

    def remove(self, consumer: Consumer) -> None:
        """Give the range of a consumer to the next one, or to the one before when there is no next."""
        if consumer not in self._owners:
            return
        self._marks = None
        index = self._owners.index(consumer)
        del self._owners[index]
        del self._ends[index - 1 if index and index == len(self._owners) else index]


class StickyRanges(Selector):
    """STICKY: consumers bring their ranges, and a key outside of all ranges goes to no consumer (B-10, C-10).

    No hash has two owners. A range may extend beyond the last hash.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []  # sorted
        self._ends: list[int] = []  # end of the range at each start
        self._owners: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """Add a consumer with its ranges. Raise `OwnerMustAnswerError` when another consumer has some of them.

        Raise `ConsumerAssignError` when the ranges are invalid.
        """
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
    """Raise `ConsumerAssignError` for ranges that are empty, reversed or overlapping."""
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
    """Return the consumer as Pulsar prints it, without Netty's description of its connection (transcript 055)."""
    subscription = consumer.subscription
    return (
        f"Consumer{{subscription={type(subscription).__name__}{{topic={subscription.topic.name}, "
        f"name={subscription.name}}}, consumerId={consumer.consumer_id}, consumerName={consumer.name}, "
        f"address={consumer.client.address}}}"
    )


def selector_for(options: KeySharedOptions, config: Config, *, classic: bool = False) -> Selector:
    """Return the selector for the options of the first consumer and broker.conf (B-07, B-10)."""
    if options.mode == pb.STICKY:
        return StickyRanges()
    if config.subscriptionKeySharedUseConsistentHashing:
        points = config.subscriptionKeySharedConsistentHashingReplicaPoints
        return ConsistentHashRing(points, CLASSIC_SIZE) if classic else ConsistentHashRing(points)
    return AutoSplit()
