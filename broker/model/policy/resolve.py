"""Reads the policies of a topic from where they are set: topic over namespace over broker.conf."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.policy.policies import (
    AGE,
    STORAGE,
    AutoCreation,
    DelayedDelivery,
    Inactivity,
    Policies,
    Quota,
    Rate,
    Retention,
)

Json = Mapping[str, Any]

NOTHING: Json = MappingProxyType({})
SUBSCRIPTION_TYPES = "subscription_types_enabled"  # where [] is none set


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
        compaction_threshold=at("compaction_threshold", config.brokerServiceCompactionThresholdInBytes),
        max_message_size=at("max_message_size", 0),
        encryption_required=bool(namespace.get("encryption_required")),
        auto_subscription=config.allowAutoSubscriptionCreation if creates is None else creates,
        subscribe_rate=Rate(
            subscribes.get("subscribeThrottlingRatePerConsumer", config.subscribeThrottlingRatePerConsumer),
            subscribes.get("ratePeriodInSecond", config.subscribeRatePeriodPerConsumerInSecond),
        ),
        subscription_types=frozenset(
            topic.get(SUBSCRIPTION_TYPES) or namespace.get(SUBSCRIPTION_TYPES) or config.subscriptionTypesEnabled
        ),
    )


def auto_creation(config: Config, namespace: Json) -> AutoCreation:
    """What clients may make in a namespace: its own word, as a whole, over broker.conf's."""
    override = namespace.get("autoTopicCreationOverride")
    if override is None:
        partitioned = config.allowAutoTopicCreationType == "partitioned"
        return AutoCreation(config.allowAutoTopicCreation, config.defaultNumPartitions if partitioned else 0)
    partitions = override.get("defaultNumPartitions", 0) if override.get("topicType") == "partitioned" else 0
    return AutoCreation(override.get("allowAutoTopicCreation", False), partitions)


def _quotas(config: Config, namespace: Json, topic: Json) -> Mapping[str, Quota]:
    return MappingProxyType({kind: _quota(config, topic.get(kind) or namespace.get(kind)) for kind in (STORAGE, AGE)})


def _quota(config: Config, kept: Json | None) -> Quota:
    default = config.backlogQuotaDefaultRetentionPolicy
    if kept is None:
        return Quota(config.default_quota_bytes, config.backlogQuotaDefaultLimitSecond, default)
    return Quota(kept.get("limitSize", -1), kept.get("limitTime", -1), kept.get("policy", default))
