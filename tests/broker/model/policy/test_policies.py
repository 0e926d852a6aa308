"""Precedence of topic policies over namespace policies over broker.conf, for each field of Policies."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NamedTuple

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.ledger import Retention
from pulsarium.broker.model.policy.policies import (
    AGE,
    STORAGE,
    AutoCreation,
    ConsumerSubscribeRate,
    DelayedDelivery,
    DispatchRate,
    Inactivity,
    Policies,
    PublishRate,
    Quota,
    SchemaPolicies,
    auto_creation,
    of_broker,
    resolve,
    resolve_system_topic,
)
from pulsarium.broker.model.topic import topics as topics_module
from pulsarium.proto.topic_name import TopicName
from pulsarium.rest.policies import POLICIES
from tests.broker.wire import TOPIC, Bed, Wire

NAME = TopicName.parse(TOPIC)
EVENTS = TopicName.parse("__change_events")


def test_a_row_names_keys_of_broker_conf() -> None:
    config = Config()
    for row in POLICIES:
        for key in [row.conf] if isinstance(row.conf, str) else row.conf.values():
            assert not key or hasattr(config, key), row.kept
        if row.topic is not None and row.topic.applied and row.conf:
            assert of_broker(row, config) is not None, row.kept


def retention(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


def delays(tick: int) -> dict[str, Any]:
    return {"active": False, "tickTime": tick, "maxDeliveryDelayInMillis": tick + 1}


def inactivity(seconds: int) -> dict[str, Any]:
    mode = "delete_when_subscriptions_caught_up"
    return {"deleteWhileInactive": False, "maxInactiveDurationSeconds": seconds, "inactiveTopicDeleteMode": mode}


def quotas(size: int) -> dict[str, Any]:
    return {STORAGE: {"limit": size, "limitSize": size, "limitTime": -1, "policy": "producer_exception"}}


def resolved_quotas(quota: Quota) -> dict[str, Quota]:
    return {STORAGE: quota, AGE: Quota(7, 8, "producer_exception")}


def creates(allowed: bool) -> dict[str, bool]:
    return {"allowAutoSubscriptionCreation": allowed}


def rates(subscribes: int) -> dict[str, Any]:
    return {"standalone": {"subscribeThrottlingRatePerConsumer": subscribes, "ratePeriodInSecond": 9}}


def publishes(messages: int) -> dict[str, Any]:
    return {"standalone": {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": -1}}


def dispatches(messages: int, size: int = -1) -> dict[str, Any]:
    rate = {"dispatchThrottlingRateInMsg": messages, "dispatchThrottlingRateInByte": size}
    return {"standalone": rate | {"ratePeriodInSecond": 9, "relativeToPublishRate": True}}


CAUGHT_UP = "delete_when_subscriptions_caught_up"
CONFIG = Config(
    subscriptionExpirationTimeMinutes=11,
    ttlDurationDefaultInSeconds=1,
    defaultRetentionTimeInMinutes=2,
    defaultRetentionSizeInMB=3,
    backlogQuotaDefaultLimitBytes=7,
    backlogQuotaDefaultLimitSecond=8,
    backlogQuotaDefaultRetentionPolicy="producer_exception",
    brokerDeduplicationEnabled=True,
    brokerDeduplicationSnapshotIntervalSeconds=11,
    delayedDeliveryEnabled=False,
    delayedDeliveryTickTimeMillis=12,
    delayedDeliveryMaxDelayInMillis=13,
    brokerDeleteInactiveTopicsEnabled=False,
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=14,
    brokerDeleteInactiveTopicsMode=CAUGHT_UP,
    maxUnackedMessagesPerConsumer=15,
    maxUnackedMessagesPerSubscription=16,
    maxProducersPerTopic=17,
    maxConsumersPerTopic=18,
    maxConsumersPerSubscription=19,
    maxSubscriptionsPerTopic=20,
    brokerServiceCompactionThresholdInBytes=23,
    allowAutoSubscriptionCreation=False,
    maxPublishRatePerTopicInMessages=24,
    maxPublishRatePerTopicInBytes=25,
    dispatchThrottlingRatePerTopicInMsg=26,
    dispatchThrottlingRatePerTopicInByte=27,
    dispatchThrottlingRatePerSubscriptionInMsg=28,
    dispatchThrottlingRatePerSubscriptionInByte=29,
    subscribeThrottlingRatePerConsumer=21,
    subscribeRatePeriodPerConsumerInSecond=22,
    subscriptionTypesEnabled=frozenset({"Shared"}),
    schemaCompatibilityStrategy="BACKWARD",
    isAllowAutoUpdateSchemaEnabled=False,
)


class Source(NamedTuple):
    """A field of Policies with its name in JSON and its value from CONFIG.

    `namespace` and `topic` are pairs of a policy's JSON and the value of the field from this policy.
    """

    field: str
    name: str
    of_config: Any
    namespace: tuple[Any, Any]
    topic: tuple[Any, Any]


def numbers(field: str, name: str, of_config: int, of_namespace: int = 0, of_topic: int = 5) -> Source:
    return Source(field, name, of_config, (of_namespace, of_namespace), (of_topic, of_topic))


def relative(messages: int, size: int = -1) -> tuple[Any, DispatchRate]:
    return dispatches(messages, size), DispatchRate(messages, size, 9, relative=True)


def quota(size: int) -> tuple[Any, Any]:
    return quotas(size), resolved_quotas(Quota(size, -1, "producer_exception"))


def types(*names: str) -> tuple[list[str], frozenset[str]]:
    return list(names), frozenset(names)


SOURCES = [
    numbers("message_ttl_seconds", "message_ttl_in_seconds", 1),
    Source(
        *("retention", "retention_policies", Retention(2, 3)),
        (retention(0, 0), Retention()),
        (retention(4, 5), Retention(4, 5)),
    ),
    Source(
        *("backlog_quotas", "backlog_quota_map", resolved_quotas(Quota(7, 8, "producer_exception"))), quota(1), quota(2)
    ),
    Source("deduplication", "deduplicationEnabled", True, (False, False), (True, True)),
    numbers("deduplication_snapshot_seconds", "deduplicationSnapshotIntervalSeconds", 11),
    Source(
        *("delayed_delivery", "delayed_delivery_policies", DelayedDelivery(False, 12, 13)),
        (delays(1), DelayedDelivery(False, 1, 2)),
        (delays(3), DelayedDelivery(False, 3, 4)),
    ),
    Source(
        *("inactivity", "inactive_topic_policies", Inactivity(False, 14, CAUGHT_UP)),
        (inactivity(1), Inactivity(False, 1, CAUGHT_UP)),
        (inactivity(2), Inactivity(False, 2, CAUGHT_UP)),
    ),
    numbers("max_unacked_per_consumer", "max_unacked_messages_per_consumer", 15),
    numbers("max_unacked_per_subscription", "max_unacked_messages_per_subscription", 16),
    numbers("max_producers", "max_producers_per_topic", 17),
    numbers("max_consumers", "max_consumers_per_topic", 18),
    numbers("max_consumers_per_subscription", "max_consumers_per_subscription", 19),
    numbers("compaction_threshold", "compaction_threshold", 23),
    numbers("max_subscriptions", "max_subscriptions_per_topic", 20),
    Source(
        *("publish_rate", "publishMaxMessageRate", PublishRate(24, 25)),
        (publishes(1), PublishRate(1, -1)),
        (publishes(2), PublishRate(2, -1)),
    ),
    Source("dispatch_rate", "topicDispatchRate", DispatchRate(26, 27), relative(1), relative(-1, 2)),
    Source(
        "subscription_dispatch_rate", "subscriptionDispatchRate", DispatchRate(28, 29), relative(1), relative(-1, 2)
    ),
    Source(
        *("auto_subscription", "autoSubscriptionCreationOverride", False),
        (creates(allowed=True), True),
        (creates(allowed=False), False),
    ),
    Source(
        *("subscribe_rate", "clusterSubscribeRate", ConsumerSubscribeRate(21, 22)),
        (rates(1), ConsumerSubscribeRate(1, 9)),
        (rates(-1), ConsumerSubscribeRate(-1, 9)),
    ),
    Source(
        *("subscription_types", "subscription_types_enabled", frozenset({"Shared"})),
        types("Failover"),
        types("Exclusive"),
    ),
    numbers("subscription_expiration_minutes", "subscription_expiration_time_minutes", 11, 12, 0),
    Source(
        *("schemas", "schema_compatibility_strategy", SchemaPolicies("BACKWARD", auto_update=False)),
        ("FORWARD", SchemaPolicies("FORWARD", auto_update=False)),
        ("FULL_TRANSITIVE", SchemaPolicies("FULL_TRANSITIVE", auto_update=False)),
    ),
]
NOT_OF_ALL_THREE = {
    "subscription_dispatch_rates",
    "max_message_size",
    "encryption_required",
    "resource_group",
    "shadows",
}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.field)
def test_a_topic_counts_before_its_namespace_and_that_before_broker_conf(source: Source) -> None:
    field, in_namespace, in_topic = source.field, {source.name: source.namespace[0]}, {source.name: source.topic[0]}
    assert getattr(resolve(CONFIG, {}), field) == source.of_config
    assert getattr(resolve(CONFIG, in_namespace), field) == source.namespace[1]
    assert getattr(resolve(CONFIG, in_namespace, in_topic), field) == source.topic[1]
    changed, unchanged = resolve(CONFIG, {}, in_topic), resolve(CONFIG, {})
    assert getattr(changed, field) == source.topic[1]
    others = {each.name for each in fields(Policies)} - {field}
    assert all(getattr(changed, other) == getattr(unchanged, other) for other in others)


def test_each_field_of_policies_is_in_the_table() -> None:
    assert {source.field for source in SOURCES} | NOT_OF_ALL_THREE == {each.name for each in fields(Policies)}


def test_a_message_size_is_a_topics_alone() -> None:
    assert resolve(CONFIG, {}).max_message_size == 0
    assert resolve(CONFIG, {}, {"max_message_size": 5}).max_message_size == 5


def test_shadow_topics_are_a_topics_alone_and_have_full_names() -> None:
    listed = ["persistent://a/b/c", "short", "not a topic:/"]
    assert resolve(CONFIG, {"shadowTopics": listed}).shadows == frozenset()
    found = resolve(CONFIG, {}, {"shadowTopics": listed}).shadows
    assert found == {"persistent://a/b/c", "persistent://public/default/short"}


def test_encryption_is_a_namespaces_alone() -> None:
    assert not resolve(CONFIG, {}).encryption_required
    assert resolve(CONFIG, {"encryption_required": True}, {"encryption_required": False}).encryption_required


def test_no_types_at_all_are_those_of_the_namespace() -> None:
    namespace = {"subscription_types_enabled": ["Failover"]}
    assert resolve(CONFIG, namespace, {"subscription_types_enabled": []}).subscription_types == {"Failover"}
    assert resolve(CONFIG, {"subscription_types_enabled": []}).subscription_types == {"Shared"}


def test_quotas_are_found_kind_by_kind() -> None:
    of_age = {AGE: {"limitSize": 0, "limitTime": 5, "policy": "consumer_backlog_eviction"}}
    found = resolve(CONFIG, {"backlog_quota_map": quotas(1)}, {"backlog_quota_map": of_age}).backlog_quotas
    assert found == {STORAGE: Quota(1, -1, "producer_exception"), AGE: Quota(0, 5, "consumer_backlog_eviction")}


@pytest.mark.req("B-42")
@pytest.mark.parametrize(
    ("config", "size"),
    [
        (Config(backlogQuotaDefaultLimitGB=0.5), 1 << 29),
        (Config(backlogQuotaDefaultLimitGB=0.5, backlogQuotaDefaultLimitBytes=7), 7),
    ],
)
def test_a_quota_in_gigabytes_holds_where_none_in_bytes_is_set(config: Config, size: int) -> None:
    assert resolve(config, {}).backlog_quotas[STORAGE].limit_size == size


def test_a_rate_that_limits_nothing_leaves_it_to_the_next_level() -> None:
    none = resolve(CONFIG, {"publishMaxMessageRate": publishes(3)}, {"publishMaxMessageRate": publishes(0)})
    assert none.publish_rate == PublishRate(3, -1)
    assert resolve(CONFIG, {"topicDispatchRate": dispatches(-1, 0)}).dispatch_rate == DispatchRate(26, 27)
    assert resolve(CONFIG, {"topicDispatchRate": {"elsewhere": {}}}).dispatch_rate == DispatchRate(26, 27)


@pytest.mark.req("B-42")
def test_a_subscription_may_have_a_rate_of_its_own() -> None:
    its = {"its": {"dispatchRate": dispatches(5)["standalone"]}, "free": {"dispatchRate": dispatches(0)["standalone"]}}
    found = resolve(CONFIG, {}, {"subscriptionDispatchRate": dispatches(4), "subscriptionPolicies": its})
    assert found.dispatch_rate_of("its") == DispatchRate(5, -1, 9, relative=True)
    assert found.dispatch_rate_of("free") == found.dispatch_rate_of("another") == DispatchRate(4, -1, 9, relative=True)


@pytest.mark.req("B-40")
@pytest.mark.parametrize(
    ("config", "override", "expected"),
    [
        (Config(), None, AutoCreation(True, 0)),
        (Config(defaultNumPartitions=4), None, AutoCreation(True, 0)),
        (Config(allowAutoTopicCreationType="partitioned", defaultNumPartitions=4), None, AutoCreation(True, 4)),
        (Config(allowAutoTopicCreation=False), None, AutoCreation(False, 0)),
        (
            Config(allowAutoTopicCreation=False),
            {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
            AutoCreation(True, 3),
        ),
        (
            Config(allowAutoTopicCreationType="partitioned", defaultNumPartitions=4),
            {"allowAutoTopicCreation": True, "topicType": "non-partitioned"},
            AutoCreation(True, 0),
        ),
        (Config(), {"allowAutoTopicCreation": False}, AutoCreation(False, 0)),
        (Config(), {}, AutoCreation(False, 0)),
    ],
)
def test_a_namespace_says_which_topics_clients_may_make(config: Config, override: Any, expected: AutoCreation) -> None:
    namespace = {} if override is None else {"autoTopicCreationOverride": override}
    assert auto_creation(config, namespace) == expected


async def test_a_loaded_topic_sees_a_change_at_once(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    topic, metadata = bed.broker.topics.find(NAME), bed.broker.metadata
    namespace = metadata.namespaces["public/default"]
    metadata.put_namespace("public/default", {**namespace, "max_consumers_per_topic": 5})
    assert topic.policies.max_consumers == 5
    metadata.put_topic_policies(NAME, {"max_consumers_per_topic": 6})
    assert topic.policies.max_consumers == 6
    metadata.put_topic_policies(NAME, {})
    metadata.put_namespace("public/default", namespace)
    assert topic.policies == resolve(bed.broker.config, namespace)


async def test_a_topic_hears_only_of_its_own_changes(bed: Bed, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    await wire.producer()
    topic = bed.broker.topics.find(NAME)
    heard: list[Policies] = []
    monkeypatch.setattr(topic, "set_policies", heard.append)
    bed.broker.metadata.put_topic_policies(TopicName.parse(f"{TOPIC}2"), {"max_consumers_per_topic": 6})
    bed.broker.metadata.put_namespace("pulsar/system", {"max_consumers_per_topic": 6})
    assert heard == []
    bed.broker.metadata.put_topic_policies(NAME, {"max_consumers_per_topic": 6})
    assert [policies.max_consumers for policies in heard] == [6]


async def test_partitions_hear_of_what_is_set_for_all_of_them(bed: Bed) -> None:
    metadata, topics = bed.broker.metadata, bed.broker.topics
    topics.create_partitions(NAME, 2)
    parts = [topics.find(NAME.partition(index)) for index in range(2)]
    metadata.put_topic_policies(NAME, {"max_consumers_per_topic": 6})
    assert [part.policies.max_consumers for part in parts] == [6, 6]
    metadata.delete_partitioned(NAME)
    assert [part.policies.max_consumers for part in parts] == [0, 0]


async def test_policies_of_topics_without_their_own_are_resolved_once(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, topics = bed.broker.metadata, bed.broker.topics
    names = [TopicName.parse(f"{TOPIC}-{number}") for number in range(5)]
    own = names[2]
    resolved = []

    def counted(*levels: Any) -> Policies:
        resolved.append(levels)
        return resolve(*levels)

    monkeypatch.setattr(topics_module, "resolve", counted)
    for name in names:
        topics.create(name)
    assert len(resolved) == 1
    metadata.put_topic_policies(own, {"max_consumers_per_topic": 6})
    assert len(resolved) - 1 == 1
    metadata.put_namespace("public/default", {"max_consumers_per_topic": 5})
    assert len(resolved) - 2 == 2
    assert [topics.find(name).policies.max_consumers for name in names] == [5, 5, 6, 5, 5]
    metadata.put_topic_policies(own, {})
    assert topics.find(own).policies.max_consumers == 5
    assert len(resolved) - 4 == 0


async def test_a_namespace_that_is_made_again_has_none_of_its_old_policies(bed: Bed) -> None:
    name, metadata = TopicName.parse("public/mine/t"), bed.broker.metadata
    metadata.put_namespace("public/mine", {"max_consumers_per_topic": 5})
    bed.broker.topics.create(name)
    assert bed.broker.topics.policies_of(name).max_consumers == 5
    bed.broker.cluster.delete_namespace("public/mine")
    assert bed.broker.topics.policies_of(name).max_consumers == 0
    bed.broker.turn.finish()
    metadata.put_namespace("public/mine", {})
    assert bed.broker.topics.create(name).policies.max_consumers == 0


@pytest.mark.req("B-30")
@pytest.mark.parametrize(
    ("namespace", "strategy"),
    [
        ({"schema_compatibility_strategy": "UNDEFINED"}, "BACKWARD"),
        ({"schema_auto_update_compatibility_strategy": "AutoUpdateDisabled"}, "ALWAYS_INCOMPATIBLE"),
        ({"schema_auto_update_compatibility_strategy": "ForwardTransitive"}, "FORWARD_TRANSITIVE"),
        (
            {"schema_compatibility_strategy": "FULL", "schema_auto_update_compatibility_strategy": "AlwaysCompatible"},
            "FULL",
        ),
    ],
)
def test_the_schema_strategy_is_resolved(namespace: dict[str, str], strategy: str) -> None:
    assert resolve(CONFIG, namespace).schemas.strategy == strategy
    assert resolve(CONFIG, namespace, {"schema_compatibility_strategy": "UNDEFINED"}).schemas.strategy == strategy
    system = resolve_system_topic(EVENTS, CONFIG, namespace, {"schema_compatibility_strategy": "FULL"}).schemas
    assert (system.strategy, system.auto_update) == ("ALWAYS_COMPATIBLE", True)


def test_without_a_schema_strategy_it_is_full() -> None:
    assert resolve(Config(schemaCompatibilityStrategy="UNDEFINED"), {}).schemas.strategy == "FULL"


@pytest.mark.req("B-30")
@pytest.mark.parametrize(
    ("enforced", "namespace", "topic", "expected"),
    [
        (False, {}, {}, False),
        (True, {"schema_validation_enforced": False}, {"schema_validation_enforced": False}, True),
        (False, {"schema_validation_enforced": True}, {}, True),
        (False, {"schema_validation_enforced": True}, {"schema_validation_enforced": False}, False),
        (False, {}, {"schema_validation_enforced": True}, True),
    ],
)
def test_schemas_are_enforced_by_the_broker_or_the_nearest_policy(
    enforced: bool, namespace: Any, topic: Any, expected: bool
) -> None:
    config = Config(isSchemaValidationEnforced=enforced)
    assert resolve(config, namespace, topic).schemas.validation_enforced is expected


def test_a_namespace_says_whether_new_schemas_are_taken() -> None:
    assert resolve(CONFIG, {"is_allow_auto_update_schema": True}).schemas.auto_update
    assert not resolve(Config(), {"is_allow_auto_update_schema": False}).schemas.auto_update
