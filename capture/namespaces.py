"""Take the records of one namespace out of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pulsarium.capture.file import CaptureRecord
from pulsarium.capture.lint.checker import Walk
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName


def connections_of(records: Iterable[CaptureRecord], namespace: str) -> Sequence[CaptureRecord]:
    """Return all records of the connections that use a topic of the namespace."""
    named = _named(records)
    using = {record.connection for record, topic in named if topic and _is_in(topic, namespace)}
    return [record for record, _ in named if record.connection in using]


def topics_of(records: Iterable[CaptureRecord], namespace: str) -> Sequence[CaptureRecord]:
    """Return the records of these connections, without the frames about topics of other namespaces."""
    named = _named(connections_of(records, namespace))
    return [record for record, topic in named if not topic or _is_in(topic, namespace)]


def _named(records: Iterable[CaptureRecord]) -> list[tuple[CaptureRecord, str | None]]:
    """Return each record with the topic of its frame."""
    walk, found = Walk(), list[tuple[CaptureRecord, str | None]]()
    for record in records:
        frame = walk.feed(record)[1].frame
        found.append((record, None if frame is None else frame.topic))
    return found


def _is_in(topic: str, namespace: str) -> bool:
    try:
        return str(TopicName.parse(topic).namespace_name) == namespace
    except InvalidTopicName:
        return False
