"""Reads the policies of a topic from where they are set: topic over namespace over broker.conf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.ledger.retention import Retention
from pulsarium.broker.model.policy.policies import (
    AGE,
    STORAGE,
    AutoCreation,
    DelayedDelivery,
    DispatchRate,
    Inactivity,
    Policies,
    PublishRate,
    Quota,
    Rate,
    SchemaPolicies,
)
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

Json = Mapping[str, Any]

NOTHING: Json = MappingProxyType({})
SUBSCRIPTION_TYPES = "subscription_types_enabled"  # where [] is none set
STRATEGY = "schema_compatibility_strategy"
OLDER_STRATEGY = "schema_auto_update_compatibility_strategy"  # which says the same in other words
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


def resolve(config: Config, namespace: Json, topic: Json = NOTHING) -> Policies:
    """The policies of a topic. `namespace` and `topic` hold only what was set, by the names that namespaces use."""

    def at(name: str, default: Any) -> Any:
        found = topic.get(name)
        if found is None:
            found = namespace.get(name)
        return default if found is None else found

    retention = at("retention_policies", {})
    delayed = at("delayed_delivery_policies", {})
    inactive = at("inactive_topic_policies", {})
    subscribes = at("clusterSubscribeRate", {}).get(config.clusterName, {})
    creates = at("autoSubscriptionCreationOverride", {}).get("allowAutoSubscriptionCreation")
    return Policies(
        message_ttl_seconds=at("message_ttl_in_seconds", config.ttlDurationDefaultInSeconds),
        retention=Retention(
            minutes=retention.get("retentionTimeInMinutes", config.defaultRetentionTimeInMinutes),
            megabytes=retention.get("retentionSizeInMB", config.defaultRetentionSizeInMB),
        ),
        backlog_quotas=_quotas(config, namespace.get("backlog_quota_map") or {}, topic.get("backlog_quota_map") or {}),
        deduplication=at("deduplicationEnabled", config.brokerDeduplicationEnabled),
        deduplication_snapshot_seconds=at(
            "deduplicationSnapshotIntervalSeconds", config.brokerDeduplicationSnapshotIntervalSeconds
        ),
        delayed_delivery=DelayedDelivery(
            active=delayed.get("active", config.delayedDeliveryEnabled),
            tick_ms=delayed.get("tickTime", config.delayedDeliveryTickTimeMillis),
            max_delay_ms=delayed.get("maxDeliveryDelayInMillis", config.delayedDeliveryMaxDelayInMillis),
        ),
        inactivity=Inactivity(
            delete=inactive.get("deleteWhileInactive", config.brokerDeleteInactiveTopicsEnabled),
            max_seconds=inactive.get("maxInactiveDurationSeconds", config.max_inactive_seconds),
            mode=inactive.get("inactiveTopicDeleteMode", config.brokerDeleteInactiveTopicsMode),
        ),
        max_unacked_per_consumer=at("max_unacked_messages_per_consumer", config.maxUnackedMessagesPerConsumer),
        max_unacked_per_subscription=at(
            "max_unacked_messages_per_subscription", config.maxUnackedMessagesPerSubscription
        ),
        max_producers=at("max_producers_per_topic", config.maxProducersPerTopic),
        max_consumers=at("max_consumers_per_topic", config.maxConsumersPerTopic),
        max_consumers_per_subscription=at("max_consumers_per_subscription", config.maxConsumersPerSubscription),
        max_subscriptions=at("max_subscriptions_per_topic", config.maxSubscriptionsPerTopic),
        subscription_expiration_minutes=at(
            "subscription_expiration_time_minutes", config.subscriptionExpirationTimeMinutes
        ),
        compaction_threshold=at("compaction_threshold", config.brokerServiceCompactionThresholdInBytes),
        max_message_size=at("max_message_size", 0),
        encryption_required=bool(namespace.get("encryption_required")),
        auto_subscription=config.allowAutoSubscriptionCreation if creates is None else creates,
        publish_rate=_publish_rate(config, topic, namespace),
        resource_group=namespace.get("resource_group_name", ""),
        dispatch_rate=_dispatch_rate(
            _set_rate(config, "topicDispatchRate", topic, namespace, older="clusterDispatchRate"),
            config.dispatchThrottlingRatePerTopicInMsg,
            config.dispatchThrottlingRatePerTopicInByte,
        ),
        subscription_dispatch_rate=_dispatch_rate(
            _set_rate(config, "subscriptionDispatchRate", topic, namespace),
            config.dispatchThrottlingRatePerSubscriptionInMsg,
            config.dispatchThrottlingRatePerSubscriptionInByte,
        ),
        subscription_dispatch_rates=_rates_of_subscriptions(topic.get("subscriptionPolicies") or {}),
        subscribe_rate=Rate(
            subscribes.get("subscribeThrottlingRatePerConsumer", config.subscribeThrottlingRatePerConsumer),
            subscribes.get("ratePeriodInSecond", config.subscribeRatePeriodPerConsumerInSecond),
        ),
        subscription_types=frozenset(
            topic.get(SUBSCRIPTION_TYPES) or namespace.get(SUBSCRIPTION_TYPES) or config.subscriptionTypesEnabled
        ),
        schemas=SchemaPolicies(
            strategy=_strategy(topic.get(STRATEGY), namespace, config.schemaCompatibilityStrategy),
            auto_update=namespace.get("is_allow_auto_update_schema", config.isAllowAutoUpdateSchemaEnabled),
            validation_enforced=config.isSchemaValidationEnforced or at("schema_validation_enforced", False),
        ),
        shadows=frozenset(_full_names(topic.get("shadowTopics") or ())),
    )


def _full_names(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        with suppress(InvalidTopicName):  # whoever writes to the topic of change events may say anything
            yield str(TopicName.parse(text))


def _limits(rate: Json) -> bool:
    """Whether a rate limits anything; one that does not counts as none, and leaves it to the next level."""
    return any(value > 0 for name, value in rate.items() if name.endswith(("InMsg", "InByte")))


def _set_rate(config: Config, name: str, *levels: Json, older: str = "") -> Json | None:
    """The first rate of this cluster that is set, and limits anything."""
    for level in levels:
        for each in (name, older):
            rate: Json | None = (level.get(each) or NOTHING).get(config.clusterName)
            if rate is not None and _limits(rate):
                return rate
    return None


def _publish_rate(config: Config, *levels: Json) -> PublishRate:
    rate = _set_rate(config, "publishMaxMessageRate", *levels)
    if rate is None:
        return PublishRate(config.maxPublishRatePerTopicInMessages, config.maxPublishRatePerTopicInBytes)
    return PublishRate(rate.get("publishThrottlingRateInMsg", 0), rate.get("publishThrottlingRateInByte", 0))


def _dispatch_rate(rate: Json | None, messages: int = 0, size: int = 0) -> DispatchRate:
    """One that is set, or the broker's own."""
    if rate is None:
        return DispatchRate(messages, size)
    return DispatchRate(
        rate.get("dispatchThrottlingRateInMsg", 0),
        rate.get("dispatchThrottlingRateInByte", 0),
        rate.get("ratePeriodInSecond", 1),
        rate.get("relativeToPublishRate", False),
    )


