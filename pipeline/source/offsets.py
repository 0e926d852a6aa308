"""Offsets in the checkpoint of a stream: where reading continues in each topic, and how the last range was split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from pyspark.sql.datasource import InputPartition

from pulsarium.pipeline.source.ledgers import Run
from pulsarium.pipeline.source.places import FIRST, Position

Offset: TypeAlias = dict[str, dict[str, str]]
"""Offsets by topic or partition: `next`, and `cuts` separated by commas.

Spark stores them as JSON and compares the text.
"""


@dataclass(frozen=True)
class TopicOffset:
    """The offset of a topic without partitions, or of one partition."""

    next: Position
    """Everything before this position is processed."""
    cuts: tuple[Position, ...] = ()
    """Positions between the input partitions before `next`.

    They are stored, so that a replay has the same partitions.
    """

    def encode(self) -> dict[str, str]:
        return {"next": str(self.next), "cuts": ",".join(map(str, self.cuts))}

    @staticmethod
    def decode(kept: Mapping[str, str]) -> TopicOffset:
        """Return an offset of the checkpoint.

        Raise `ValueError` (`InvalidMessageId`) or `KeyError` for an offset of another source.
        """
        cuts = kept.get("cuts", "")
        return TopicOffset(Position.parse(kept["next"]), tuple(map(Position.parse, cuts.split(",") if cuts else ())))


def encode(offsets: Mapping[str, TopicOffset]) -> Offset:
    """Return the offsets for Spark, sorted by topic, so that equal offsets are equal texts."""
    return {topic: offsets[topic].encode() for topic in sorted(offsets)}


def decode(kept: Mapping[str, Mapping[str, str]]) -> dict[str, TopicOffset]:
    """Return the offsets from Spark's form. Raise `ValueError` for an offset of another source."""
    try:
        return {topic: TopicOffset.decode(one) for topic, one in kept.items()}
    except (KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"the checkpoint is of another source: {kept}") from error


@dataclass
class Split(InputPartition):
    """An input partition: the messages of a topic from `start` up to and excluding `end`."""

    topic: str
    start: Position
    end: Position
    runs: tuple[Run, ...] = field(default=(), compare=False)
    """Entries of the range at planning time, as far as they are known."""

    def __str__(self) -> str:
        return f"{self.topic} from {self.start} to {self.end}"


def splits_of(topic: str, start: Position, end: TopicOffset) -> list[Split]:
    """Return the input partitions of a topic between two offsets, in order. The list may be empty."""
    inside = [cut for cut in end.cuts if start < cut < end.next]
    edges = [start, *inside, end.next]
    return [Split(topic, one, other) for one, other in pairwise(edges) if one < other]


def splits(start: Mapping[str, Mapping[str, str]], end: Mapping[str, Mapping[str, str]]) -> Sequence[Split]:
    """Return the input partitions between two offsets, which depend on nothing else.

    A topic that is missing in `start` begins at its first message.
    """
    known, until = decode(start), decode(end)
    begin = {topic: known[topic].next if topic in known else FIRST for topic in until}
    return [split for topic in sorted(until) for split in splits_of(topic, begin[topic], until[topic])]
