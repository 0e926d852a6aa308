"""System topics: the limits, policies and lists that leave them out."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.ledger import Retention
from pulsarium.broker.model.policy.policies import PublishRate, resolve_system_topic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.refusals import refused_consumer, refused_producer
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, Shared, Type, Wire, plain

SYSTEM = "pulsar/system"
EVENTS = TopicName.parse("__change_events")
IN_SYSTEM = TopicName.parse(f"persistent://{SYSTEM}/t")
ONE = Config(maxProducersPerTopic=1, maxConsumersPerTopic=1, maxConsumersPerSubscription=1, maxSubscriptionsPerTopic=1)


@pytest.mark.serving(ONE)
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_limits_of_clients_do_not_count_for_system_topics(wire: Wire, domain: str) -> None:
    topic = f"{domain}://{SYSTEM}/t"
    for number in range(2):
        await wire.producer(topic, producer_id=number)
        await wire.subscribe(topic, "s", consumer_id=number, type=Shared)
    await wire.subscribe(topic, "other", consumer_id=2)


@pytest.mark.serving(Config(maxTopicsPerNamespace=1))
async def test_system_topics_do_not_count_as_topics_of_a_namespace(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/__change_events")
    await rest.done("PUT", f"{TOPICS}/t")
    assert (await rest.refused("PUT", f"{TOPICS}/u"))[0] == 409
    for name in "tu":
        await rest.done("PUT", f"/admin/v2/persistent/{SYSTEM}/{name}")


@pytest.mark.serving(Config(allowAutoTopicCreation=False))
@pytest.mark.parametrize("topic", [str(IN_SYSTEM), f"non-persistent://{SYSTEM}/t", str(EVENTS)])
async def test_system_topics_are_created_where_clients_create_no_topics(wire: Wire, topic: str) -> None:
    await wire.producer(topic)


@pytest.mark.serving(Config(allowAutoTopicCreation=False, systemTopicEnabled=False, topicLevelPoliciesEnabled=False))
async def test_without_system_topics_a_client_creates_none(wire: Wire) -> None:
    assert (await refused_producer(wire, topic=str(IN_SYSTEM)))[0] == pb.TopicNotFound


@pytest.mark.serving(Config(encryptionRequireOnProducer=True))
async def test_producers_of_topics_with_system_names_need_no_encryption(wire: Wire) -> None:
    await wire.producer(str(EVENTS))
    assert (await refused_producer(wire, 1, topic=str(IN_SYSTEM)))[0] == pb.MetadataError


@pytest.mark.parametrize("name", ["t-s__transaction_pending_ack", "t-s__transaction_pending_ack-partition-0"])
async def test_clients_create_no_topics_of_transactions(wire: Wire, name: str) -> None:
    topic = f"persistent://public/default/{name}"
    code, text = await refused_producer(wire, topic=topic)
    assert code == pb.NotAllowedError
    whole = f"Can not create transaction system topic {topic}"
    assert text.endswith(whole if name.endswith("ack") else f"for the partitioned topic: {topic}")


async def test_clients_create_non_persistent_topics_with_names_of_transactions(wire: Wire) -> None:
    await wire.producer("non-persistent://public/default/t-s__transaction_pending_ack")


def test_rates_and_deduplication_of_the_namespace_are_not_for_system_topics() -> None:
    namespace = {
        "publishMaxMessageRate": {"standalone": {"publishThrottlingRateInMsg": 3}},
        "topicDispatchRate": {"standalone": {"dispatchThrottlingRateInMsg": 3}},
        "clusterDispatchRate": {"standalone": {"dispatchThrottlingRateInMsg": 4}},
        "deduplicationEnabled": True,
    }
    found = resolve_system_topic(IN_SYSTEM, Config(), namespace)
    assert (found.publish_rate, found.dispatch_rate.messages, found.deduplication) == (PublishRate(), 0, False)
    own = resolve_system_topic(
        IN_SYSTEM, Config(), namespace, {"publishMaxMessageRate": namespace["publishMaxMessageRate"]}
    )
    assert own.publish_rate.messages == 3


def test_nothing_expires_system_topics_or_their_messages() -> None:
    quota = {"limitSize": 1, "limitTime": 1, "policy": "producer_exception"}
    namespace = {
        "message_ttl_in_seconds": 1,
        "backlog_quota_map": {"destination_storage": quota, "message_age": quota},
        "inactive_topic_policies": {"deleteWhileInactive": True, "maxInactiveDurationSeconds": 1},
    }
    for name in (EVENTS, IN_SYSTEM):
        found = resolve_system_topic(name, Config(), namespace)
        assert (found.message_ttl_seconds, dict(found.backlog_quotas), found.inactivity.delete) == (0, {}, False)
        assert found.compaction_threshold > 0


def test_only_a_policy_of_its_own_retains_messages_of_a_topic_with_a_system_name() -> None:
    config, kept = Config(defaultRetentionTimeInMinutes=1), {"retentionTimeInMinutes": 2, "retentionSizeInMB": 3}
    namespace = {"retention_policies": kept}
    assert resolve_system_topic(EVENTS, config, namespace).retention == Retention(0, 0)
    assert resolve_system_topic(EVENTS, config, {}, namespace).retention == Retention(2, 3)
    assert resolve_system_topic(IN_SYSTEM, config, namespace).retention == Retention(2, 3)


async def test_clients_find_topics_of_brokers_by_pattern_but_not_those_with_system_names(
    rest: Rest, wire: Wire
) -> None:
    for name in ("__change_events", "t"):
        await rest.done("PUT", f"/admin/v2/persistent/{SYSTEM}/{name}")
    found = await wire.ask(Type.GET_TOPICS_OF_NAMESPACE, namespace=SYSTEM)
    assert list(found.topics) == [str(IN_SYSTEM)]


async def test_a_namespace_with_only_system_topics_is_deleted(bed: Bed, rest: Rest) -> None:
    broker = "sla-monitor/broker:8080"
    await rest.done("PUT", "/admin/v2/tenants/sla-monitor", {"allowedClusters": ["standalone"], "adminRoles": []})
    await rest.done("PUT", f"{NAMESPACES}/{broker}")
    await rest.done("PUT", f"/admin/v2/persistent/{broker}/t")
    await rest.done("PUT", f"/admin/v2/persistent/{broker}/p/partitions", 2)
    await rest.done("DELETE", f"{NAMESPACES}/{broker}")
    assert not bed.broker.topics.names(broker)


async def test_subscriptions_of_system_topics_stay_when_the_namespace_unsubscribes(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/__change_events")
    subscriptions = f"{TOPICS}/__change_events/subscription"
    await rest.done("PUT", f"{subscriptions}/s")
    await rest.done("POST", f"{NAMESPACES}/public/default/unsubscribe/s")
    await rest.done("POST", f"{NAMESPACES}/public/default/clearBacklog/s")
    assert "s" in await rest.get(f"{TOPICS}/__change_events/subscriptions")


@pytest.mark.serving(Config(subscriptionTypesEnabled=frozenset({"Failover"})))
async def test_the_topic_of_policies_takes_each_subscription_type(wire: Wire) -> None:
    await wire.subscribe(str(EVENTS), type=Exclusive)
    code, _ = await refused_consumer(wire, "s", consumer_id=1, topic=str(IN_SYSTEM))
    assert code == pb.NotAllowedError


async def test_bytes_published_to_system_topics_are_counted_apart(rest: Rest, wire: Wire) -> None:
    await wire.producer(str(IN_SYSTEM))
    await wire.publish(plain(b"a"))
    stats = await rest.get(f"/admin/v2/persistent/{SYSTEM}/t/stats")
    assert stats["systemTopicBytesInCounter"] == stats["bytesInCounter"] > 0
    await wire.producer(producer_id=1)
    assert (await rest.get(f"{TOPICS}/t/stats"))["systemTopicBytesInCounter"] == 0


async def test_bytes_to_the_readers_of_brokers_are_counted_apart(rest: Rest, wire: Wire, sender: Wire) -> None:
    await sender.publish(plain(b"a"))
    for number, name in enumerate(("__system_reader-1", "reader-1")):
        await wire.subscribe(TOPIC, name, consumer_id=number, durable=False, initialPosition=Earliest)
        await wire.flow(1, number)
        await wire.messages(1)
    stats = await rest.get(f"{TOPICS}/t/stats")
    assert stats["bytesOutInternalCounter"] * 2 == stats["bytesOutCounter"] > 0
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert (await rest.get(f"{TOPICS}/t/stats"))["bytesOutInternalCounter"] == stats["bytesOutInternalCounter"]
