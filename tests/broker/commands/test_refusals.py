"""Refusals in the log: each names whom it concerns, the limit, and who holds it. The client's text stays Pulsar's."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.policy.policies import STORAGE
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.topic.producers import Producer
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.dispatch.sharing import joined
from tests.broker.model.upkeep.policed import set_policies
from tests.broker.wire import TOPIC, Bed, Exclusive, KeyShared, Shared, Type, Wire, plain

Facts = dict[str, Any]
SURE_OF_OWNERS = Config(connectionLivenessCheckTimeoutMillis=0)  # a played client does not answer PING
LIMITED: Facts = {"limitSize": 0, "limitTime": -1, "policy": "producer_exception"}


@pytest.fixture
def refusals(bed: Bed) -> Callable[[], list[Facts]]:
    """Return a function that returns the facts of all refusals so far, without addresses."""

    def found() -> list[Facts]:
        kept = bed.broker.cluster.refusals.of()
        return [{"error": each.error, **{k: v for k, v in each.about.items() if k != "peer"}} for each in kept][::-1]

    return found


def at(name: str, bed: Bed) -> str:
    """Return a holder as the log shows it."""
    topic = bed.topic()
    consumers = (consumer for each in topic.subscriptions.values() for consumer in each.consumers)
    known: list[Producer | Consumer] = [*topic.producers.by_name.values(), *consumers]
    (address,) = (each.client.address for each in known if each.name == name)
    return f"{name} at {address}"


@pytest.mark.serving(SURE_OF_OWNERS)
async def test_the_log_line_of_a_refusal_names_whom_it_concerns(
    bed: Bed, sender: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    await joined(bed, "first", type=Exclusive)
    wire = await bed.connect()
    caplog.set_level(logging.INFO, "pulsarium")
    caplog.clear()
    fields = {"topic": TOPIC, "subscription": "sub", "subType": Exclusive, "consumer_id": 0, "consumer_name": "second"}
    refused = await wire.refused(Type.SUBSCRIBE, **fields)
    assert refused == (pb.ConsumerBusy, "Exclusive consumer is already connected")
    (line,) = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert f"command=SUBSCRIBE topic={TOPIC} subscription=sub consumer=second" in line
    assert f'held_by="{at("first", bed)}" error=ConsumerBusy' in line


@pytest.mark.parametrize(
    ("policies", "asked", "facts"),
    [
        ({"max_consumers_per_topic": 1}, {"type": Shared}, {"limit": "maxConsumersPerTopic", "allowed": 1}),
        (
            {"max_consumers_per_subscription": 1},
            {"type": Shared},
            {"limit": "maxConsumersPerSubscription", "allowed": 1},
        ),
        ({}, {"type": Exclusive}, {"type": "Shared"}),
    ],
)
async def test_a_refused_consumer_learns_the_log_who_holds_its_place(
    bed: Bed, sender: Wire, refusals: Callable[[], list[Facts]], policies: Facts, asked: Facts, facts: Facts
) -> None:
    await joined(bed, "first", type=Shared)
    set_policies(bed.broker, **policies)
    wire = await bed.connect()
    names = {"topic": TOPIC, "subscription": "sub", "consumer_name": "second"}
    await wire.refused(Type.SUBSCRIBE, consumer_id=0, subType=asked["type"], **names)
    assert refusals() == [
        {
            "error": "ConsumerBusy",
            "command": "SUBSCRIBE",
            "topic": TOPIC,
            "subscription": "sub",
            "consumer": "second",
            **facts,
            "held_by": at("first", bed),
        }
    ]


@pytest.mark.serving(SURE_OF_OWNERS)
async def test_a_conflict_of_key_hash_ranges_names_the_owner(
    bed: Bed, sender: Wire, refusals: Callable[[], list[Facts]]
) -> None:
    sticky = pb.KeySharedMeta(keySharedMode=pb.STICKY, hashRanges=[pb.IntRange(start=0, end=65535)])
    await joined(bed, "first", type=KeyShared, keySharedMeta=sticky)
    wire = await bed.connect()
    names = {"topic": TOPIC, "subscription": "sub", "consumer_name": "second"}
    await wire.refused(Type.SUBSCRIBE, consumer_id=0, subType=KeyShared, keySharedMeta=sticky, **names)
    assert [(each["error"], each["held_by"]) for each in refusals()] == [("ConsumerAssignError", at("first", bed))]


@pytest.mark.parametrize(
    ("policies", "error", "facts"),
    [
        (
            {"max_subscriptions_per_topic": 1},
            "NotAllowedError",
            {"limit": "maxSubscriptionsPerTopic", "held_by": "sub"},
        ),
        (
            {"subscription_types_enabled": ["Shared"]},
            "NotAllowedError",
            {"limit": "subscriptionTypesEnabled", "allowed": "Shared"},
        ),
        (
            {"autoSubscriptionCreationOverride": {"allowAutoSubscriptionCreation": False}},
            "SubscriptionNotFound",
            {"limit": "allowAutoSubscriptionCreation"},
        ),
    ],
)
async def test_a_refused_subscription_names_the_setting(
    bed: Bed, sender: Wire, refusals: Callable[[], list[Facts]], policies: Facts, error: str, facts: Facts
) -> None:
    await joined(bed, "first", type=Shared)
    set_policies(bed.broker, **policies)
    wire = await bed.connect()
    await wire.refused(Type.SUBSCRIBE, consumer_id=0, topic=TOPIC, subscription="other", subType=Exclusive)
    (found,) = refusals()
    assert (found["error"], found["topic"], found["subscription"]) == (error, TOPIC, "other")
    assert found.items() >= facts.items()


async def test_a_taken_producer_name_names_its_owner(bed: Bed, wire: Wire, refusals: Callable[[], list[Facts]]) -> None:
    await wire.producer(producer_name="p")
    await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, producer_name="p")
    named = {"command": "PRODUCER", "topic": TOPIC, "producer": "p", "held_by": at("p", bed)}
    assert refusals() == [{"error": "ProducerBusy", **named}]


@pytest.mark.parametrize("mode", [pb.Shared, pb.Exclusive])
async def test_exclusive_access_names_its_owner(
    bed: Bed, wire: Wire, refusals: Callable[[], list[Facts]], mode: Any
) -> None:
    await wire.producer(producer_name="owner", producer_access_mode=pb.Exclusive)
    await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, producer_name="p", producer_access_mode=mode)
    assert [(each["producer"], each["held_by"]) for each in refusals()] == [("p", at("owner", bed))]


async def test_waiting_producers_that_are_fenced_out_name_the_new_owner(
    bed: Bed, wire: Wire, refusals: Callable[[], list[Facts]]
) -> None:
    await wire.producer(producer_name="owner", producer_access_mode=pb.Exclusive)
    waits = await bed.connect(flags=["supports_partial_producer"])
    await waits.producer(producer_name="waits", producer_access_mode=pb.WaitForExclusive)
    await wire.producer(producer_id=1, producer_name="fences", producer_access_mode=pb.ExclusiveWithFencing)
    assert [(each["error"], each["producer"], each["held_by"]) for each in refusals()] == [
        ("ProducerFenced", "waits", at("fences", bed))
    ]


@pytest.mark.parametrize(
    ("policies", "error", "facts"),
    [
        ({"max_producers_per_topic": 1}, "ProducerBusy", {"limit": "maxProducersPerTopic", "allowed": 1}),
        ({"encryption_required": True}, "MetadataError", {"limit": "encryptionRequired"}),
        (
            {"backlog_quota_map": {STORAGE: LIMITED}},
            "ProducerBlockedQuotaExceededException",
            {"limit": STORAGE, "allowed": 0, "held_by": "subscription sub"},
        ),
    ],
)
async def test_a_limit_that_refuses_producers_is_named(
    bed: Bed, wire: Wire, sender: Wire, refusals: Callable[[], list[Facts]], policies: Facts, error: str, facts: Facts
) -> None:
    await joined(bed, "first", permits=0)
    await sender.publish(plain(b"0"))
    set_policies(bed.broker, **policies)
    await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, producer_name="p")
    (found,) = refusals()
    assert (found["error"], found["topic"], found["producer"]) == (error, TOPIC, "p")
    assert found.items() >= facts.items()


async def test_a_refused_message_names_its_producer_and_the_limit(
    bed: Bed, wire: Wire, refusals: Callable[[], list[Facts]]
) -> None:
    bed.broker.metadata.put_topic_policies(TopicName.parse(TOPIC), {"max_message_size": 10})
    await wire.producer(producer_name="p")
    await wire.write(wire.sends(plain(b"0" * 100)))
    await wire.expect(Type.SEND_ERROR)
    (found,) = refusals()
    assert (found["command"], found["topic"], found["producer"]) == ("SEND", TOPIC, "p")
    assert (found["limit"], found["allowed"]) == ("maxMessageSize", 10)


async def test_a_refused_lookup_and_a_refused_answer_of_another_form_are_named(
    bed: Bed, wire: Wire, refusals: Callable[[], list[Facts]]
) -> None:
    await wire.ask(Type.LOOKUP, topic="persistent://public/nowhere/t")
    await wire.ask(Type.PARTITIONED_METADATA, topic="persistent://public/nowhere/t")
    assert [(each["command"], each["error"], each["topic"]) for each in refusals()] == [
        ("LOOKUP", "TopicNotFound", "persistent://public/nowhere/t"),
        ("PARTITIONED_METADATA", "TopicNotFound", "persistent://public/nowhere/t"),
    ]


async def test_requests_of_a_consumer_name_its_subscription(
    bed: Bed, wire: Wire, refusals: Callable[[], list[Facts]]
) -> None:
    await wire.subscribe(consumer_name="c")
    await wire.refused(Type.SEEK, consumer_id=0)
    names = {"topic": TOPIC, "subscription": "sub", "consumer": "c"}
    assert refusals() == [{"error": "MetadataError", "command": "SEEK", **names}]


def test_a_refusal_without_facts_has_none() -> None:
    assert BrokerServiceError("text").about == {}
