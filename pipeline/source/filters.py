"""Conditions on columns of metadata, by which tasks skip whole topics and entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from pulsarium.pipeline.columns.names import PUBLISH_TIME, TOPIC

_EPOCH = datetime.fromtimestamp(0, UTC)
_FROM, _UNTIL = (GreaterThan, GreaterThanOrEqual, EqualTo), (LessThan, LessThanOrEqual, EqualTo)


@dataclass(frozen=True)
class Selection:
    """Topics and publish times outside of which no message is wanted. Inside, Spark judges each row."""

    topics: frozenset[str] | None = None
    """Full names, or None for all."""
    first: int = 0
    last: int = 2**64
    """Publish times in milliseconds since the epoch."""

    @staticmethod
    def of(filters: Iterable[Filter]) -> Selection:
        """Return the selection of conditions, all of which hold for each wanted message."""
        made = Selection()
        for each in filters:
            made = made._and(each)
        return made

    def has_topic(self, topic: str) -> bool:
        """Return whether messages of a topic can be wanted."""
        return self.topics is None or topic in self.topics

    def has_time(self, publish_time: int) -> bool:
        """Return whether messages with this publish time can be wanted."""
        return self.first <= publish_time <= self.last

    def _and(self, condition: Filter) -> Selection:
        column = getattr(condition, "attribute", ())
        if column == (TOPIC,) and isinstance(condition, (EqualTo, In)):
            found = frozenset(condition.value if isinstance(condition, In) else [condition.value])
            return replace(self, topics=found if self.topics is None else self.topics & found)
        if column != (PUBLISH_TIME,) or not isinstance(condition, (*_FROM, *_UNTIL)):
            return self
        if not isinstance(condition.value, datetime) or condition.value.tzinfo is None:
            return self
        milliseconds = (condition.value - _EPOCH) // timedelta(milliseconds=1)
        first, last = self.first, self.last
        if isinstance(condition, _FROM):
            first = max(first, milliseconds)
        if isinstance(condition, _UNTIL):
            last = min(last, milliseconds + 1)
        return replace(self, first=first, last=last)