def _rates_of_subscriptions(policies: Json) -> Mapping[str, DispatchRate]:
    rates = ((name, its.get("dispatchRate")) for name, its in policies.items())
    return MappingProxyType({name: _dispatch_rate(rate) for name, rate in rates if rate is not None and _limits(rate)})


def of_system_topic(policies: Policies, config: Config) -> Policies:
    """What holds for a system topic: it is kept while its namespace is, compacted once anything is new (any byte is
    enough), and written by brokers, who cannot encrypt."""
    return replace(
        policies,
        message_ttl_seconds=0,
        backlog_quotas=MappingProxyType({}),
        inactivity=replace(policies.inactivity, delete=False),
        compaction_threshold=policies.compaction_threshold or 1,
        encryption_required=False,
        subscribe_rate=Rate(),
        resource_group="",
        schemas=replace(policies.schemas, strategy=config.systemTopicSchemaCompatibilityStrategy, auto_update=True),
    )


def _strategy(of_topic: str | None, namespace: Json, default: str) -> str:
    """What schemas must fit. UNDEFINED, and nothing, leave it to the next level."""
    of_namespace = (namespace.get(STRATEGY), OLDER_STRATEGIES.get(namespace.get(OLDER_STRATEGY, "")))
    found = (each for each in (of_topic, *of_namespace, default) if each not in (None, UNDEFINED))
    return next(found, "FULL")


def auto_creation(config: Config, namespace: Json) -> AutoCreation:
    """What clients may make in a namespace: its own word, as a whole, over broker.conf's."""
    override = namespace.get("autoTopicCreationOverride")
    if override is None:
        partitioned = config.allowAutoTopicCreationType == "partitioned"
        return AutoCreation(config.allowAutoTopicCreation, config.defaultNumPartitions if partitioned else 0)
    partitions = override.get("defaultNumPartitions", 0) if override.get("topicType") == "partitioned" else 0
    return AutoCreation(override.get("allowAutoTopicCreation", False), partitions)


def most_topics(config: Config, namespace: Json) -> int:
    """Return how many persistent topics a namespace may have, partitions counted; 0: any number."""
    own: int | None = namespace.get("max_topics_per_namespace")
    return config.maxTopicsPerNamespace if own is None else own


def _quotas(config: Config, namespace: Json, topic: Json) -> Mapping[str, Quota]:
    return MappingProxyType({kind: _quota(config, topic.get(kind) or namespace.get(kind)) for kind in (STORAGE, AGE)})


def _quota(config: Config, kept: Json | None) -> Quota:
    default = config.backlogQuotaDefaultRetentionPolicy
    if kept is None:
        return Quota(config.default_quota_bytes, config.backlogQuotaDefaultLimitSecond, default)
    return Quota(kept.get("limitSize", -1), kept.get("limitTime", -1), kept.get("policy", default))
