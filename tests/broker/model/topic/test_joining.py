"""Names, durability and stored properties of subscriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.refusals import refused_consumer
from tests.broker.web.admin.rest import TOPICS, rest_of
from tests.broker.wire import TOPIC, Bed, Earliest, KeyShared, Shared, Type, Wire, plain, serving

LOOSE = "non-persistent://public/default/t"


@pytest.mark.req("C-11")
@pytest.mark.parametrize("topic", [TOPIC, LOOSE])
async def test_the_names_of_replicators_are_reserved(wire: Wire, topic: str) -> None:
    reserved = (pb.ProducerBusy, "Subscription with reserved subscription name attempted")
    assert await refused_consumer(wire, "pulsar.repl.other", topic=topic) == reserved
    blank = await wire.request(Type.SUBSCRIBE, topic=topic, subscription=" ", subType=Shared, consumer_id=1)
    if topic == LOOSE:
        assert blank.type == Type.SUCCESS
    else:
        assert (blank.error.error, blank.error.message) == (pb.ProducerBusy, "Empty subscription name")


async def test_the_name_of_the_cursor_of_deduplication_is_reserved(wire: Wire) -> None:
    reserved = (pb.ProducerBusy, "Subscription with reserved subscription name attempted")
    assert await refused_consumer(wire, "pulsar.dedup") == reserved
    await wire.subscribe(LOOSE, "pulsar.dedup")


@pytest.mark.req("C-07", "B-14")
async def test_a_name_is_either_durable_or_not(wire: Wire) -> None:
    await wire.subscribe(name="durable")
    await wire.subscribe(name="reader", consumer_id=1, durable=False)
    refused = (pb.NotAllowedError, "Durable subscription with the same name already exists.")
    assert await refused_consumer(wire, "durable", consumer_id=2, durable=False) == refused
    refused = (pb.NotAllowedError, "NonDurable subscription with the same name already exists.")
    assert await refused_consumer(wire, "reader", consumer_id=2) == refused
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=1)
    await wire.subscribe(name="reader", consumer_id=2)


@pytest.mark.req("B-14", "C-13")
@pytest.mark.parametrize("topic", [TOPIC, LOOSE])
@pytest.mark.serving(Config(maxConsumersPerTopic=1))
async def test_the_subscription_of_a_refused_reader_is_removed(bed: Bed, wire: Wire, topic: str) -> None:
    await wire.subscribe(topic)
    code, _ = await refused_consumer(wire, "reader", consumer_id=1, topic=topic, durable=False)
    assert code == pb.ConsumerBusy
    assert list(bed.broker.topics.find(TopicName.parse(topic)).subscriptions) == ["sub"]


PROPERTIES = [{"key": "team", "value": "a"}, {"key": "use", "value": "b"}]


async def shown(bed: Bed) -> dict[str, Any]:
    stats = await rest_of(bed).get(f"{TOPICS}/t/stats")
    subscription: dict[str, Any] = stats["subscriptions"]["sub"]
    return subscription


@pytest.mark.req("B-13")
async def test_a_subscription_survives_with_its_properties_and_position(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        wire = await bed.connect()
        await wire.producer()
        positions = await wire.publish(plain(b"a"), plain(b"b"))
        await wire.subscribe(
            initialPosition=Earliest, subscription_properties=PROPERTIES, replicate_subscription_state=True
        )
        await wire.ack(positions[0], type=pb.CommandAck.Cumulative, properties=[{"key": "offset", "value": 7}])
    for _ in range(2):
        async with serving(data=tmp_path) as bed:
            stats = await shown(bed)
            assert stats["subscriptionProperties"] == {"team": "a", "use": "b"}
            assert (stats["isReplicated"], stats["replicated"], stats["msgBacklog"]) == (True, True, 1)
            assert bed.subscription().cursor.properties == {"pulsar.replicated.subscription": 1, "offset": 7}


async def test_only_the_first_subscribe_gives_properties(bed: Bed, wire: Wire) -> None:
    await wire.subscribe(type=Shared)
    await wire.subscribe(type=Shared, consumer_id=1, subscription_properties=PROPERTIES)
    assert (await shown(bed))["subscriptionProperties"] == {}
    assert not (await shown(bed))["replicated"]
    await wire.subscribe(type=Shared, consumer_id=2, replicate_subscription_state=True)
    assert (await shown(bed))["replicated"]
    await wire.subscribe(type=Shared, consumer_id=3)  # a SUBSCRIBE without the flag does not reset it
    assert (await shown(bed))["replicated"]
    bed.subscription().set_replicated(False)
    assert not (await shown(bed))["replicated"]


async def test_subscriptions_of_readers_have_properties_too(bed: Bed, wire: Wire) -> None:
    await wire.subscribe(durable=False, subscription_properties=PROPERTIES)
    assert (await shown(bed))["subscriptionProperties"] == {"team": "a", "use": "b"}
    assert not (await shown(bed))["durable"]


async def test_a_consumer_is_shown_as_it_described_itself(bed: Bed, wire: Wire) -> None:
    metadata = [{"key": "k", "value": "v"}]
    await wire.subscribe(type=KeyShared, consumer_name="c", priority_level=3, metadata=metadata)
    (consumer,) = bed.subscription().consumers
    assert (consumer.name, consumer.priority_level, consumer.metadata) == ("c", 3, {"k": "v"})
    assert (await shown(bed))["consumers"][0]["metadata"] == {"k": "v"}
