"""Shadow topics (PIP-180), which show the messages of a source topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarium.broker.model.context import Context
from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.model.ledger.managed_ledger import ShadowLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.namespace.metadata import Metadata
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"  # the topic property that names the source
NOT_A_SHADOW: Final = "Only shadow topic supports sending messages with messageId"


class ShadowTopic(PersistentTopic):
    """A topic with its source's messages and message ids, and subscriptions of its own.

    Only its source's broker would publish here. Clients may open producers, and each of their messages is refused.
    """

    takes_message_ids = True  # `publish` refuses each of them with an error of its own
    append_run = None

    def __init__(self, name: TopicName, stores: Context, policies: Policies, log: TopicLog) -> None:
        super().__init__(name, stores, policies, log)
        assert isinstance(log.ledger, ShadowLedger)
        assert log.ledger.source is not None
        self.source = TopicName.from_managed_ledger(log.ledger.source.name)
        self.listed_as = log.ledger.listed_as

    @property
    def schema_name(self) -> TopicName:
        return self.source

    def _feeding_brokers(self, policies_of: Callable[[TopicName], Policies]) -> int:
        return int(self.listed_as in policies_of(self.source).shadows)

    def publish(self, producer: Producer, *more: Any, **options: Any) -> None:
        raise NotAllowedError("Cannot send messages to a shadow topic")

    def terminate(self) -> Position:
        raise NotAllowedError("Terminate is not allowed on shadow topic.")


def is_shadow(properties: Mapping[str, str]) -> bool:
    return SHADOW_SOURCE in properties


def shadow_properties(name: TopicName, properties: Mapping[str, str], metadata: Metadata) -> Mapping[str, str]:
    """Return the properties that may name a source: the topic's own, or those of its partitioned topic."""
    if SHADOW_SOURCE in properties or not name.is_partition:
        return properties
    partitioned = metadata.partitioned.get(str(name.partitioned_name)) or {}
    return partitioned.get("properties") or {}


def source_of(name: TopicName, properties: Mapping[str, str], metadata: Metadata) -> TopicName | None:
    """Return the persistent source topic of a shadow topic, or None."""
    try:
        source = TopicName.parse(shadow_properties(name, properties, metadata)[SHADOW_SOURCE])
    except (KeyError, InvalidTopicName):
        return None
    if name.is_partition and not source.is_partition:
        source = source.partition(name.partition_index)
    return source if source.is_persistent else None
