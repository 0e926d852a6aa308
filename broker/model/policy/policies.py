"""Resolve the policies of a topic into one object: topic over namespace over broker.conf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.ledger.ledger import NO_RETENTION, Retention
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.special_names import has_system_name, is_change_events, is_dead_letter, is_system_topic
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import Policy

STORAGE: Final = "destination_storage"  # the kinds of backlog quota, as REST names them
AGE: Final = "message_age"

UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class Quota:
    """A backlog quota: a limit, and the policy at the limit. -1 is no limit."""

    limit_size: int = UNLIMITED  # in bytes, for destination_storage
    limit_seconds: int = UNLIMITED  # for message_age
    policy: str = "producer_request_hold"  # or producer_exception, consumer_backlog_eviction


@dataclass(frozen=True, slots=True)
class DelayedDelivery:
    """Delayed delivery: whether deliver_at_time takes effect, its precision, and the longest delay, or 0."""

    active: bool = True
    tick_ms: int = 1000
    max_delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Inactivity:
    """Deletion of inactive topics. `mode` is one of brokerDeleteInactiveTopicsMode."""

    delete: bool = False
    max_seconds: int = 60
    mode: str = "delete_when_no_subscriptions"


@dataclass(frozen=True, slots=True)
class ConsumerSubscribeRate:
    """The subscribe rate of one consumer. 0 or less is no limit."""

    subscribes: int = 0
    period_seconds: int = 30


@dataclass(frozen=True, slots=True)
class PublishRate:
    """Publish rate limits a second. 0 or less is no limit."""

    messages: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class DispatchRate:
    """Dispatch rate limits in a period. 0 or less is no limit.

    With `relative`, the limit is added to the current publish rate.
    """

    messages: int = 0
    bytes: int = 0
    period_seconds: int = 1
    relative: bool = False


@dataclass(frozen=True, slots=True)
class SchemaPolicies:
    """Schema policies of a topic.

    `strategy` is the compatibility strategy. `auto_update` lets producers register schemas. `validation_enforced`
    refuses producers without a schema, if the topic has one.
    """

    strategy: str = "FULL"
    auto_update: bool = True
    validation_enforced: bool = False


@dataclass(frozen=True, slots=True)
class AutoCreation:
    """Auto-creation of topics by clients. 0 `partitions` creates topics without partitions."""

    allowed: bool
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies that take effect for one topic. A limit of 0 is no limit."""

    message_ttl_seconds: int = 0
    retention: Retention = NO_RETENTION
    backlog_quotas: Mapping[str, Quota] = field(default_factory=lambda: MappingProxyType({}))  # by kind
    deduplication: bool = False
    deduplication_snapshot_seconds: int = 120
    delayed_delivery: DelayedDelivery = DelayedDelivery()
    inactivity: Inactivity = Inactivity()
    max_unacked_per_consumer: int = 50_000
    max_unacked_per_subscription: int = 200_000
    max_producers: int = 0
    max_consumers: int = 0
    max_consumers_per_subscription: int = 0
    max_subscriptions: int = 0
    subscription_expiration_minutes: int = 0
    compaction_threshold: int = 0  # bytes
    max_message_size: int = 0  # metadata and payload together
    encryption_required: bool = False
    auto_subscription: bool = True
    publish_rate: PublishRate = PublishRate()
    resource_group: str = ""
    dispatch_rate: DispatchRate = DispatchRate()
    subscription_dispatch_rate: DispatchRate = DispatchRate()  # of subscriptions without a rate of their own
    subscription_dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=lambda: MappingProxyType({}))
    subscribe_rate: ConsumerSubscribeRate = ConsumerSubscribeRate()
    subscription_types: frozenset[str] = frozenset()  # the types that consumers may subscribe with
    schemas: SchemaPolicies = SchemaPolicies()
    shadows: frozenset[str] = frozenset()  # shadow topics that get new messages

    def dispatch_rate_of(self, subscription: str) -> DispatchRate:
        """Return the dispatch rate of a subscription."""
        return self.subscription_dispatch_rates.get(subscription, self.subscription_dispatch_rate)


