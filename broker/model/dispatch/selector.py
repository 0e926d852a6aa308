"""Assign keys of a Key_Shared subscription to consumers.

The hashes of keys are divided by a ring, by halving ranges, or by the ranges of STICKY consumers.
"""

from __future__ import annotations

import binascii
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import partial
from itertools import compress, count
from operator import ge, le, or_
from typing import TypeVar

import mmh3

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.client import holders
from pulsarium.broker.model.errors import ConsumerAssignError, OwnerMustAnswerError
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.options import HashRanges, KeySharedOptions, Range
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed
from pulsarium.proto.text import text_of

NONE_KEY = b"NONE_KEY"  # the key of a message without key, producer name and sequence id
MARKS = 1024  # number of marks on a whole ring, in `CeilingSelector._marks`
MIN_HASH, MAX_HASH = -(2**31) - 1, 2**31  # no range of SUBSCRIBE has them
T = TypeVar("T")
CLASSIC_SIZE = 2**31 - 2  # hashes of the ring before Pulsar 4.0


def hash_of(key: str | bytes) -> int:
    """Return the Murmur3 hash with 32 bits and seed 0, without the sign, as all hash rings in Pulsar use it."""
    return mmh3.hash(key, 0, signed=False) & 0x7FFFFFFF


def sticky_hash(key: bytes, start: int, size: int) -> int:
    """Return the hash of a key among `size` hashes from `start` on. Never 0, which means "no hash" in Pulsar."""
    return hash_of(key) % size + start or 1


def key_of(metadata: pb.MessageMetadata, *, scatters: bool = True) -> bytes:
    """Return the key that Key_Shared uses. For a batch, that is the key of its own metadata.

    Entries without a key have keys of their own if `scatters`.
    """
    if metadata.HasField("ordering_key"):
        return metadata.ordering_key
    if metadata.HasField("partition_key"):
        key = text_of(metadata.partition_key).encode()
        return _decoded(key) if metadata.partition_key_b64_encoded else key
    if scatters and metadata.HasField("producer_name") and metadata.HasField("sequence_id"):
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
    """Assign each sticky key hash, `start` to `start + size - 1`, to one consumer.

    Consumers that are removed give their hashes away together, when a hash is selected next: one that leaves would
    otherwise cost a step for each hash of all others.
    """

    start = 0
    size = 65536

    def __init__(self) -> None:
        self._removed: set[Consumer] = set()

    def hash_of_key(self, key: bytes) -> int:
        return sticky_hash(key, self.start, self.size)

    @abstractmethod
    def add(self, consumer: Consumer) -> None:
        """Add a consumer. Raise `ConsumerAssignError` when no range is left for it."""

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer, and give its hashes to others. An unknown consumer is ignored."""
        self._removed.add(consumer)

    def settle(self) -> None:
        """Give away the hashes of the consumers that were removed."""
        if self._removed:
            removed, self._removed = self._removed, set()
            self._give_away(removed)

    @abstractmethod
    def _give_away(self, removed: set[Consumer]) -> None: ...

    def remove_all(self) -> None:
        """Remove all consumers."""
        self._removed.clear()

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
        super().__init__()
        self._ends: list[int] = []  # sorted
        self._owners: list[Consumer] = []  # owner of each end
        self._step = 1  # hashes between two marks
        self._marks: list[int] | None = None  # where to search for a hash; reset with each change of the ends

    def remove(self, consumer: Consumer) -> None:
        super().remove(consumer)
        self._marks = None

    def select(self, hash: int) -> Consumer | None:
        marks = self._marks
        if marks is None:
            self.settle()
        owners = self._owners
        if not owners:
            return None
        if marks is None:
            step = self._step = self.size // MARKS + 1
            marks = self._marks = [bisect_left(self._ends, mark) for mark in range(0, self.size + 2 * step, step)]
        near = hash // self._step
        index = bisect_left(self._ends, hash, marks[near], marks[near + 1])
        return owners[index if index < len(owners) else 0]

    def remove_all(self) -> None:
        super().remove_all()
        self._ends, self._owners, self._marks = [], [], None

    def _give_away(self, removed: set[Consumer]) -> None:
        left = [owner not in removed for owner in self._owners]
        self._ends, self._owners = [*compress(self._ends, left)], [*compress(self._owners, left)]

    def ranges(self) -> dict[Consumer, list[Range]]:
        self.settle()
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
    """The default: each consumer has `points` points on a hash ring, by its name.

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
        self.settle()
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
        super().remove(consumer)
        for point in self._points_of(consumer):
            self._leave(point, consumer)
        del self._name_index[consumer]

    def remove_all(self) -> None:
        super().remove_all()
        self._name_index.clear()
        self._behind.clear()

    def _leave(self, point: int, consumer: Consumer) -> None:
        """Give a point to the consumer behind. A point that no other consumer has is given away with others."""
        behind = self._behind.get(point)
        if behind is None:
            return
        index = bisect_left(self._ends, point)
        if self._owners[index] is consumer:
            self._owners[index] = behind.pop(0)
        else:
            behind.remove(consumer)
        if not behind:
            del self._behind[point]


