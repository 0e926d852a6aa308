"""Check names and metadata of requests."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.session.session import Session
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

DISABLED = "Scalable topics are disabled on this broker"


class InvalidNameError(BrokerServiceError):
    """The name of a topic or namespace is invalid."""

    code = pb.InvalidTopicName


class MetadataTooLargeError(BrokerServiceError):
    """The metadata of a producer or consumer is larger than maxMetadataSize."""

    code = pb.MetadataError


def name_of(session: Session, text: str) -> TopicName:
    """Return the topic that a request names. Raise `InvalidTopicName` for a name that the broker does not serve."""
    name = TopicName.parse(text)
    if name.is_scalable or name.is_segment:
        if not session.profile.scalable_topics:
            raise InvalidTopicName(f"Invalid topic domain: '{name.domain}'")
        if not session.broker.config.scalableTopicsEnabled and not session.profile.scalable_as_m1:
            raise InvalidTopicName(DISABLED)
    return name


def parse_name(session: Session, text: str) -> TopicName:
    """Return the topic that a request names. Raise `InvalidNameError` for an invalid name."""
    try:
        name = name_of(session, text)
        _ = name.partitioned_name  # raises where no name stands before "-partition-N"
    except InvalidTopicName as error:
        raise InvalidNameError(f"Invalid topic name: {error}") from None
    return name


def texts_of(pairs: Iterable[pb.KeyValue]) -> dict[str, str]:
    """Return metadata or properties as a mapping. The last of several equal keys wins."""
    return {text_of(pair.key): text_of(pair.value) for pair in pairs}


def check_metadata(pairs: Iterable[pb.KeyValue], limit: int) -> None:
    """Raise `MetadataTooLargeError` for more metadata than maxConsumerMetadataSize allows, in bytes."""
    left = limit
    for pair in pairs:
        left -= len(pair.key) + len(pair.value)
        if left < 0:  # do not read the rest
            raise MetadataTooLargeError(f"metadata has a max size of {limit // 1024} Kb")
