"""Checks that requests with names and metadata share."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName


class InvalidNameError(BrokerServiceError):
    code = pb.InvalidTopicName


class MetadataTooLargeError(BrokerServiceError):
    code = pb.MetadataError


def parse_name(text: str) -> TopicName:
    """The topic that a request names."""
    try:
        name = TopicName.parse(text)
        _ = name.partitioned_name  # nothing may stand before "-partition-N"
    except InvalidTopicName as error:
        raise InvalidNameError(f"Invalid topic name: {error}") from None
    return name


def texts_of(pairs: Iterable[pb.KeyValue]) -> dict[str, str]:
    """Metadata or properties; of two with the same key the last wins."""
    return {text_of(pair.key): text_of(pair.value) for pair in pairs}


def check_metadata(pairs: Iterable[pb.KeyValue], limit: int) -> None:
    """Refuse more metadata than a producer or consumer may bring (maxConsumerMetadataSize)."""
    left = limit
    for pair in pairs:
        left -= len(pair.key) + len(pair.value)
        if left < 0:  # however many more there are
            raise MetadataTooLargeError(f"metadata has a max size of {limit // 1024} Kb")