class AutoSplit(CeilingSelector):
    """Halve the widest range for each new consumer (subscriptionKeySharedUseConsistentHashing=false).

    Each consumer has one range. The last range ends at 65536 in the stats, a hash that no key has.
    """

    def add(self, consumer: Consumer) -> None:
        self.settle()
        if not self._owners:
            self._ends.append(self.size)
            self._owners.append(consumer)
            return
        widths = [end - before for before, end in zip([0, *self._ends], self._ends, strict=False)]
        width = max(widths)
        if width <= 1:
            raise ConsumerAssignError(
                f"No more range can assigned to new consumer, assigned consumers {len(self._owners)}",
                held_by=holders(self._owners),
            )
        self._marks = None
        index = widths.index(width)
        self._ends.insert(index, self._ends[index] - (width >> 1))
        self._owners.insert(index, consumer)

    def _give_away(self, removed: set[Consumer]) -> None:
        """Give the range of each consumer to the next one, or to the one before when there is no next."""
        super()._give_away(removed)
        if self._ends:
            self._ends[-1] = self.size


class StickyRanges(Selector):
    """STICKY: consumers bring their ranges, and a key outside of all ranges goes to no consumer.

    No hash has two owners. A range may extend beyond the last hash.
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []  # sorted
        self._ends: list[int] = []  # end of the range at each start
        self._owners: list[Consumer] = []

    def add(self, consumer: Consumer) -> None:
        """Add a consumer with its ranges. Raise `OwnerMustAnswerError` when another consumer has some of them.

        Raise `ConsumerAssignError` when the ranges are invalid.
        """
        ranges = consumer.key_shared.ranges
        if ranges.fault is not None:
            raise ConsumerAssignError(ranges.fault)
        self.settle()
        places = [*map(partial(bisect_right, self._starts), ranges.starts)]  # the number of ranges before each
        self._check(ranges, places)
        self._starts = _merged(self._starts, ranges.starts, places)
        self._ends = _merged(self._ends, ranges.ends, places)
        self._owners = _merged(self._owners, [consumer] * len(places), places)

    def _check(self, ranges: HashRanges, places: list[int]) -> None:
        """Raise `OwnerMustAnswerError` for the first range that overlaps with one before or one behind."""
        before, behind = [MIN_HASH, *self._ends], [*self._starts, MAX_HASH]
        with_before = map(ge, map(before.__getitem__, places), ranges.starts)
        with_behind = map(le, map(behind.__getitem__, places), ranges.ends)
        overlaps = map(or_, with_before, with_behind)
        for index in compress(count(), overlaps):
            place = places[index]
            other = self._owners[place - 1 if before[place] >= ranges.starts[index] else place]
            refusal = ConsumerAssignError(f"Range conflict with consumer {_described(other)}", held_by=holders([other]))
            raise OwnerMustAnswerError(other.client, refusal)

    def remove_all(self) -> None:
        super().remove_all()
        self._starts, self._ends, self._owners = [], [], []

    def _give_away(self, removed: set[Consumer]) -> None:
        left = [owner not in removed for owner in self._owners]
        self._starts, self._ends, self._owners = (
            [*compress(self._starts, left)],
            [*compress(self._ends, left)],
            [*compress(self._owners, left)],
        )

    def select(self, hash: int) -> Consumer | None:
        self.settle()
        index = bisect_right(self._starts, hash) - 1
        return self._owners[index] if index >= 0 and hash <= self._ends[index] else None

    def ranges(self) -> dict[Consumer, list[Range]]:
        self.settle()
        return merged(zip(self._starts, self._ends, self._owners, strict=True))


def _merged(known: list[T], new: list[T], places: list[int]) -> list[T]:
    """Return `known` with each new value at its place. Stretches of `known` between two places are copied at once."""
    merged: list[T] = []
    done = 0
    for place, value in zip(places, new, strict=True):
        if place != done:
            merged += known[done:place]
            done = place
        merged.append(value)
    merged += known[done:]
    return merged


def _described(consumer: Consumer) -> str:
    """Return the consumer as Pulsar prints it, without Netty's description of its connection (transcript 055)."""
    subscription = consumer.subscription
    return (
        f"Consumer{{subscription={type(subscription).__name__}{{topic={subscription.topic.name}, "
        f"name={subscription.name}}}, consumerId={consumer.consumer_id}, consumerName={consumer.name}, "
        f"address={consumer.client.address}}}"
    )


def selector_for(options: KeySharedOptions, config: Config, *, classic: bool = False) -> Selector:
    """Return the selector for the options of the first consumer and broker.conf."""
    if options.mode == pb.STICKY:
        return StickyRanges()
    if config.subscriptionKeySharedUseConsistentHashing:
        points = config.subscriptionKeySharedConsistentHashingReplicaPoints
        return ConsistentHashRing(points, CLASSIC_SIZE) if classic else ConsistentHashRing(points)
    return AutoSplit()
