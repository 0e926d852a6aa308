"""Offsets in the checkpoint of a stream: where reading continues in each topic, and how the last range was split.

They also name the query's subscription, because a data source in Python does not know its checkpoint otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from pyspark.sql.datasource import InputPartition

from pulsarium.pipeline.source.ledgers import LedgerRange
from pulsarium.pipeline.source.places import FIRST, ReadPosition

Offset: TypeAlias = dict[str, dict[str, str]]
"""Offsets by topic or partition: `next`, `cuts` separated by commas, sometimes `from` and `opened`; the subscription.

Spark stores them as JSON and compares the text.
"""

SUBSCRIPTION = "subscription"
"""Key of the subscription among the topics, whose full names are never like it."""


@dataclass(frozen=True)
class TopicOffset:
    """The offset of a topic without partitions, or of one partition."""

    next: ReadPosition
    """Everything before this position is processed."""
    cuts: tuple[ReadPosition, ...] = ()
    """Positions between the input partitions before `next`.

    They are stored, so that a replay has the same partitions.
    """
    begin: ReadPosition | None = None
    """Start of the range before `next`, in the first batch with the topic.

    It is stored, because a replay would ask the broker anew where the topic's first message or its end is.
    """
    opened: str = ""
    """When the broker opened the ledger of `next`, as far as it tells.

    A broker that lost its data numbers its ledgers from the beginning, so another ledger may have the same number.
    """

    def encode(self) -> dict[str, str]:
        kept = {"next": str(self.next), "cuts": ",".join(map(str, self.cuts))}
        more = {"from": "" if self.begin is None else str(self.begin), "opened": self.opened}
        return kept | {key: value for key, value in more.items() if value}

    @staticmethod
    def decode(kept: Mapping[str, str]) -> TopicOffset:
        """Return an offset of the checkpoint.

        Raise `ValueError` (`InvalidMessageId`) or `KeyError` for an offset of another source.
        """
        cuts, begin = kept["cuts"], kept.get("from")
        return TopicOffset(
            ReadPosition.parse(kept["next"]),
            tuple(map(ReadPosition.parse, cuts.split(",") if cuts else ())),
            ReadPosition.parse(begin) if begin else None,
            kept.get("opened", ""),
        )


def encode(offsets: Mapping[str, TopicOffset], subscription: str) -> Offset:
    """Return the offsets for Spark, sorted by topic, so that equal offsets are equal texts."""
    return {SUBSCRIPTION: {"name": subscription}, **{topic: offsets[topic].encode() for topic in sorted(offsets)}}


def decode(kept: Mapping[str, Mapping[str, str]]) -> dict[str, TopicOffset]:
    """Return the offsets from Spark's form. Raise `ValueError` for an offset of another source."""
    try:
        return {topic: TopicOffset.decode(one) for topic, one in kept.items() if topic != SUBSCRIPTION}
    except (KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"the checkpoint is of another source: {kept}; use another checkpointLocation") from error


def subscription_of(kept: Mapping[str, Mapping[str, str]]) -> str:
    """Return the subscription of the checkpoint's query. Raise `ValueError` for an offset of another source."""
    try:
        return kept[SUBSCRIPTION]["name"]
    except KeyError as error:
        raise ValueError(f"the checkpoint is of another source: {kept}; use another checkpointLocation") from error


@dataclass
class TopicRange(InputPartition):
    """An input partition: the messages of a topic from `start` up to and excluding `end`."""

    topic: str
    start: ReadPosition
    end: ReadPosition
    runs: tuple[LedgerRange, ...] = field(default=(), compare=False)
    """Entries of the range at planning time, as far as they are known."""

    def __str__(self) -> str:
        return f"{self.topic} from {self.start} to {self.end}"


def splits_of(topic: str, start: ReadPosition, end: TopicOffset) -> list[TopicRange]:
    """Return the input partitions of a topic between two offsets, in order. The list may be empty."""
    inside = [cut for cut in end.cuts if start < cut < end.next]
    edges = [start, *inside, end.next]
    return [TopicRange(topic, one, other) for one, other in pairwise(edges) if one < other]


def splits(start: Mapping[str, Mapping[str, str]], end: Mapping[str, Mapping[str, str]]) -> Sequence[TopicRange]:
    """Return the input partitions between two offsets, which depend on nothing else.

    A topic that is missing in `start` begins at its first message.
    """
    begin, until = begins(start, end), decode(end)
    return [split for topic in sorted(until) for split in splits_of(topic, begin[topic], until[topic])]


def begins(start: Mapping[str, Mapping[str, str]], end: Mapping[str, Mapping[str, str]]) -> dict[str, ReadPosition]:
    """Return where the range of each topic begins."""
    known, found = decode(start), {}
    for topic, until in decode(end).items():
        before = known.get(topic)
        is_first = until.begin is not None and before != until
        found[topic] = until.begin if is_first and until.begin else before.next if before else FIRST
    return found
