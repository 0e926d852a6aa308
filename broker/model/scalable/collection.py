"""Find sealed segments that nobody needs any more."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.model.scalable.layout import Segment
from pulsarium.broker.model.scalable.topics import ScalableTopic

RetentionMs = Callable[[ScalableTopic, Segment], int]


def collectable(topic: ScalableTopic, now_ms: int, retention_ms: RetentionMs) -> list[int]:
    """Return the sealed segments whose retention is over and that all subscriptions of the record have drained.

    A legacy segment waits for all subscriptions of its persistent topic, too, because older clients made them.
    """

    def is_over(segment: Segment) -> bool:
        kept_ms = retention_ms(topic, segment)
        return kept_ms >= 0 and now_ms - segment.sealed_ms > kept_ms

    def is_drained(segment: Segment) -> bool:
        older = topic.opened_segment(segment) if segment.legacy_topic is not None else None
        names = {*topic.subscriptions, *(() if older is None else older.subscriptions)}
        return all(topic.is_drained(segment, name) for name in names)

    return [
        segment.id
        for segment in topic.layout.assignable()
        if not segment.active and is_over(segment) and is_drained(segment)
    ]
