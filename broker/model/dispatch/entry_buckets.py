"""Key_Shared by entry buckets (PIP-486): consumers share a segment of a scalable topic without a look at its messages.

Producers put only messages of one bucket into an entry, and write its lowest hash into the entry. A whole entry goes to
the owner of its bucket. A bucket is one hash of Key_Shared, so it drains before it moves, as a hash does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pulsarium.broker.model.client import holders
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.dispatch.selector import Selector, key_of, merged
from pulsarium.broker.model.errors import ConsumerAssignError
from pulsarium.broker.model.subscription.base import Consumer, Subscription
from pulsarium.broker.model.subscription.options import ConsumerOptions, KeySharedOptions, Range
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.routing import RING, bucket_hash


class EntryBuckets(Selector):
    """Spread buckets evenly over the consumers, in the order of their names and ids.

    All consumers bring the boundaries of all buckets, which a segment keeps for its life.
    """

    def __init__(self, ranges: Sequence[Range]) -> None:
        super().__init__()
        self._ranges = ranges
        self._starts = [start for start, _ in ranges]
        self._consumers: dict[Consumer, None] = {}
        self._owners: list[Consumer] = []  # owner of each bucket

    def hash_of_key(self, key: bytes) -> int:
        return self.hash_of_bucket(bucket_hash(key))

    def hash_of_bucket(self, hash: int) -> int:
        """Return the one hash that stands for all of a bucket: its first one, but never 0, which means "no hash"."""
        return self._starts[self._bucket(hash)] or 1

    def _bucket(self, hash: int) -> int:
        return bisect_right(self._starts, hash) - 1

    def add(self, consumer: Consumer) -> None:
        ranges = consumer.key_shared.ranges.pairs
        check_boundaries(ranges)
        if ranges != self._ranges:
            raise ConsumerAssignError(
                "Consumer declares different entry-bucket boundaries than the subscription: "
                f"{_shown(ranges)} != {_shown(self._ranges)}",
                held_by=holders(self._consumers),
            )
        self.settle()
        self._consumers[consumer] = None
        self._spread()

    def remove_all(self) -> None:
        super().remove_all()
        self._consumers.clear()
        self._owners = []

    def _give_away(self, removed: set[Consumer]) -> None:
        for consumer in removed:
            self._consumers.pop(consumer, None)
        self._spread()

    def _spread(self) -> None:
        consumers = sorted(self._consumers, key=lambda each: (each.name, each.consumer_id))
        count, buckets = len(consumers), len(self._starts)
        self._owners = [
            consumer
            for number, consumer in enumerate(consumers)
            for _ in range(number * buckets // count, (number + 1) * buckets // count)
        ]

    def select(self, hash: int) -> Consumer | None:
        self.settle()
        return self._owners[self._bucket(hash)] if self._owners else None

    def ranges(self) -> dict[Consumer, list[Range]]:
        self.settle()
        return merged((start, end, owner) for (start, end), owner in zip(self._ranges, self._owners, strict=False))


def check_boundaries(ranges: Sequence[Range]) -> None:
    """Raise `ConsumerAssignError` unless the ranges of buckets cover all hashes in order."""
    if not ranges:
        raise ConsumerAssignError("Entry-bucket subscription must declare the segment's bucket boundaries")
    expected = 0
    for start, end in ranges:
        if start != expected or end < start:
            raise ConsumerAssignError(
                f"Entry-bucket boundaries must be ascending, contiguous and start at 0: found [{start},{end}] where "
                f"start {expected} was expected"
            )
        expected = end + 1
    if expected != RING:
        raise ConsumerAssignError(
            f"Entry-bucket boundaries must tile the 16-bit ring: last range ends at {expected - 1}"
        )
    if ranges[0][1] < 1:
        raise ConsumerAssignError("Entry-bucket 0 must span at least [0,1] to hold the canonical hash")


def _shown(ranges: Sequence[Range]) -> str:
    return f"[{', '.join(f'[{start}, {end}]' for start, end in ranges)}]"


class EntryBucketDispatcher(KeySharedDispatcher):
    """Deliver each entry to the owner of its bucket, and withhold a bucket that moves until its old owner has acked."""

    selector: EntryBuckets

    def __init__(self, subscription: Subscription, options: KeySharedOptions) -> None:
        check_boundaries(options.ranges.pairs)
        super().__init__(subscription, EntryBuckets(options.ranges.pairs), options)
        self.drains = True
        self.orders_retries = False

    def mismatch(self, options: ConsumerOptions) -> str:
        if options.type == self.type and not options.key_shared.entry_buckets:
            return "dispatches by entry-bucket while the connecting consumer does not."
        return super().mismatch(options)

    def hash_of(self, metadata: pb.MessageMetadata) -> int:
        if metadata.HasField("entry_hash_min"):
            return self.selector.hash_of_bucket(min(metadata.entry_hash_min, RING - 1))
        return self.selector.hash_of_key(key_of(metadata))