Json = Mapping[str, Any]

NOTHING: Json = MappingProxyType({})
STRATEGY = rows.SCHEMA_STRATEGY.kept
OLDER_STRATEGY = rows.OLDER_SCHEMA_STRATEGY.kept  # Pulsar's older name for the same policy
OLDER_STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        "AutoUpdateDisabled": "ALWAYS_INCOMPATIBLE",
        "Backward": "BACKWARD",
        "Forward": "FORWARD",
        "Full": "FULL",
        "AlwaysCompatible": "ALWAYS_COMPATIBLE",
        "BackwardTransitive": "BACKWARD_TRANSITIVE",
        "ForwardTransitive": "FORWARD_TRANSITIVE",
        "FullTransitive": "FULL_TRANSITIVE",
    }
)
UNDEFINED = "UNDEFINED"
CLUSTER_DISPATCH_RATE = "clusterDispatchRate"  # an older form of the dispatch rate
NOT_FOR_SYSTEM_TOPICS = (rows.PUBLISH_RATE.kept, rows.DISPATCH_RATE.kept, CLUSTER_DISPATCH_RATE)


def of_broker(row: Policy[Any], config: Config) -> Any:
    """Return the value of a policy in broker.conf, or None."""
    conf = row.conf
    if isinstance(conf, str):
        return getattr(config, conf) if conf else row.default
    own = {field: getattr(config, key) for field, key in conf.items()}
    return own if row.default is None else {**row.default, **own}


def in_force(row: Policy[Any], config: Config, *levels: Json) -> Any:
    """Return the first value that is set, or the broker's. The broker's also supplies missing fields."""
    found = None
    for level in levels:
        found = level.get(row.kept)
        if found is not None and row.per_cluster:
            found = found.get(config.clusterName)
        if found is not None:
            break
    if isinstance(row.conf, str):
        return of_broker(row, config) if found is None else found
    return {**of_broker(row, config), **(found or {})}


