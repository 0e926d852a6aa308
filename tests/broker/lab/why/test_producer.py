"""Explanations of producers that cannot be created, or cannot publish."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.lab import Lab
from pulsarium.broker.lab.why import NotThere, Why, WhyError
from pulsarium.broker.model.policy.policies import STORAGE
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.lab.why.asking import why as of_message
from tests.broker.model.dispatch.sharing import joined
from tests.broker.model.upkeep.policed import set_policies
from tests.broker.wire import TOPIC, Bed, Exclusive, Type, Wire, plain, serving


def why(bed: Bed, producer: str = "", topic: str = TOPIC) -> Why:
    lab = bed.broker.cluster.attached(Lab)
    return lab.why(topic, producer=producer)


async def test_a_topic_that_does_not_exist_is_created_or_the_setting_is_named(bed: Bed) -> None:
    assert why(bed).reason == "can-be-created"
    set_policies(bed.broker, autoTopicCreationOverride={"allowAutoTopicCreation": False})
    found = why(bed)
    assert (found.reason, "(allowAutoTopicCreation)" in found.text) == ("topic-not-found", True)
    with pytest.raises(NotThere, match="there is no namespace public/nowhere"):
        why(bed, topic="persistent://public/nowhere/t")


async def test_a_partitioned_topic_has_no_producers_of_its_own(bed: Bed) -> None:
    bed.broker.metadata.put_partitioned(TopicName.parse(TOPIC), 3)
    with pytest.raises(WhyError, match="has 3 partitions; name one"):
        why(bed)


async def test_a_connected_producer_publishes(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    await wire.publish(plain(b"0"))
    assert (why(bed).reason, why(bed).details["producers"]) == ("can-be-created", 1)
    found = why(bed, "p")
    assert (found.reason, found.details["messagesIn"]) == ("publishes", 1)
    assert found.text.startswith("p is connected from ")


@pytest.mark.parametrize(
    ("policies", "error", "facts"),
    [
        ({"max_producers_per_topic": 1}, "ProducerBusy", {"limit": "maxProducersPerTopic", "allowed": 1}),
        (
            {"backlog_quota_map": {STORAGE: {"limitSize": 0, "limitTime": -1, "policy": "producer_request_hold"}}},
            "ProducerBlockedQuotaExceededError",
            {"limit": STORAGE, "held_by": "subscription sub"},
        ),
    ],
)
async def test_a_limit_that_refuses_new_producers_is_named(
    bed: Bed, wire: Wire, policies: dict[str, Any], error: str, facts: dict[str, Any]
) -> None:
    await wire.producer(producer_name="p")
    await joined(bed, "c", permits=0)
    await wire.publish(plain(b"0"))
    set_policies(bed.broker, **policies)
    found = why(bed, "other")
    assert (found.reason, found.details["error"]) == ("refused", error)
    assert found.details.items() >= facts.items()


async def test_exclusive_access_of_another_producer_is_named(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="owner", producer_access_mode=pb.Exclusive)
    waits = await bed.connect(flags=["supports_partial_producer"])
    await waits.producer(producer_name="waits", producer_access_mode=pb.WaitForExclusive)
    assert "held by owner at" in why(bed, "other").text
    found = why(bed, "waits")
    assert (found.reason, found.details["before"]) == ("waits-for-exclusive", 0)
    assert found.text.startswith("waits waits for exclusive access, which owner at ")


async def test_the_last_refusal_of_a_producer_stays_known(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, producer_name="p")
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    found = why(bed, "p")
    assert found.text.startswith("nothing hinders a shared producer; the last refusal was of p at 20")
    (refusal,) = found.details["refusals"]
    assert (refusal["error"], refusal["held_by"].partition(" ")[0]) == ("ProducerBusy", "p")
    assert "refusals" not in why(bed, "other").details


async def test_a_terminated_topic_takes_no_messages(bed: Bed, wire: Wire) -> None:
    await wire.producer(producer_name="p")
    bed.topic().terminate()
    await wire.rest()
    assert why(bed, "p").reason == why(bed).reason == "terminated"


async def test_a_publish_rate_that_pauses_the_connection_is_named(bed: Bed, wire: Wire) -> None:
    set_policies(bed.broker, publishMaxMessageRate={"standalone": {"publishThrottlingRateInMsg": 1}})
    await wire.producer(producer_name="p")
    await wire.publish(plain(b"0"), plain(b"1"), plain(b"2"))
    found = why(bed, "p")
    assert (found.reason, found.text.endswith("the publish rate of the topic is used up")) == ("paused", True)


@pytest.mark.serving(Config(connectionLivenessCheckTimeoutMillis=0))
async def test_a_subscription_names_the_consumer_that_was_refused_and_the_one_that_holds_it(bed: Bed) -> None:
    await joined(bed, "first", type=Exclusive)
    wire = await bed.connect()
    fields = {"topic": TOPIC, "subscription": "sub", "subType": Exclusive, "consumer_id": 0, "consumer_name": "second"}
    await wire.refused(Type.SUBSCRIBE, **fields)
    text = of_message(bed).text
    assert "; the last refusal was of second at 20" in text
    assert "ConsumerBusy, Exclusive consumer is already connected, held by first at " in text


async def test_a_question_about_both_is_refused(bed: Bed, wire: Wire) -> None:
    lab = bed.broker.cluster.attached(Lab)
    with pytest.raises(WhyError, match="not about both"):
        lab.why(TOPIC, "sub", None, "p")


async def test_a_reset_forgets_refusals() -> None:
    async with serving() as bed:
        wire = await bed.connect()
        await wire.producer(producer_name="p")
        await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, producer_name="p")
        lab = bed.broker.cluster.attached(Lab)
        await lab.state.reset()
        assert "refusals" not in why(bed, "p").details
