"""The layout of a scalable topic: its segments, and the segment of each key. Without tasks and sockets."""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.errors import ConnectError
from pulsarium.client.topics import MOST_TOPICS, full_name
from pulsarium.proto import routing
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

M1 = "5.0.0-M1"
"""The version of the broker that routes keys by the low bits of their hash."""


class Hashing(enum.Enum):
    """Hash that maps a key to its segment. It depends on the version of the brokers."""

    HIGH_BITS = "high bits"
    """Murmur3 >>> 16, since Pulsar 5.0.0."""
    LOW_BITS = "low bits"
    """Murmur3 & 0xffff, in Pulsar 5.0.0-M1."""

    @classmethod
    def of_broker(cls, server_version: str) -> Hashing:
        """Return the hashing of the cluster of a broker with this version."""
        return cls.LOW_BITS if M1 in server_version else cls.HIGH_BITS

    def segment_hash(self, key: str) -> int:
        """Return the hash of a key, from 0 to 65535."""
        return routing.m1_segment_hash(key) if self is Hashing.LOW_BITS else routing.segment_hash(key)


class BrokenLayout(ConnectError):
    """The broker sent a layout that cannot be right. The session begins again with a new lookup."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a scalable topic. Its range of hashes includes both ends."""

    id: int
    start: int
    end: int
    topic: str
    """The topic that has the segment's messages: `segment://...`, or `persistent://...` of a legacy segment."""
    is_active: bool = True
    parents: frozenset[int] = frozenset()
    children: frozenset[int] = frozenset()
    is_legacy: bool = False
    bucket_splits: tuple[int, ...] = ()
    """The first hashes of the entry buckets after the first one (PIP-486)."""

    def overlaps(self, other: Segment) -> bool:
        """Return whether a key can belong to both segments. Each key can belong to each legacy segment."""
        return self.is_legacy or other.is_legacy or (self.start <= other.end and other.start <= self.end)

    def bucket_of(self, key: str) -> int:
        """Return the index of the entry bucket of a key."""
        return bisect_right(self.bucket_splits, routing.bucket_hash(key))


def segment_topic(topic: str, segment_id: int, start: int, end: int) -> str:
    """Return the name of a segment of a topic, `segment://tenant/namespace/topic/0000-ffff-0`."""
    return f"segment://{topic.partition('://')[2]}/{start:04x}-{end:04x}-{segment_id}"


@dataclass(frozen=True)
class Layout:
    """A layout of a topic. Its active segments cover each hash once."""

    topic: str
    """The canonical name, `topic://tenant/namespace/topic`."""
    epoch: int
    segments: Mapping[int, Segment]
    hashing: Hashing = Hashing.HIGH_BITS
    controller: BrokerUrls | None = None
    """The broker that assigns segments to consumers, when there is one already."""
    active: tuple[Segment, ...] = field(init=False)
    """The active segments in the order of their ranges."""

    def __post_init__(self) -> None:
        """Raise `BrokenLayout` for active segments that overlap, or that leave a hash without a segment."""
        active = sorted((one for one in self.segments.values() if one.is_active), key=lambda one: (one.start, one.id))
        object.__setattr__(self, "active", tuple(active))
        covered = 0
        for one in active:
            if one.start != covered or one.end < one.start:
                raise BrokenLayout(f"{self.topic}: segment {one.id} begins at {one.start:04x}, not at {covered:04x}")
            covered = one.end + 1
        if covered != routing.RING:
            raise BrokenLayout(f"{self.topic}: no segment has the hash {covered:04x}")
        object.__setattr__(self, "_starts", [one.start for one in active])

    @staticmethod
    def read(topic: str, dag: pb.ScalableTopicDAG, hashing: Hashing) -> Layout:
        """Return the layout in an update. Raise `BrokenLayout` if it cannot be right."""
        if len(dag.segments) > MOST_TOPICS:
            raise BrokenLayout(f"{topic}: {len(dag.segments)} segments, at most {MOST_TOPICS} can be open")
        segments: dict[int, Segment] = {}
        for one in dag.segments:
            if one.segment_id in segments:
                raise BrokenLayout(f"{topic}: two segments have the id {one.segment_id}")
            segments[one.segment_id] = _segment(topic, one)
        urls = BrokerUrls(text_of(dag.controller_broker_url), text_of(dag.controller_broker_url_tls))
        return Layout(topic, dag.epoch, segments, hashing, urls if any(urls) else None)

    @property
    def is_legacy(self) -> bool:
        """Return whether all active segments are topics of the time before the migration."""
        return all(one.is_legacy for one in self.active)

    def segment_of(self, key: str) -> Segment:
        """Return the active segment of a key."""
        if self.is_legacy:
            by_id = sorted(self.active, key=lambda one: one.id)
            return by_id[routing.legacy_segment(key, len(by_id))]
        starts: list[int] = self._starts  # type: ignore[attr-defined]
        return self.active[bisect_right(starts, self.hashing.segment_hash(key)) - 1]

    def ancestors(self, segment_id: int) -> set[int]:
        """Return the ids of all segments that were split or merged into this one, as far as they still exist."""
        return set(self._related(segment_id, lambda one: one.parents))

    def descendants(self, segment_id: int) -> set[int]:
        """Return the ids of all segments that this one was split or merged into."""
        return set(self._related(segment_id, lambda one: one.children))

    def _related(self, segment_id: int, next_of: Callable[[Segment], frozenset[int]]) -> Iterator[int]:
        waiting, seen = [segment_id], {segment_id}
        while waiting:
            for other in next_of(self.segments[waiting.pop()]):
                if other in self.segments and other not in seen:
                    seen.add(other)
                    waiting.append(other)
                    yield other


def _segment(topic: str, one: pb.SegmentInfoProto) -> Segment:
    if not one.hash_start <= one.hash_end < routing.RING:
        raise BrokenLayout(f"{topic}: segment {one.segment_id} has the range {one.hash_start:x}-{one.hash_end:x}")
    splits = tuple(one.entry_bucket_splits)
    if list(splits) != sorted(set(splits)) or (splits and not 0 < splits[0] <= splits[-1] < routing.RING):
        raise BrokenLayout(f"{topic}: segment {one.segment_id} has the entry buckets {splits[:10]}")
    legacy = text_of(one.legacy_topic_name)
    return Segment(
        one.segment_id,
        one.hash_start,
        one.hash_end,
        full_name(legacy or segment_topic(topic, one.segment_id, one.hash_start, one.hash_end)),
        one.state == pb.ACTIVE,
        frozenset(one.parent_ids),
        frozenset(one.child_ids),
        bool(legacy),
        splits,
    )
