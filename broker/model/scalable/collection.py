"""Find sealed segments that nobody needs any more."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.model.scalable.layout import Segment
from pulsarium.broker.model.scalable.topics import ScalableTopic

RetentionMs = Callable[[ScalableTopic, Segment], int]


def collectable(topic: ScalableTopic, now_ms: int, retention_ms: RetentionMs) -> list[int]:
    """Return the sealed segments whose retention is over and that all subscriptions of the record have drained."""

    def is_over(segment: Segment) -> bool:
        kept_ms = retention_ms(topic, segment)
        return kept_ms >= 0 and now_ms - segment.sealed_ms > kept_ms

    return [
        segment.id
        for segment in topic.layout.assignable()
        if not segment.active
        and is_over(segment)
        and all(topic.is_drained(segment, subscription) for subscription in topic.subscriptions)
    ]
