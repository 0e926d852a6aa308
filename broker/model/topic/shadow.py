"""Shadow topics (PIP-180): what a source topic has, to be read elsewhere. Nothing is copied here: they stay empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producer import Producer

SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"  # the property of a topic that names its source
NOT_A_SHADOW: Final = "Only shadow topic supports sending messages with messageId"


class ShadowTopic(PersistentTopic):
    """Only its source's broker would write here: everybody else may open producers, and is refused each message."""

    def publish(self, producer: Producer, *more: Any, **options: Any) -> None:
        raise NotAllowedError("Cannot send messages to a shadow topic")


def is_shadow(properties: Mapping[str, str]) -> bool:
    return SHADOW_SOURCE in properties
