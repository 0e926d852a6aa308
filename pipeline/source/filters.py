"""Conditions on columns of metadata, by which tasks skip whole topics, entries and rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from pulsarium.pipeline.columns.names import INDEX, KEY, PUBLISH_TIME, TOPIC

T = TypeVar("T")

_EPOCH = datetime.fromtimestamp(0, UTC)
MOST = 2**64
"""More than each publish time and index."""
_FROM, _UNTIL = (GreaterThan, GreaterThanOrEqual, EqualTo), (LessThan, LessThanOrEqual, EqualTo)


@dataclass(frozen=True)
class Selection:
    """Topics, publish times, indexes and keys outside of which no message is wanted. Inside, Spark judges each row."""

    topics: frozenset[str] | None = None
    """Full names, or None for all."""
    first: int = 0
    last: int = MOST
    """Publish times in milliseconds since the epoch."""
    first_index: int = 0
    last_index: int = MOST
    keys: frozenset[bytes | str | None] | None = None
    """Values of the column, which is text where the reader's schema says so, or None for all."""

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
        if column in ((TOPIC,), (KEY,)) and isinstance(condition, (EqualTo, In)):
            found = frozenset(condition.value if isinstance(condition, In) else [condition.value])
            if column == (TOPIC,):
                return replace(self, topics=_both(self.topics, found))
            return replace(self, keys=_both(self.keys, found))
        value = getattr(condition, "value", None)
        if column == (INDEX,) and isinstance(value, int):
            first, last = _range(condition, value, value)
            return replace(self, first_index=max(self.first_index, first), last_index=min(self.last_index, last))
        if column == (PUBLISH_TIME,) and isinstance(value, datetime) and value.tzinfo is not None:
            milliseconds = (value - _EPOCH) // timedelta(milliseconds=1)
            first, last = _range(condition, milliseconds, milliseconds + 1)
            return replace(self, first=max(self.first, first), last=min(self.last, last))
        return self


def _both(known: frozenset[T] | None, found: frozenset[T]) -> frozenset[T]:
    """Return what both sets have. None stands for everything."""
    return found if known is None else known & found


def _range(condition: Filter, least: int, most: int) -> tuple[int, int]:
    """Return the least and the most number for which a condition can hold. Its value is between the two given."""
    return least if isinstance(condition, _FROM) else 0, most if isinstance(condition, _UNTIL) else MOST
