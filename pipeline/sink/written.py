"""Report what tasks wrote. The module imports little, because Spark starts a process of Python for the commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql.datasource import WriterCommitMessage


@dataclass
class WrittenRows(WriterCommitMessage):
    """Numbers of rows that a task wrote."""

    partition: int
    rows: int = 0
    known: int = 0
    """Number of rows that an earlier attempt had written."""
    topics: dict[str, int] = field(default_factory=dict)
    """Number of rows by topic."""


def figures(messages: Sequence[WriterCommitMessage | None]) -> str:
    """Return the numbers of rows that tasks wrote, as text. None is a task that failed."""
    tasks = [each for each in messages if isinstance(each, WrittenRows)]
    topics: dict[str, int] = {}
    for each in tasks:
        for topic, rows in each.topics.items():
            topics[topic] = topics.get(topic, 0) + rows
    known = sum(each.known for each in tasks)
    each_topic = ", ".join(f"{topic} {count}" for topic, count in sorted(topics.items()))
    return (
        f"{sum(topics.values())} rows of {len(tasks)} tasks, {known} of them written by earlier attempts ({each_topic})"
    )