def resolve(config: Config, namespace: Json, topic: Json = NOTHING) -> Policies:
    """Resolve the policies of a topic.

    `namespace` and `topic` have only policies that were set, by the names that namespaces use.
    """

    def at(row: Policy[Any]) -> Any:
        return in_force(row, config, topic, namespace)

    retention, delayed, inactive = at(rows.RETENTION), at(rows.DELAYED_DELIVERY), at(rows.INACTIVE_TOPICS)
    subscribes = at(rows.SUBSCRIBE_RATE)
    quotas = rows.BACKLOG_QUOTAS.kept
    types = rows.SUBSCRIPTION_TYPES.kept  # [] counts as not set
    return Policies(
        message_ttl_seconds=at(rows.MESSAGE_TTL),
        retention=Retention(retention["retentionTimeInMinutes"], retention["retentionSizeInMB"]),
        backlog_quotas=_quotas(config, namespace.get(quotas) or {}, topic.get(quotas) or {}),
        deduplication=at(rows.DEDUPLICATION),
        deduplication_snapshot_seconds=at(rows.DEDUPLICATION_SNAPSHOTS),
        delayed_delivery=DelayedDelivery(delayed["active"], delayed["tickTime"], delayed["maxDeliveryDelayInMillis"]),
        inactivity=Inactivity(
            inactive["deleteWhileInactive"],
            inactive["maxInactiveDurationSeconds"],
            inactive["inactiveTopicDeleteMode"],
        ),
        max_unacked_per_consumer=at(rows.MAX_UNACKED_PER_CONSUMER),
        max_unacked_per_subscription=at(rows.MAX_UNACKED_PER_SUBSCRIPTION),
        max_producers=at(rows.MAX_PRODUCERS),
        max_consumers=at(rows.MAX_CONSUMERS),
        max_consumers_per_subscription=at(rows.MAX_CONSUMERS_PER_SUBSCRIPTION),
        max_subscriptions=at(rows.MAX_SUBSCRIPTIONS),
        subscription_expiration_minutes=at(rows.SUBSCRIPTION_EXPIRATION),
        compaction_threshold=at(rows.COMPACTION_THRESHOLD),
        max_message_size=at(rows.MAX_MESSAGE_SIZE),
        encryption_required=bool(namespace.get(rows.ENCRYPTION_REQUIRED.kept)),
        auto_subscription=at(rows.AUTO_SUBSCRIPTION_CREATION)["allowAutoSubscriptionCreation"],
        publish_rate=_publish_rate(config, topic, namespace),
        resource_group=namespace.get("resource_group_name", ""),
        dispatch_rate=_dispatch_rate(
            _set_rate(config, rows.DISPATCH_RATE.kept, topic, namespace, older=CLUSTER_DISPATCH_RATE)
            or of_broker(rows.DISPATCH_RATE, config)
        ),
        subscription_dispatch_rate=_dispatch_rate(
            _set_rate(config, rows.SUBSCRIPTION_DISPATCH_RATE.kept, topic, namespace)
            or of_broker(rows.SUBSCRIPTION_DISPATCH_RATE, config)
        ),
        subscription_dispatch_rates=_rates_of_subscriptions(topic.get("subscriptionPolicies") or {}),
        subscribe_rate=ConsumerSubscribeRate(
            subscribes["subscribeThrottlingRatePerConsumer"], subscribes["ratePeriodInSecond"]
        ),
        subscription_types=frozenset(topic.get(types) or namespace.get(types) or config.subscriptionTypesEnabled),
        schemas=SchemaPolicies(
            strategy=_strategy(topic.get(STRATEGY), namespace, config.schemaCompatibilityStrategy),
            auto_update=namespace.get(rows.SCHEMA_AUTO_UPDATE.kept, config.isAllowAutoUpdateSchemaEnabled),
            validation_enforced=config.isSchemaValidationEnforced or at(rows.SCHEMA_VALIDATION),
        ),
        shadows=frozenset(_full_names(topic.get(rows.SHADOW_TOPICS.kept) or ())),
    )


