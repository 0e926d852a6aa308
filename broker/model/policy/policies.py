"""The policies of one topic as one object, read from where they are set: topic over namespace over broker.conf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from pulsarium.broker.config.keys import Config
from pulsarium.broker.model.ledger.ledger import NO_RETENTION, Retention
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest import policies as rows
from pulsarium.rest.policies import Policy

STORAGE: Final = "destination_storage"  # the kinds of backlog quota, as REST names them
AGE: Final = "message_age"

UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit of the backlog, and what happens at it; -1: none."""

    limit_size: int = UNLIMITED  # bytes, of destination_storage
    limit_seconds: int = UNLIMITED  # of message_age
    policy: str = "producer_request_hold"  # or producer_exception, consumer_backlog_eviction


@dataclass(frozen=True, slots=True)
class DelayedDelivery:
    """Whether deliver_at_time is heeded, how exactly, and the longest delay; 0: any."""

    active: bool = True
    tick_ms: int = 1000
    max_delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Inactivity:
    """When a topic that nobody uses is deleted. `mode` as in brokerDeleteInactiveTopicsMode."""

    delete: bool = False
    max_seconds: int = 60
    mode: str = "delete_when_no_subscriptions"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often one consumer may subscribe; 0 or less: any number."""

    subscribes: int = 0
    period_seconds: int = 30


@dataclass(frozen=True, slots=True)
class PublishRate:
    """How fast messages may come in, a second; 0 or less: as they come."""

    messages: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class DispatchRate:
    """How fast they may go out in a period; 0 or less: as fast as they are taken. `relative`: so many more than come
    in."""

    messages: int = 0
    bytes: int = 0
    period_seconds: int = 1
    relative: bool = False


@dataclass(frozen=True, slots=True)
class SchemaPolicies:
    """What a new schema must fit (`strategy`), whether producers may bring one, and whether they must have one where
    there is one."""

    strategy: str = "FULL"
    auto_update: bool = True
    validation_enforced: bool = False


@dataclass(frozen=True, slots=True)
class AutoCreation:
    """Whether clients may make topics in a namespace, and of how many partitions; 0: topics without."""

    allowed: bool
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What holds for one topic. Limits of 0 are none."""

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
    subscription_dispatch_rate: DispatchRate = DispatchRate()  # of those without one of their own
    subscription_dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=lambda: MappingProxyType({}))
    subscribe_rate: Rate = Rate()
    subscription_types: frozenset[str] = frozenset()  # that consumers may ask for
    schemas: SchemaPolicies = SchemaPolicies()
    shadows: frozenset[str] = frozenset()  # the shadow topics that get new messages

    def dispatch_rate_of(self, subscription: str) -> DispatchRate:
        """How fast messages may go out to one subscription."""
        return self.subscription_dispatch_rates.get(subscription, self.subscription_dispatch_rate)


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
