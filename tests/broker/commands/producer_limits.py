"""Helpers for the tests of limits of producers."""

from __future__ import annotations

from typing import Any

from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed

LOOSE = "non-persistent://public/default/t"


def put(bed: Bed, **policies: Any) -> None:
    """Add policies to those of the namespace."""
    metadata = bed.broker.metadata
    metadata.put_namespace("public/default", metadata.namespaces["public/default"] | policies)


def put_topic(bed: Bed, name: str = TOPIC, **policies: Any) -> None:
    bed.broker.metadata.put_topic_policies(TopicName.parse(name), policies)
