"""Check consumers, new subscriptions and schemas that clients bring to a topic, as AbstractTopic and ServerCnx do."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pulsarium.broker.clock import Timeline
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
MANY = 1_000  # number of rate buckets above which full ones are removed
RESERVED = "pulsar.repl"  # replicatorPrefix, of the cursors of replicators
AUTO_CONSUME: Final = pb.Schema.Type.Value("AutoConsume")
RESERVED_NAME = "Subscription with reserved subscription name attempted"


def check_consumer(topic: Topic, subscription: str, type: int, *, read_compacted: bool) -> None:
    """Raise the error for a SUBSCRIBE whose name, type or readCompacted the topic does not accept."""
    if subscription.startswith(RESERVED):
        raise NamingError(RESERVED_NAME)
    if not topic.name.is_persistent:  # any type is accepted, and even an empty name
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
    """Raise `NotAllowedError` at maxSubscriptionsPerTopic, where readers count too.

    Raise `NamingError` for the name of one of the broker's own cursors, also over REST.
    """
    if 0 < topic.policies.max_subscriptions <= len(topic.subscriptions):
        raise NotAllowedError(f"Exceed the maximum number of subscriptions of the topic: {topic.name}")
    if name in OWN_CURSORS:
        raise NamingError(RESERVED_NAME)


class SubscribeRate:
    """Limit how often one consumer may subscribe (C-12). A consumer is a host, a consumer name and an id."""

    def __init__(self, clock: Timeline, rate: Rate) -> None:
        self._clock = clock
        self._rate = rate
        self._buckets: dict[tuple[str, str, int], TokenBucket] = {}

    def check(self, address: str, consumer_name: str, consumer_id: int) -> None:
        """Count a SUBSCRIBE, or raise `NotAllowedError` when it exceeds the rate."""
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
        """Remove full buckets, because a new bucket is full too."""
        if len(self._buckets) >= MANY:
            limit = self._rate.subscribes
            self._buckets = {each: bucket for each, bucket in self._buckets.items() if bucket.available() < limit}


# schemas


def of_producer(schemas: SchemaRegistry, topic: Topic, sent: pb.Schema | None) -> bytes:
    """Return the version of a producer's schema, registered if allowed, or b"" without a schema.

    Raise `SchemaError`.
    """
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
    """Return the stored version of a client's schema, registered if allowed. Raise `SchemaError`."""
    if policy.auto_update:
        return schemas.add(topic, schema, policy.strategy, now_ms)
    known = schemas.find(topic, schema)
    if known is None:
        raise IncompatibleSchemaError("Schema not found and schema auto updating is disabled.")
    return known


def check_schema(schemas: SchemaRegistry, topic: Topic, sent: pb.Schema) -> None:
    """Raise `SchemaError` unless a consumer's schema can read the topic's.

    An unused topic without a schema registers the consumer's.
    """
    if sent.type == AUTO_CONSUME:
        return
    if schemas.latest(topic.schema_name) is None and not _in_use(topic):
        with suppress(InvalidSchemaDataError):  # Pulsar continues without the schema
            of_producer(schemas, topic, sent)
        return
    schema = SchemaData.from_proto(sent)
    try:
        schemas.check_consumer(topic.schema_name, schema, topic.policies.schemas.strategy)
    except NoSchemaError:
        text = f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {schema.type}"
        raise IncompatibleSchemaError(text) from None


def _in_use(topic: Topic) -> bool:
    """Return whether a topic has messages, producers, or consumers that need a schema."""
    consumers = (each for subscription in topic.subscriptions.values() for each in subscription.consumers)
    return topic.has_messages or len(topic.producers) > 0 or any(not consumer.auto_schema for consumer in consumers)
