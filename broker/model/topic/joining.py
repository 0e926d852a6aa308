"""Check consumers, new subscriptions and schemas that clients bring to a topic, as AbstractTopic and ServerCnx do."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from pulsarium.broker.model.errors import NamingError, NotAllowedError
from pulsarium.broker.model.policy.policies import SchemaPolicies
from pulsarium.broker.model.schema.data import (
    IncompatibleSchemaError,
    InvalidSchemaDataError,
    NoSchemaError,
    SchemaData,
    SchemaError,
)
from pulsarium.broker.model.schema.registry import NO_VERSION, SchemaRegistry, StoredSchema
from pulsarium.broker.model.topic.base import Topic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.special_names import COMPACTION_CURSOR, DEDUPLICATION_CURSOR, REPLICATORS, is_change_events
from pulsarium.proto.topic_name import TopicName

SubType = pb.CommandSubscribe.SubType
IN_ORDER = (SubType.Exclusive, SubType.Failover)
OWN_CURSORS = (DEDUPLICATION_CURSOR, COMPACTION_CURSOR)
RESERVED_NAME = "Subscription with reserved subscription name attempted"


def check_consumer(topic: Topic, subscription: str, type: int, *, read_compacted: bool) -> None:
    """Raise the error for a SUBSCRIBE whose name, type or readCompacted the topic does not accept."""
    if subscription.startswith(REPLICATORS):
        raise NamingError(RESERVED_NAME)
    if not topic.name.is_persistent:  # any type is accepted, and even an empty name
        if read_compacted:
            raise NotAllowedError("readCompacted only valid on persistent topics")
        return
    if read_compacted and type not in IN_ORDER:
        raise NotAllowedError("readCompacted only allowed on failover or exclusive subscriptions")
    if type == SubType.Key_Shared and not topic.stores.config.subscriptionKeySharedEnable:
        raise NotAllowedError("Key_Shared subscription is disabled by broker.", limit="subscriptionKeySharedEnable")
    type_name = SubType.Name(type)
    if type_name not in topic.policies.subscription_types and not is_change_events(topic.name.partitioned_name):
        allowed = ", ".join(sorted(topic.policies.subscription_types))
        text = f"Topic[{{{topic.name}}}] doesn't support {type_name} sub type!"
        raise NotAllowedError(text, limit="subscriptionTypesEnabled", allowed=allowed)
    if not subscription.strip():
        raise NamingError("Empty subscription name")


def check_new_subscription(topic: Topic, name: str) -> None:
    """Raise `NotAllowedError` at maxSubscriptionsPerTopic, where readers count too.

    Raise `NamingError` for the name of one of the broker's own cursors, also over REST.
    """
    if 0 < topic.policies.max_subscriptions <= len(topic.subscriptions):
        there = ", ".join(islice(topic.subscriptions, 5))
        most = topic.policies.max_subscriptions
        text = f"Exceed the maximum number of subscriptions of the topic: {topic.name}"
        raise NotAllowedError(text, limit="maxSubscriptionsPerTopic", allowed=most, held_by=there)
    if name in OWN_CURSORS:
        raise NamingError(RESERVED_NAME)


# schemas


def of_producer(schemas: SchemaRegistry, topic: Topic, schema: SchemaData | None) -> bytes:
    """Return the version of a producer's schema, registered if allowed, or b"" without a schema.

    Raise `SchemaError`.
    """
    policy = topic.policies.schemas
    if schema is None:
        if policy.validation_enforced and schemas.latest(topic.schema_name) is not None:
            raise IncompatibleSchemaError(
                "Producers cannot connect or send message without a schema to topics with a schema"
                "when SchemaValidationEnforced is enabled"
            )
        return NO_VERSION
    return register(schemas, topic.schema_name, policy, schema, topic.now_ms()).version_bytes


def register(
    schemas: SchemaRegistry, topic: TopicName, policy: SchemaPolicies, schema: SchemaData, now_ms: int
) -> StoredSchema:
    """Return the stored version of a client's schema, registered if allowed. Raise `SchemaError`."""
    if policy.auto_update:
        return schemas.add(topic, schema, policy.strategy, now_ms)
    known = schemas.find(topic, schema)
    if known is None:
        raise IncompatibleSchemaError("Schema not found and schema auto updating is disabled.")
    return known


def check_schema(schemas: SchemaRegistry, topic: Topic, schema: SchemaData) -> None:
    """Raise `SchemaError` unless a consumer's schema can read the topic's.

    An unused topic without a schema registers the consumer's.
    """
    if schema.type == "AUTO_CONSUME":
        return
    if schemas.latest(topic.schema_name) is None and not _in_use(topic):
        with suppress(InvalidSchemaDataError):  # Pulsar continues without the schema
            of_producer(schemas, topic, schema)
        return
    try:
        schemas.check_consumer(topic.schema_name, schema, topic.policies.schemas.strategy)
    except NoSchemaError:
        text = f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {schema.type}"
        raise IncompatibleSchemaError(text) from None


def judge_alone(schemas: SchemaRegistry, topic: TopicName, policy: SchemaPolicies, schema: SchemaData) -> None:
    """Do with a copy of the registry as a producer or consumer with this schema does. Raise `SchemaError`."""
    if schemas.latest(topic) is not None:
        with suppress(SchemaError):
            schemas.check_consumer(topic, schema, policy.strategy)
    register(schemas, topic, policy, schema, 0)


def _in_use(topic: Topic) -> bool:
    """Return whether a topic has messages, producers, or consumers that need a schema."""
    consumers = (each for subscription in topic.subscriptions.values() for each in subscription.consumers)
    return topic.has_messages or len(topic.producers) > 0 or any(not consumer.auto_schema for consumer in consumers)
