"""SUBSCRIBE: ids, refusals, commits; CLOSE_CONSUMER."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.refusals import refused_consumer
from tests.broker.held import HeldStorage
from tests.broker.wire import (
    TOPIC,
    Bed,
    Earliest,
    Exclusive,
    Failover,
    KeyShared,
    Shared,
    Type,
    Wire,
    frame_of,
    plain,
)

LOOSE = "non-persistent://public/default/t"


@pytest.mark.req("C-01")
async def test_a_living_consumer_id_is_answered_again(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    await wire.subscribe()
    await wire.subscribe(name="other")
    await wire.subscribe(topic=f"{TOPIC}2")
    assert list(bed.topic().subscriptions) == ["sub"]
    assert bed.broker.topics.names("public/default") == [TOPIC]


@pytest.mark.req("C-01")
async def test_a_consumer_id_that_is_being_created_is_refused(wire: Wire) -> None:
    both = [wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=3) for _ in "ab"]
    await wire.write(b"".join(both))
    refused = await wire.expect(Type.ERROR)
    assert (refused.request_id, refused.error) == (2, pb.ServiceNotReady)
    assert refused.message == "Consumer is already present on the connection"
    assert (await wire.expect(Type.SUCCESS)).request_id == 1


@pytest.mark.req("C-01")
async def test_closing_frees_the_id(wire: Wire) -> None:
    await wire.subscribe()
    for consumer_id in (0, 0, 77):
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=consumer_id)
    await wire.subscribe(name="other")


async def test_permits_sent_behind_a_subscribe_are_lost(wire: Wire, five: list[Position]) -> None:
    await wire.write(
        wire.numbered(
            Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=0, initialPosition=Earliest
        )
        + frame_of(Type.FLOW, consumer_id=0, messagePermits=10)
    )
    await wire.expect(Type.SUCCESS)
    await wire.quiet()
    await wire.flow()
    await wire.messages(5)


@pytest.mark.req("C-02", "B-40")
async def test_a_consumer_of_a_topic_that_may_not_be_created_is_refused(wire: Wire) -> None:
    absent = (pb.TopicNotFound, f"Topic {TOPIC} does not exist")
    assert await refused_consumer(wire, force_topic_creation=False) == absent
    await wire.subscribe()
    await wire.subscribe(name="other", consumer_id=1, force_topic_creation=False)


@pytest.mark.req("C-02", "B-40")
@pytest.mark.serving(Config(allowAutoTopicCreation=False))
async def test_a_broker_that_creates_nothing(bed: Bed, wire: Wire) -> None:
    assert await refused_consumer(wire) == (pb.TopicNotFound, f"Topic {TOPIC} does not exist")
    bed.broker.topics.create(TopicName.parse(TOPIC))
    await wire.subscribe()


@pytest.mark.req("C-03", "B-40")
@pytest.mark.serving(Config(allowAutoSubscriptionCreation=False))
async def test_a_subscription_that_may_not_be_created(bed: Bed, wire: Wire) -> None:
    code, text = await refused_consumer(wire)
    assert code == pb.SubscriptionNotFound
    assert text == "Subscription does not exist"
    await wire.subscribe(name="reader", durable=False)
    await wire.subscribe(topic=LOOSE, consumer_id=1)
    bed.topic().subscribe("sub", earliest=True)
    await wire.subscribe(consumer_id=2)


@pytest.mark.req("C-06")
async def test_compacted_reading_is_for_one_consumer_of_a_stored_topic(wire: Wire) -> None:
    refusal = (pb.NotAllowedError, "readCompacted only allowed on failover or exclusive subscriptions")
    assert await refused_consumer(wire, type=Shared, read_compacted=True) == refusal
    assert await refused_consumer(wire, type=KeyShared, read_compacted=True) == refusal
    loose = (pb.NotAllowedError, "readCompacted only valid on persistent topics")
    for loose_type in (Exclusive, Shared):
        assert await refused_consumer(wire, type=loose_type, topic=LOOSE, read_compacted=True) == loose
    await wire.subscribe(read_compacted=True)
    await wire.subscribe(name="other", type=Failover, consumer_id=1, read_compacted=True)


@pytest.mark.req("C-11")
async def test_subscriptions_may_have_almost_any_name(bed: Bed, wire: Wire) -> None:
    names = ["a/b", "a b", "a%2Fb", "ü", "x" * 300]
    for number, name in enumerate(names):
        await wire.subscribe(name=name, consumer_id=number)
    assert list(bed.topic().subscriptions) == names
    assert await refused_consumer(wire, "", consumer_id=99) == (pb.ProducerBusy, "Empty subscription name")


@pytest.mark.req("C-11")
@pytest.mark.serving(Config(strictlyVerifySubscriptionName=True))
async def test_names_may_be_verified_strictly(wire: Wire) -> None:
    for number, name in enumerate(["a:b", "a.b-c_d=e"]):
        await wire.subscribe(name=name, consumer_id=number)
    for name in ["a/b", "a b", "a%2Fb", "ü"]:
        code, text = await refused_consumer(wire, name, consumer_id=99)
        assert code == pb.ProducerBusy
        assert text.startswith("Please let the subscription only contains '/w(a-zA-Z_0-9)' or '_', the current")
        assert text.endswith(name)


@pytest.mark.serving(Config(subscriptionTypesEnabled=frozenset({"Exclusive"})))
async def test_types_may_be_disabled(wire: Wire) -> None:
    code, text = await refused_consumer(wire, type=Shared)
    assert (code, text) == (pb.NotAllowedError, f"Topic[{{{TOPIC}}}] doesn't support Shared sub type!")
    await wire.subscribe()


@pytest.mark.serving(Config(subscriptionKeySharedEnable=False))
async def test_key_shared_may_be_disabled(wire: Wire) -> None:
    disabled = "Key_Shared subscription is disabled by broker."
    assert await refused_consumer(wire, type=KeyShared) == (pb.NotAllowedError, disabled)
    await wire.subscribe(type=Shared)


@pytest.mark.req("B-36")
async def test_the_parent_of_partitions_takes_no_consumer(bed: Bed, wire: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(TOPIC), 2)
    found = f"Found partitioned metadata for non-partitioned topic: {TOPIC}"
    assert await refused_consumer(wire) == (pb.NotAllowedError, found)
    await wire.subscribe(f"{TOPIC}-partition-1")
    code, _ = await refused_consumer(wire, topic=f"{TOPIC}-partition-2", consumer_id=1)
    assert code == pb.TopicNotFound


@pytest.mark.parametrize("topic", ["http://public/default/t", "persistent://public/t", ""])
async def test_a_consumer_of_a_name_that_is_no_topic_is_refused(wire: Wire, topic: str) -> None:
    code, text = await refused_consumer(wire, topic=topic)
    assert code == pb.InvalidTopicName
    assert text.startswith("Invalid topic name: ")


async def test_metadata_of_a_consumer_may_be_so_large(wire: Wire) -> None:
    await wire.subscribe(metadata=[{"key": "k", "value": "v" * 1023}])
    code, _ = await refused_consumer(wire, consumer_id=1, metadata=[{"key": "k", "value": "v" * 1024}])
    assert code == pb.MetadataError


@pytest.mark.req("B-13")
async def test_a_subscription_is_there_when_it_is_kept(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Shared, consumer_id=0))
    await wire.quiet()
    store.release()
    await wire.expect(Type.SUCCESS)


@pytest.mark.req("B-13")
async def test_a_subscription_that_cannot_be_kept_is_refused(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Exclusive, consumer_id=0))
    await wire.quiet()
    store.fail()
    refused = await wire.expect(Type.ERROR)
    assert refused.error == pb.PersistenceError
    store.release()
    await wire.subscribe(name="s")
    await wire.flow()
    await wire.publish(plain(b"x"))
    assert await wire.payloads(1) == [b"x"]


async def test_a_client_that_leaves_before_its_subscription_is_kept(store: HeldStorage, bed: Bed, wire: Wire) -> None:
    store.holding = True
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=Exclusive, consumer_id=0))
    await wire.quiet()
    await wire.aclose()
    other = await bed.connect()
    await other.quiet()
    store.release()
    await other.subscribe(name="s")
