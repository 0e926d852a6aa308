"""Names of topics, and what a name stands for."""

from __future__ import annotations

from pulsarium.client import errors
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName


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
