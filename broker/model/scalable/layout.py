"""The layout of a scalable topic: a graph of segments, whose active ones tile the hash space (PIP-460).

    epoch 0          epoch 1: split of 0        epoch 2: merge of 1 and 2

    [0......ffff]    [1....7fff][2....ffff]     [3............ffff]
     active           0 is sealed                0, 1 and 2 are sealed

A layout is immutable. Each change returns a new layout, of a higher epoch, and never uses a segment id again. These
invariants hold for each layout:

- The ranges of the active segments cover all hashes, without a gap or an overlap. A message has one segment.
- A sealed segment takes no messages, and keeps those it has. Its children are what it was split or merged into.
- Parents come before children: a consumer that keeps the order of keys reads a segment after all of its parents. So the
  order of a key lasts over splits and merges.

Producers follow the newest layout. Consumers need the old segments until they are drained, so a sealed segment leaves
the layout only when its messages do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.proto.topic_name import SegmentName, TopicName

HASHES: Final = 1 << 16
MOST_BUCKETS: Final = 1024  # of a segment; scalableTopicEntryBucketMaxPerSegment may lower the number
NEVER: Final = -1

Json = dict[str, Any]


class LayoutError(BrokerServiceError):
    """A change that does not fit the layout. Nothing has changed."""

    java_name = "IllegalArgumentException"

    @property
    def java_text(self) -> str:
        """Return the text that the stats of Pulsar have for the change."""
        return f"java.lang.{self.java_name}: {self.text}"


class NarrowSegmentError(LayoutError):
    """A split of a segment of one hash."""

    java_name = "IllegalStateException"


class SegmentNotFoundError(LayoutError):
    """A change of a segment that the layout does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A range of hashes, `start` to `end` inclusive, with a topic of its own.

    `legacy_topic` is the persistent topic of a segment that existed before the scalable topic. `splits` has the
    first hashes of its entry buckets but the first one (PIP-486).
    """

    id: int
    start: int
    end: int
    parents: tuple[int, ...] = ()
    children: tuple[int, ...] = ()
    created_epoch: int = 0
    sealed_epoch: int = NEVER
    created_ms: int
    sealed_ms: int = NEVER
    legacy_topic: str | None = None
    splits: tuple[int, ...] = ()

    @property
    def active(self) -> bool:
        """Return whether the segment takes messages."""
        return self.sealed_epoch == NEVER

    @property
    def buckets(self) -> int:
        """Return the number of entry buckets."""
        return len(self.splits) + 1

    @property
    def place(self) -> tuple[int, int, int]:
        """Return a sort key: segments are assigned in the order of their ranges."""
        return self.start, self.end, self.id

    def topic(self, parent: TopicName) -> TopicName:
        """Return the topic that has the messages of this segment of `parent`."""
        if self.legacy_topic is not None:
            return TopicName.parse(self.legacy_topic)
        return self.topic_of_its_own(parent)

    def topic_of_its_own(self, parent: TopicName) -> TopicName:
        """Return the segment:// name, also for a legacy segment, which has no topic with this name."""
        return SegmentName(parent, self.start, self.end, self.id).topic

    def record(self) -> Json:
        """Return the segment as the metadata and REST show it."""
        record: Json = {
            "segmentId": self.id,
            "hashRange": {"start": self.start, "end": self.end},
            "state": "ACTIVE" if self.active else "SEALED",
            "parentIds": list(self.parents),
            "childIds": list(self.children),
            "createdAtEpoch": self.created_epoch,
            "sealedAtEpoch": self.sealed_epoch,
            "createdAtMs": self.created_ms,
            "sealedAtMs": self.sealed_ms,
            "sealed": not self.active,
            "active": self.active,
            "root": not self.parents,
            "leaf": not self.children,
            "legacy": self.legacy_topic is not None,
        }
        if self.legacy_topic is not None:
            record["legacyTopicName"] = self.legacy_topic
        return {**record, "entryBucketSplits": list(self.splits)} if self.splits else record

    @classmethod
    def read(cls, record: Json) -> Segment:
        """Return the segment of a record."""
        return cls(
            id=record["segmentId"],
            start=record["hashRange"]["start"],
            end=record["hashRange"]["end"],
            parents=tuple(record["parentIds"]),
            children=tuple(record["childIds"]),
            created_epoch=record["createdAtEpoch"],
            sealed_epoch=record["sealedAtEpoch"],
            created_ms=record["createdAtMs"],
            sealed_ms=record["sealedAtMs"],
            legacy_topic=record.get("legacyTopicName"),
            splits=tuple(record.get("entryBucketSplits", ())),
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """The segments of a scalable topic by id, the active ones and the sealed ones that are not pruned yet."""

    epoch: int
    next_id: int
    segments: Mapping[int, Segment] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def initial(cls, count: int, *, now_ms: int, buckets: int = 1) -> Layout:
        """Return a new layout of `count` segments of equal width, each with `buckets` entry buckets."""
        splits = equal_splits(buckets)
        segments = [
            Segment(id=index, start=start, end=end, created_ms=now_ms, splits=splits)
            for index, (start, end) in enumerate(_tiles(count))
        ]
        return cls(0, count, _by_id(segments))

    @classmethod
    def synthetic(cls, topics: Sequence[str], *, now_ms: int) -> Layout:
        """Return the layout that stands for persistent topics: a partitioned topic's partitions, or one topic."""
        segments = [
            Segment(id=index, start=start, end=end, created_ms=now_ms, legacy_topic=topic)
            for index, ((start, end), topic) in enumerate(zip(_tiles(len(topics)), topics, strict=True))
        ]
        return cls(0, len(segments), _by_id(segments))

    @classmethod
    def migrated(cls, topics: Sequence[str], *, now_ms: int, buckets: int = 1) -> Layout:
        """Return the layout of a migrated topic: each persistent topic is a sealed parent of every new segment."""
        count = len(topics)
        parents, children = tuple(range(count)), tuple(range(count, 2 * count))
        sealed = [
            Segment(
                id=index,
                start=0,
                end=HASHES - 1,
                children=children,
                sealed_epoch=0,
                created_ms=now_ms,
                sealed_ms=now_ms,
                legacy_topic=topic,
            )
            for index, topic in enumerate(topics)
        ]
        active = [
            replace(segment, id=count + segment.id, parents=parents)
            for segment in cls.initial(count, now_ms=now_ms, buckets=buckets).segments.values()
        ]
        return cls(0, 2 * count, _by_id([*sealed, *active]))

    # reading

    def segment(self, segment_id: int) -> Segment:
        """Return a segment, or raise `SegmentNotFoundError`."""
        found = self.segments.get(segment_id)
        if found is None:
            raise SegmentNotFoundError(f"Segment not found: {segment_id}")
        return found

    def active(self) -> list[Segment]:
        """Return the active segments in the order of their ranges."""
        return [segment for segment in self.assignable() if segment.active]

    def assignable(self) -> list[Segment]:
        """Return all segments, sealed ones too, in the order in which they are assigned."""
        return sorted(self.segments.values(), key=lambda segment: segment.place)

    # changes

    def split(self, segment_id: int, *, now_ms: int) -> Layout:
        """Replace an active segment by its two halves."""
        segment = self.segment(segment_id)
        if not segment.active:
            raise LayoutError(f"Cannot split non-active segment: {segment_id}")
        if segment.start == segment.end:
            raise NarrowSegmentError("Cannot split range of size 1")
        middle = segment.start + (segment.end - segment.start) // 2
        splits = equal_splits(max(1, segment.buckets // 2))
        ranges = ((segment.start, middle), (middle + 1, segment.end))
        return self._replaced([segment], [(*each, splits) for each in ranges], now_ms)

    def merge(self, first_id: int, second_id: int, *, now_ms: int, with_buckets: bool = True) -> Layout:
        """Replace two adjacent active segments by one, which has the entry buckets of both if there are any."""
        first, second = self.segments.get(first_id), self.segments.get(second_id)
        if first is None or second is None:
            raise SegmentNotFoundError("Segment not found")
        if not (first.active and second.active):
            raise LayoutError("Both segments must be active")
        low, high = sorted((first, second), key=lambda segment: segment.place)
        if low.end + 1 != high.start:
            shown = " and ".join(f"[{each.start:04x}, {each.end:04x}]" for each in (first, second))
            raise LayoutError(f"Segments are not adjacent: {shown}")
        splits = equal_splits(min(MOST_BUCKETS, first.buckets + second.buckets) if with_buckets else 1)
        return self._replaced([first, second], [(low.start, high.end, splits)], now_ms)

    def rebucket(self, segment_id: int, buckets: int, *, now_ms: int) -> Layout:
        """Replace an active segment by one of the same range with `buckets` entry buckets."""
        if not 1 <= buckets <= MOST_BUCKETS:
            raise LayoutError(f"bucketCount must be in [1, {MOST_BUCKETS}]: {buckets}")
        segment, splits = self.segment(segment_id), equal_splits(buckets)
        if not segment.active:
            raise LayoutError(f"Cannot rebucket non-active segment: {segment_id}")
        if segment.splits == splits:
            raise LayoutError(f"Segment {segment_id} already has the requested entry-bucket splits")
        return self._replaced([segment], [(segment.start, segment.end, splits)], now_ms)

    def prune(self, ids: Collection[int]) -> Layout:
        """Remove sealed segments, and the edges to them."""
        for segment_id in ids:
            if self.segment(segment_id).active:
                raise LayoutError(f"Cannot prune active segment: {segment_id}")
        left = [
            replace(
                segment,
                parents=tuple(each for each in segment.parents if each not in ids),
                children=tuple(each for each in segment.children if each not in ids),
            )
            for segment in self.segments.values()
            if segment.id not in ids
        ]
        return Layout(self.epoch + 1, self.next_id, _by_id(left))

    def _replaced(self, parents: list[Segment], ranges: list[tuple[int, int, tuple[int, ...]]], now_ms: int) -> Layout:
        epoch, first = self.epoch + 1, self.next_id
        ids = tuple(range(first, first + len(ranges)))
        sealed = [replace(each, children=ids, sealed_epoch=epoch, sealed_ms=now_ms) for each in parents]
        added = [
            Segment(
                id=segment_id,
                start=start,
                end=end,
                parents=tuple(parent.id for parent in parents),
                created_epoch=epoch,
                created_ms=now_ms,
                splits=splits,
            )
            for segment_id, (start, end, splits) in zip(ids, ranges, strict=True)
        ]
        changed = {segment.id: segment for segment in (*sealed, *added)}
        return Layout(epoch, first + len(ranges), MappingProxyType({**self.segments, **changed}))

    # the record

    def record(self) -> Json:
        """Return the layout as the metadata and REST show it."""
        segments = {str(segment_id): segment.record() for segment_id, segment in self.segments.items()}
        return {"epoch": self.epoch, "nextSegmentId": self.next_id, "segments": segments}

    @classmethod
    def read(cls, record: Json) -> Layout:
        """Return the layout of a record."""
        return cls(record["epoch"], record["nextSegmentId"], _by_id(map(Segment.read, record["segments"].values())))


def equal_splits(buckets: int) -> tuple[int, ...]:
    """Return the split points of `buckets` entry buckets of equal width."""
    return tuple(index * HASHES // buckets for index in range(1, buckets))


def _tiles(count: int) -> list[tuple[int, int]]:
    """Divide the hash space into `count` ranges of equal width. The last one takes the rest."""
    width = HASHES // count
    return [(index * width, HASHES - 1 if index == count - 1 else (index + 1) * width - 1) for index in range(count)]


def _by_id(segments: Iterable[Segment]) -> Mapping[int, Segment]:
    return MappingProxyType({segment.id: segment for segment in segments})
