"""What the checkpoint of a stream keeps: for each topic where reading goes on, and how the way there was split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from pyspark.sql.datasource import InputPartition

from pulsarium.pipeline.source.places import FIRST, Position

Offset: TypeAlias = dict[str, dict[str, str]]
"""By topic or partition: `next`, and `cuts` with commas between. Spark keeps it as JSON and compares it as text."""


@dataclass(frozen=True)
class TopicOffset:
    """Of one topic without partitions, or of one partition."""

    next: Position
    """Everything before it is done."""
    cuts: tuple[Position, ...] = ()
    """Where the input partitions that lead there meet: it is decided once, so that a replay has the same ones."""

    def encode(self) -> dict[str, str]:
        return {"next": str(self.next), "cuts": ",".join(map(str, self.cuts))}

    @staticmethod
    def decode(kept: Mapping[str, str]) -> TopicOffset:
        """ValueError (InvalidMessageId), KeyError for what is no offset of this source."""
        cuts = kept.get("cuts", "")
        return TopicOffset(Position.parse(kept["next"]), tuple(map(Position.parse, cuts.split(",") if cuts else ())))


def encode(offsets: Mapping[str, TopicOffset]) -> Offset:
    """With the topics in their order, so that equal offsets are equal texts."""
    return {topic: offsets[topic].encode() for topic in sorted(offsets)}


def decode(kept: Mapping[str, Mapping[str, str]]) -> dict[str, TopicOffset]:
    """ValueError for what is no offset of this source."""
    try:
        return {topic: TopicOffset.decode(one) for topic, one in kept.items()}
    except (KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"the checkpoint is not one of this source: {kept}") from error


@dataclass
class Split(InputPartition):
    """An input partition: the messages of a topic from `start` up to `end`, without that."""

    topic: str
    start: Position
    end: Position

    def __str__(self) -> str:
        return f"{self.topic} from {self.start} to {self.end}"


def splits_of(topic: str, start: Position, end: TopicOffset) -> list[Split]:
    """Of one topic, in order; none if there is nothing between."""
    inside = [cut for cut in end.cuts if start < cut < end.next]
    edges = [start, *inside, end.next]
    return [Split(topic, one, other) for one, other in pairwise(edges) if one < other]


def splits(start: Mapping[str, Mapping[str, str]], end: Mapping[str, Mapping[str, str]]) -> Sequence[Split]:
    """The input partitions between two offsets, of these alone. A topic that `start` does not know begins at its first
    message."""
    known, until = decode(start), decode(end)
    begin = {topic: known[topic].next if topic in known else FIRST for topic in until}
    return [split for topic in sorted(until) for split in splits_of(topic, begin[topic], until[topic])]
