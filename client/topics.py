"""Names of topics and partitions."""

from __future__ import annotations

from pulsarium.client import errors
from pulsarium.client.errors import OperationNotSupported
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

#: The most topics and partitions of one producer or consumer. Each takes memory, whatever a broker claims.
MOST_TOPICS = 32_768


def bounded(count: int, of: str) -> int:
    """Return `count`. Raise `OperationNotSupported` if it exceeds MOST_TOPICS."""
    if count > MOST_TOPICS:
        raise OperationNotSupported(f"{of}: {count} topics or partitions, at most {MOST_TOPICS} can be open")
    return count


def parse(topic: str) -> TopicName:
    """Return the parts of a topic's name. Raise `errors.InvalidTopicName` for an invalid name."""
    try:
        return TopicName.parse(topic)
    except InvalidTopicName as error:
        raise errors.InvalidTopicName(*error.args) from None


def full_name(topic: str) -> str:
    """Return the full name of `topic`, such as `persistent://public/default/topic`.

    Raise `errors.InvalidTopicName` for an invalid name.
    """
    return str(parse(topic))


def partitions_of(topic: str, count: int) -> list[str]:
    """Return the partitions of a partitioned topic, or the topic itself if `count` is 0."""
    if count == 0:
        return [topic]
    name = parse(topic)
    return [str(name.partition(index)) for index in range(count)]
