"""Names of topics, and what a name stands for."""

from __future__ import annotations

from pulsarium.client import errors
from pulsarium.client.errors import OperationNotSupported
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

#: Topics and partitions that one producer or consumer may have: each takes memory, whatever a broker claims.
MOST_TOPICS = 32_768


def bounded(count: int, of: str) -> int:
    """The same number; OperationNotSupported if it is more than MOST_TOPICS."""
    if count > MOST_TOPICS:
        raise OperationNotSupported(f"{of}: {count} topics or partitions, and at most {MOST_TOPICS} can be open")
    return count


def parse(topic: str) -> TopicName:
    """The name in its parts; errors.InvalidTopicName if it is none."""
    try:
        return TopicName.parse(topic)
    except InvalidTopicName as error:
        raise errors.InvalidTopicName(*error.args) from None


def full_name(topic: str) -> str:
    """`persistent://public/default/topic` of `topic`; errors.InvalidTopicName if it is no name."""
    return str(parse(topic))


def partitions_of(topic: str, count: int) -> list[str]:
    """The topics that a partitioned topic consists of; 0: it is not partitioned."""
    if count == 0:
        return [topic]
    name = parse(topic)
    return [str(name.partition(index)) for index in range(count)]