def _full_names(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        with suppress(InvalidTopicName):  # clients that publish change events may send any names
            yield str(TopicName.parse(text))


def _limits(rate: Json) -> bool:
    """Return whether a rate limits anything. A rate without a limit is ignored, and the next level decides."""
    return any(value > 0 for name, value in rate.items() if name.endswith(("InMsg", "InByte")))


def _set_rate(config: Config, name: str, *levels: Json, older: str = "") -> Json | None:
    """Return the first rate of this cluster that is set and limits anything, or None."""
    for level in levels:
        for each in (name, older):
            rate: Json | None = (level.get(each) or NOTHING).get(config.clusterName)
            if rate is not None and _limits(rate):
                return rate
    return None


def _publish_rate(config: Config, *levels: Json) -> PublishRate:
    rate = _set_rate(config, rows.PUBLISH_RATE.kept, *levels)
    if rate is None:
        return PublishRate(config.maxPublishRatePerTopicInMessages, config.maxPublishRatePerTopicInBytes)
    return PublishRate(rate.get("publishThrottlingRateInMsg", 0), rate.get("publishThrottlingRateInByte", 0))


def _dispatch_rate(rate: Json) -> DispatchRate:
    return DispatchRate(
        rate.get("dispatchThrottlingRateInMsg", 0),
        rate.get("dispatchThrottlingRateInByte", 0),
        rate.get("ratePeriodInSecond", 1),
        rate.get("relativeToPublishRate", False),
    )


def _rates_of_subscriptions(policies: Json) -> Mapping[str, DispatchRate]:
    rates = ((name, its.get("dispatchRate")) for name, its in policies.items())
    return MappingProxyType({name: _dispatch_rate(rate) for name, rate in rates if rate is not None and _limits(rate)})


def resolve_system_topic(name: TopicName, config: Config, namespace: Json, topic: Json = NOTHING) -> Policies:
    """Resolve the policies of a system topic.

    It stays as long as its namespace, and is compacted once it has any new byte. It need not be encrypted, because
    brokers publish there and cannot encrypt. Limits of clients, and rates of its namespace, do not apply. What is
    consumed of a topic with a system name is retained only by the topic's own policy.
    """
    left = {key: value for key, value in namespace.items() if key not in NOT_FOR_SYSTEM_TOPICS}
    policies = resolve(config, left, topic)
    keeps = rows.RETENTION.kept in topic or not has_system_name(name)
    return replace(
        policies,
        retention=policies.retention if keeps else NO_RETENTION,
        deduplication=False,
        max_producers=0,
        max_consumers=0,
        max_consumers_per_subscription=0,
        max_subscriptions=0,
        message_ttl_seconds=0,
        backlog_quotas=MappingProxyType({}),
        inactivity=replace(policies.inactivity, delete=False),
        compaction_threshold=policies.compaction_threshold or 1,
        encryption_required=False,
        subscribe_rate=ConsumerSubscribeRate(),
        resource_group="",
        schemas=replace(policies.schemas, strategy=config.systemTopicSchemaCompatibilityStrategy, auto_update=True),
    )


def _strategy(of_topic: str | None, namespace: Json, default: str) -> str:
    """Return the schema compatibility strategy. UNDEFINED or no value leaves it to the next level."""
    of_namespace = (namespace.get(STRATEGY), OLDER_STRATEGIES.get(namespace.get(OLDER_STRATEGY, "")))
    found = (each for each in (of_topic, *of_namespace, default) if each not in (None, UNDEFINED))
    return next(found, "FULL")


def auto_creation(config: Config, namespace: Json) -> AutoCreation:
    """Return the auto-creation policy of a namespace. An override of the namespace replaces broker.conf as a whole."""
    override = namespace.get(rows.AUTO_TOPIC_CREATION.kept)
    if override is None:
        partitioned = config.allowAutoTopicCreationType == "partitioned"
        return AutoCreation(config.allowAutoTopicCreation, config.defaultNumPartitions if partitioned else 0)
    partitions = override.get("defaultNumPartitions", 0) if override.get("topicType") == "partitioned" else 0
    return AutoCreation(override.get("allowAutoTopicCreation", False), partitions)


def auto_creation_of(name: TopicName, config: Config, namespace: Json) -> AutoCreation:
    """Return the auto-creation policy of a topic, which has exceptions by name.

    System topics are always created. Topics for dead letters never have partitions, as is true here of
    `__change_events`, where the broker itself publishes.
    """
    policy = auto_creation(config, namespace)
    if config.systemTopicEnabled and is_system_topic(name):
        policy = replace(policy, allowed=True)
    return replace(policy, partitions=0) if is_dead_letter(name) or is_change_events(name) else policy


def most_topics(config: Config, namespace: Json) -> int:
    """Return how many persistent topics a namespace may have, including partitions. 0 is no limit."""
    found: int = in_force(rows.MAX_TOPICS, config, namespace)
    return found


def _quotas(config: Config, namespace: Json, topic: Json) -> Mapping[str, Quota]:
    return MappingProxyType({kind: _quota(config, topic.get(kind) or namespace.get(kind)) for kind in (STORAGE, AGE)})


def _quota(config: Config, kept: Json | None) -> Quota:
    default = config.backlogQuotaDefaultRetentionPolicy
    if kept is None:
        return Quota(config.default_quota_bytes, config.backlogQuotaDefaultLimitSecond, default)
    return Quota(kept.get("limitSize", -1), kept.get("limitTime", -1), kept.get("policy", default))
