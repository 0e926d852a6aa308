"""Ask what a topic asks of a consumer that joins or makes a subscription, and of the schemas that clients bring
(AbstractTopic, ServerCnx)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pulsarium.broker.clock import Clock
from pulsarium.broker.model.compaction.record import COMPACTION_CURSOR
from pulsarium.broker.model.errors import NamingError, NotAllowedError
from pulsarium.broker.model.policy.policies import Rate, SchemaPolicies
from pulsarium.broker.model.rate.rates import TokenBucket
from pulsarium.broker.model.schema.data import (
    IncompatibleSchemaError,
    InvalidSchemaDataError,
    NoSchemaError,
    SchemaData,
)
from pulsarium.broker.model.schema.registry import NO_VERSION, SchemaRegistry, StoredSchema
from pulsarium.broker.model.topic.deduplication import DEDUPLICATION_CURSOR
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.base import Topic

SubType = pb.CommandSubscribe.SubType
IN_ORDER = (SubType.Exclusive, SubType.Failover)
OWN_CURSORS = (DEDUPLICATION_CURSOR, COMPACTION_CURSOR)
MANY = 1_000  # consumers that a rate is counted for, from which on it is worth a look who is gone
RESERVED = "pulsar.repl"  # replicatorPrefix: the cursors of replicators
AUTO_CONSUME: Final = pb.Schema.Type.Value("AutoConsume")
RESERVED_NAME = "Subscription with reserved subscription name attempted"


def check_consumer(topic: Topic, subscription: str, type: int, *, read_compacted: bool) -> None:
    """Raise what SUBSCRIBE is told that asks for something the topic does not have."""
    if subscription.startswith(RESERVED):
        raise NamingError(RESERVED_NAME)
    if not topic.name.is_persistent:  # any type and even no name will do
        if read_compacted:
            raise NotAllowedError("readCompacted only valid on persistent topics")
        return
    if read_compacted and type not in IN_ORDER:
        raise NotAllowedError("readCompacted only allowed on failover or exclusive subscriptions")
    if type == SubType.Key_Shared and not topic.stores.config.subscriptionKeySharedEnable:
        raise NotAllowedError("Key_Shared subscription is disabled by broker.")
    type_name = SubType.Name(type)
    if type_name not in topic.policies.subscription_types:
        raise NotAllowedError(f"Topic[{{{topic.name}}}] doesn't support {type_name} sub type!")
    if not subscription.strip():
        raise NamingError("Empty subscription name")


def check_new_subscription(topic: Topic, name: str) -> None:
    """Raise when a topic has all the subscriptions it may have (maxSubscriptionsPerTopic); those of readers count.

    So does the name of a cursor of the broker's own, also over REST.
    """
    if 0 < topic.policies.max_subscriptions <= len(topic.subscriptions):
        raise NotAllowedError(f"Exceed the maximum number of subscriptions of the topic: {topic.name}")
    if name in OWN_CURSORS:
        raise NamingError(RESERVED_NAME)


class SubscribeRate:
    """How often one consumer may subscribe (C-12): a host, a consumer name and an id together are one consumer."""

    def __init__(self, clock: Clock, rate: Rate) -> None:
        self._clock = clock
        self._rate = rate
        self._buckets: dict[tuple[str, str, int], TokenBucket] = {}

    def check(self, address: str, consumer_name: str, consumer_id: int) -> None:
        """Count a SUBSCRIBE, or raise what it is told when it comes too early."""
        rate = self._rate
        if rate.subscribes <= 0 or rate.period_seconds <= 0:
            return
        consumer = (address.partition(":")[0], consumer_name, consumer_id)
        bucket = self._buckets.get(consumer)
        if bucket is None:
            self._forget_idle()
            bucket = self._buckets[consumer] = TokenBucket(self._clock, rate.subscribes, rate.period_seconds)
        if bucket.available() <= 0:
            raise NotAllowedError("Subscribe limited by subscribe rate limit per consumer.")
        bucket.take(1)

    def _forget_idle(self) -> None:
        """A bucket that is full again is as good as a new one."""
        if len(self._buckets) >= MANY:
            limit = self._rate.subscribes
            self._buckets = {each: bucket for each, bucket in self._buckets.items() if bucket.available() < limit}


# schemas


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
    consumers = (each for subscription in topic.subscriptions.values() for each in subscription.consumers)
    return topic.has_messages or len(topic.producers) > 0 or any(not consumer.auto_schema for consumer in consumers)
