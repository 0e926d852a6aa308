"""Limits of producers, consumers and subscriptions, allowed subscription types, and automatic creation."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.limits import NO_MORE_PRODUCERS, namespace_says
from tests.broker.commands.refusals import refused_consumer, refused_producer
from tests.broker.steps import steps_of
from tests.broker.wire import TOPIC, Bed, Exclusive, Failover, KeyShared, Shared, Type, Wire

LOOSE = TOPIC.replace("persistent", "non-persistent")
TOPIC_FULL = (pb.ConsumerBusy, "Topic reached max consumers limit")
SUBSCRIPTION_FULL = (pb.ConsumerBusy, "Subscription reached max consumers limit")
NO_MORE_SUBSCRIPTIONS = (
    pb.NotAllowedError,
    f"Exceed the maximum number of subscriptions of the topic: {TOPIC}",
)
NOT_THERE = (pb.SubscriptionNotFound, "Subscription does not exist")


def topic_says(bed: Bed, **policies: Any) -> None:
    bed.broker.metadata.put_topic_policies(TopicName.parse(TOPIC), policies)


def type_refused(name: str) -> tuple[int, str]:
    return pb.NotAllowedError, f"Topic[{{{TOPIC}}}] doesn't support {name} sub type!"


# consumers


@pytest.mark.req("C-13")
async def test_a_full_topic_comes_before_everything_else(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, max_consumers_per_topic=1, max_consumers_per_subscription=1)
    await wire.subscribe()
    assert await refused_consumer(wire, consumer_id=1) == TOPIC_FULL  # not "already connected"
    assert await refused_consumer(wire, type=Shared, consumer_id=1) == TOPIC_FULL  # nor another type
    assert await refused_consumer(wire, "new", consumer_id=1) == TOPIC_FULL
    assert list(bed.topic().subscriptions) == ["sub"]
    topic_says(bed, max_consumers_per_topic=2)
    await wire.subscribe(name="new", consumer_id=1)


@pytest.mark.req("C-13")
@pytest.mark.parametrize("type", [Shared, Failover, KeyShared])
@pytest.mark.parametrize("topic", [TOPIC, LOOSE])
async def test_a_full_subscription(bed: Bed, wire: Wire, type: int, topic: str) -> None:
    namespace_says(bed, max_consumers_per_subscription=1)
    await wire.subscribe(topic, type=type)
    assert await refused_consumer(wire, type=type, consumer_id=1, topic=topic) == SUBSCRIPTION_FULL
    code, text = await refused_consumer(wire, type=Exclusive, consumer_id=1, topic=topic)
    assert (code, "different type" in text) == (pb.ConsumerBusy, True)
    await wire.subscribe(topic, name="other", type=type, consumer_id=2)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(topic, type=type, consumer_id=1)


@pytest.mark.req("C-13")
async def test_exclusive_has_a_limit_of_its_own(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, max_consumers_per_subscription=1)
    await wire.subscribe()
    await wire.send(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=1, request_id=99)
    await wire.expect(Type.PING)  # the broker asks whether the owner is alive
    await wire.send(Type.PONG)
    assert (await wire.expect(Type.ERROR)).message == "Exclusive consumer is already connected"


# subscriptions


@pytest.mark.req("C-13")
async def test_a_subscription_beyond_the_maximum_is_refused(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, max_subscriptions_per_topic=1)
    await wire.subscribe(type=Shared)
    assert await refused_consumer(wire, "other", consumer_id=1) == NO_MORE_SUBSCRIPTIONS
    assert await refused_consumer(wire, "reader", consumer_id=1, durable=False) == NO_MORE_SUBSCRIPTIONS
    assert await refused_producer(wire, initial_subscription_name="other") == NO_MORE_SUBSCRIPTIONS
    await wire.producer(initial_subscription_name="sub")
    await wire.subscribe(type=Shared, consumer_id=1)
    topic_says(bed, max_subscriptions_per_topic=2)
    await wire.subscribe(name="other", consumer_id=2)


@pytest.mark.req("C-13")
async def test_a_readers_subscription_counts_while_it_is_there(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, max_subscriptions_per_topic=1)
    await wire.subscribe(name="reader", durable=False)
    assert await refused_consumer(wire, consumer_id=1) == NO_MORE_SUBSCRIPTIONS
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(consumer_id=1)


@pytest.mark.req("C-13")
async def test_subscriptions_of_non_persistent_topics_are_not_counted(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, max_subscriptions_per_topic=1)
    for consumer_id in range(2):
        await wire.subscribe(LOOSE, name=f"s{consumer_id}", consumer_id=consumer_id)


# producers


@pytest.mark.req("P-01")
async def test_a_full_topic_takes_no_producer_of_any_kind(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, max_producers_per_topic=1)
    await wire.producer(producer_name="p")
    for fields in (
        {"producer_name": "p"},
        {"producer_access_mode": pb.WaitForExclusive},
        {"producer_access_mode": pb.ExclusiveWithFencing},
        {"initial_subscription_name": "s"},
    ):
        assert await refused_producer(wire, 1, **fields) == NO_MORE_PRODUCERS
    assert not bed.topic().subscriptions
    topic_says(bed, max_producers_per_topic=2)
    await wire.producer(producer_id=1)


# subscription types


async def test_types_are_the_topics_or_the_namespaces(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, subscription_types_enabled=["Failover"])
    assert await refused_consumer(wire, type=Shared) == type_refused("Shared")
    assert await refused_consumer(wire, durable=False) == type_refused("Exclusive")
    await wire.subscribe(type=Failover)
    await wire.subscribe(LOOSE, type=Shared, consumer_id=1)  # only persistent topics have subscription types
    topic_says(bed, subscription_types_enabled=["Shared"])
    await wire.subscribe(name="shared", type=Shared, consumer_id=2)
    assert await refused_consumer(wire, type=Failover, consumer_id=3) == type_refused("Failover")


# automatic creation


@pytest.mark.req("C-03", "B-40")
async def test_subscriptions_may_be_made_on_one_topic_only(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, autoSubscriptionCreationOverride={"allowAutoSubscriptionCreation": False})
    assert await refused_consumer(wire) == NOT_THERE
    assert (await refused_producer(wire, initial_subscription_name="initial"))[0] == pb.NotAllowedError
    await wire.producer(LOOSE, 1, initial_subscription_name="initial")
    topic_says(bed, autoSubscriptionCreationOverride={"allowAutoSubscriptionCreation": True})
    await wire.subscribe()
    await wire.producer(producer_id=2, initial_subscription_name="initial")
    assert (await refused_consumer(wire, topic=f"{TOPIC}2", consumer_id=1)) == NOT_THERE


@pytest.mark.req("B-40")
async def test_a_namespace_may_forbid_topics(bed: Bed, wire: Wire) -> None:
    namespace_says(bed, autoTopicCreationOverride={"allowAutoTopicCreation": False})
    for topic in (TOPIC, LOOSE):
        assert await refused_producer(wire, topic=topic) == (pb.TopicNotFound, f"Topic not found {topic}")
        absent = (pb.TopicNotFound, f"Topic {topic} does not exist")
        assert await refused_consumer(wire, topic=topic) == absent
        asked = await wire.ask(Type.PARTITIONED_METADATA, topic=topic)
        assert asked.error == pb.TopicNotFound
    bed.broker.topics.create(TopicName.parse(TOPIC))
    await wire.producer()


@pytest.mark.req("B-36", "B-40")
async def test_a_namespace_may_want_partitions(bed: Bed, wire: Wire) -> None:
    partitioned = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    namespace_says(bed, autoTopicCreationOverride=partitioned)
    for topic in (TOPIC, LOOSE):
        asked = await wire.ask(Type.PARTITIONED_METADATA, topic=topic)
        assert asked.partitions == 3
    of_partition = await wire.ask(Type.PARTITIONED_METADATA, topic=f"{TOPIC}2-partition-0")
    assert of_partition.partitions == 0
    assert sorted(bed.broker.metadata.partitioned) == [LOOSE, TOPIC]
    await wire.producer(f"{TOPIC}-partition-2")
    namespace_says(bed, autoTopicCreationOverride={"allowAutoTopicCreation": False})
    await wire.producer(f"{TOPIC}-partition-1", 1)  # a partition of the topic may always be created
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=1)


# subscribe rates


@pytest.mark.req("C-12")
async def test_a_namespace_says_how_often_one_may_subscribe(bed: Bed, wire: Wire) -> None:
    rate = {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 10}
    await wire.producer()
    namespace_says(bed, clusterSubscribeRate={"standalone": rate})
    await wire.subscribe(consumer_name="c")
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    code, _ = await refused_consumer(wire, consumer_name="c")
    assert code == pb.NotAllowedError
    topic_says(bed, clusterSubscribeRate={"standalone": {**rate, "subscribeThrottlingRatePerConsumer": -1}})
    for _ in range(3):
        await wire.subscribe(consumer_name="c")
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)


SAME_ADDRESS = Config(maxSameAddressConsumersPerTopic=2, maxSameAddressProducersPerTopic=2)
BOTH_DOMAINS = pytest.mark.parametrize("topic", [TOPIC, "non-persistent://public/default/t"])


async def from_elsewhere(bed: Bed) -> Wire:
    wire = bed.dial(host="elsewhere")
    await wire.connect()
    return wire


@BOTH_DOMAINS
@pytest.mark.serving(SAME_ADDRESS)
async def test_consumers_of_one_address_are_limited(bed: Bed, wire: Wire, topic: str) -> None:
    other = await bed.connect()
    await wire.subscribe(topic, "a")
    await other.subscribe(topic, "b")
    full = (pb.ConsumerBusy, "Topic reached max same address consumers limit")
    assert await refused_consumer(wire, "c", consumer_id=1, topic=topic) == full
    await (await from_elsewhere(bed)).subscribe(topic, "c")
    await other.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(topic, "d", consumer_id=2)


@BOTH_DOMAINS
@pytest.mark.serving(SAME_ADDRESS)
async def test_producers_of_one_address_are_limited(bed: Bed, wire: Wire, topic: str) -> None:
    other = await bed.connect()
    await wire.producer(topic)
    await other.producer(topic)
    code, text = await refused_producer(wire, 1, topic=topic)
    assert code == pb.ProducerBusy
    assert text.endswith(f"Topic '{topic}' reached max same address producers limit")
    await wire.producer(topic, producer_id=2, producer_name="pulsar.repl.c")
    await (await from_elsewhere(bed)).producer(topic)


@pytest.mark.serving(SAME_ADDRESS)
async def test_system_topics_have_no_limit_for_one_address(wire: Wire) -> None:
    for number in range(3):
        await wire.producer("persistent://pulsar/system/t", producer_id=number)
        await wire.subscribe("persistent://pulsar/system/t", f"s{number}", consumer_id=number)


async def test_a_subscribe_without_a_limit_looks_at_no_other_consumer(bed: Bed) -> None:
    wire = await bed.connect()
    await wire.subscribe(consumer_id=0)
    check = partial(bed.topic().check_max_consumers, "127.0.0.1:1")
    alone = steps_of(check)
    for consumer_id in range(1, 20):
        await wire.subscribe(name=f"s{consumer_id}", consumer_id=consumer_id)
    assert steps_of(check) == alone
