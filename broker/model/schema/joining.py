"""What topics ask of the schemas of those who produce and subscribe (AbstractTopic, ServerCnx)."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from pulsarium.broker.model.policy.policies import SchemaPolicies
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.schema.errors import IncompatibleSchemaError, InvalidSchemaDataError, NoSchemaError
from pulsarium.broker.model.schema.registry import NO_VERSION, SchemaRegistry, StoredSchema
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

AUTO_CONSUME: Final = pb.Schema.Type.Value("AutoConsume")


def of_producer(schemas: SchemaRegistry, topic: Topic, sent: pb.Schema | None) -> bytes:
    """The version of a producer's schema, made where that is allowed; empty without one. Raises SchemaError."""
    policy = topic.policies.schemas
    if sent is None:
        if policy.validation_enforced and schemas.latest(topic.schema_name) is not None:
            raise IncompatibleSchemaError(
                "Producers cannot connect or send message without a schema to topics with a schema"
                "when SchemaValidationEnforced is enabled"
            )
        return NO_VERSION
    return register(schemas, topic.schema_name, policy, SchemaData.from_proto(sent), topic.now_ms()).version_bytes


def register(
    schemas: SchemaRegistry, topic: TopicName, policy: SchemaPolicies, schema: SchemaData, now_ms: int
) -> StoredSchema:
    """The version of a schema that a client brings. Raises SchemaError."""
    if policy.auto_update:
        return schemas.add(topic, schema, policy.strategy, now_ms)
    known = schemas.find(topic, schema)
    if known is None:
        raise IncompatibleSchemaError("Schema not found and schema auto updating is disabled.")
    return known


def check_schema(schemas: SchemaRegistry, topic: Topic, sent: pb.Schema) -> None:
    """Raise SchemaError unless a consumer's schema can read the topic's; a topic not in use takes it as its own."""
    if sent.type == AUTO_CONSUME:
        return
    if schemas.latest(topic.schema_name) is None and not _in_use(topic):
        with suppress(InvalidSchemaDataError):  # Pulsar goes on without it
            of_producer(schemas, topic, sent)
        return
    schema = SchemaData.from_proto(sent)
    try:
        schemas.check_consumer(topic.schema_name, schema, topic.policies.schemas.strategy)
    except NoSchemaError:
        text = f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {schema.type}"
        raise IncompatibleSchemaError(text) from None


def _in_use(topic: Topic) -> bool:
    """Whether a topic without a schema has producers, consumers that would see any message, or messages."""
    has_messages = topic.ledger.size if isinstance(topic, PersistentTopic) else topic.messages_in
    consumers = (each for subscription in topic.subscriptions.values() for each in subscription.consumers)
    return bool(has_messages or len(topic.producers)) or any(not consumer.auto_schema for consumer in consumers)
