"""Reads the policies of a topic from where they are set: topic over namespace over broker.conf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.ledger.ledger import Retention
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
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import Policy

Json = Mapping[str, Any]

NOTHING: Json = MappingProxyType({})
STRATEGY = rows.SCHEMA_STRATEGY.kept
OLDER_STRATEGY = rows.OLDER_SCHEMA_STRATEGY.kept  # which says the same in other words
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


def of_broker(row: Policy[Any], config: Config) -> Any:
    """Return what broker.conf says, None for nothing."""
    conf = row.conf
    if isinstance(conf, str):
        return getattr(config, conf) if conf else row.default
    own = {field: getattr(config, key) for field, key in conf.items()}
    return own if row.default is None else {**row.default, **own}


def in_force(row: Policy[Any], config: Config, *levels: Json) -> Any:
    """Return the first value that is set, or the broker's, which also says what fields of the first do not."""
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
    """Return the policies of a topic.

    `namespace` and `topic` hold only what was set, by the names that namespaces use.
    """

    def at(row: Policy[Any]) -> Any:
        return in_force(row, config, topic, namespace)

    retention, delayed, inactive = at(rows.RETENTION), at(rows.DELAYED_DELIVERY), at(rows.INACTIVE_TOPICS)
    subscribes = at(rows.SUBSCRIBE_RATE)
    quotas = rows.BACKLOG_QUOTAS.kept
    types = rows.SUBSCRIPTION_TYPES.kept  # where [] is none set
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
            _set_rate(config, rows.DISPATCH_RATE.kept, topic, namespace, older="clusterDispatchRate")
            or of_broker(rows.DISPATCH_RATE, config)
        ),
        subscription_dispatch_rate=_dispatch_rate(
            _set_rate(config, rows.SUBSCRIPTION_DISPATCH_RATE.kept, topic, namespace)
            or of_broker(rows.SUBSCRIPTION_DISPATCH_RATE, config)
        ),
        subscription_dispatch_rates=_rates_of_subscriptions(topic.get("subscriptionPolicies") or {}),
        subscribe_rate=Rate(subscribes["subscribeThrottlingRatePerConsumer"], subscribes["ratePeriodInSecond"]),
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
    override = namespace.get(rows.AUTO_TOPIC_CREATION.kept)
    if override is None:
        partitioned = config.allowAutoTopicCreationType == "partitioned"
        return AutoCreation(config.allowAutoTopicCreation, config.defaultNumPartitions if partitioned else 0)
    partitions = override.get("defaultNumPartitions", 0) if override.get("topicType") == "partitioned" else 0
    return AutoCreation(override.get("allowAutoTopicCreation", False), partitions)


def most_topics(config: Config, namespace: Json) -> int:
    """Return how many persistent topics a namespace may have, partitions counted; 0: any number."""
    found: int = in_force(rows.MAX_TOPICS, config, namespace)
    return found


def _quotas(config: Config, namespace: Json, topic: Json) -> Mapping[str, Quota]:
    return MappingProxyType({kind: _quota(config, topic.get(kind) or namespace.get(kind)) for kind in (STORAGE, AGE)})


def _quota(config: Config, kept: Json | None) -> Quota:
    default = config.backlogQuotaDefaultRetentionPolicy
    if kept is None:
        return Quota(config.default_quota_bytes, config.backlogQuotaDefaultLimitSecond, default)
    return Quota(kept.get("limitSize", -1), kept.get("limitTime", -1), kept.get("policy", default))
