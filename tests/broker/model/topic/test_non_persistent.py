"""Non-persistent topics: a message goes only to consumers that are connected and have permits."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_4_2
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.web.admin.rest import NON_PERSISTENT, rest_of
from tests.broker.wire import TOPIC, Bed, Exclusive, Failover, KeyShared, Shared, Type, Wire, batch_of, plain

LOOSE = "non-persistent://public/default/t"


@pytest.mark.req("B-37")
async def test_non_persistent_messages_all_have_one_id(wire: Wire) -> None:
    await wire.producer(LOOSE)
    assert await wire.publish(plain(b"a"), plain(b"b")) == [Position(0, 0)] * 2


@pytest.mark.req("W-04")
async def test_a_client_that_cannot_take_a_batch_does_not_take_its_publisher_along(bed: Bed, wire: Wire) -> None:
    for topic in (TOPIC, LOOSE):
        old = await bed.connect(3)
        await old.subscribe(topic)
        await old.flow()
        await wire.producer(topic, producer_id=len(topic))
        await wire.publish(batch_of(b"a", b"b"), producer_id=len(topic))
        assert await old.closed() == []
        await wire.publish(plain(b"c"), producer_id=len(topic))


@pytest.mark.req("B-37")
async def test_messages_without_permits_are_dropped(wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE)
    assert await sender.publish(plain(b"nobody"), producer_id=1) == [Position(0, 0)]
    await wire.flow(2)
    await sender.publish(*[plain(b"%d" % i) for i in range(4)], producer_id=1)
    messages = await wire.messages(2)
    assert [message.payload for message in messages] == [b"0", b"1"]
    assert {message.position for message in messages} == {Position(0, 0)}
    await wire.quiet()


@pytest.mark.req("B-37")
async def test_a_loose_batch_may_drive_the_permits_below_zero(wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE, type=Shared)
    await wire.flow(1)
    await sender.publish(batch_of(b"a", b"b", b"c"), plain(b"dropped"), producer_id=1)
    await wire.messages(1)
    await wire.flow(3)
    await sender.publish(plain(b"d"), plain(b"e"), producer_id=1)
    assert await wire.payloads(1) == [b"d"]
    await wire.quiet()


@pytest.mark.req("B-37")
async def test_loose_acks_and_redeliveries_mean_nothing(wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE)
    await wire.flow()
    await sender.publish(plain(b"a"), producer_id=1)
    message = await wire.message()
    await wire.ack(message.position)
    await wire.redeliver()
    await wire.quiet()


@pytest.mark.req("B-37")
async def test_non_persistent_messages_go_round_shared_consumers(bed: Bed, wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    other = await bed.connect()
    for consumer in (wire, other):
        await consumer.subscribe(LOOSE, type=Shared)
        await consumer.flow()
    await sender.publish(*[plain(b"%d" % i) for i in range(10)], producer_id=1)
    received = await wire.payloads(5) + await other.payloads(5)
    assert sorted(received) == [b"%d" % i for i in range(10)]


@pytest.mark.req("B-37", "B-03")
async def test_a_loose_failover_consumer_is_active_at_once(bed: Bed, wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    await wire.subscribe(LOOSE, type=Failover, consumer_name="a")
    assert (await wire.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    await wire.flow()
    await sender.publish(plain(b"x"), producer_id=1)
    assert await wire.payloads(1) == [b"x"]
    other = await bed.connect()
    await other.subscribe(LOOSE, type=Failover, consumer_name="b", priority_level=1)
    assert not (await other.expect(Type.ACTIVE_CONSUMER_CHANGE)).is_active
    await wire.quiet(2)


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_4_2_a_loose_failover_consumer_does_not_hear_that_it_is_active(wire: Wire) -> None:
    await wire.subscribe(LOOSE, type=Failover, consumer_name="a")
    await wire.quiet(2)


@pytest.mark.req("B-37", "B-02")
async def test_the_first_of_several_loose_failover_consumers_is_active(bed: Bed, wire: Wire) -> None:
    """A hash ring chooses the active consumer only on persistent topics without partitions."""
    names = [f"c{number}" for number in range(8)]
    await wire.subscribe(LOOSE, type=Failover, consumer_name=names[0])
    for number, name in enumerate(names[1:], 1):
        await wire.subscribe(LOOSE, type=Failover, consumer_id=number, consumer_name=name)
    await wire.flow(consumer_id=0)
    assert (await wire.next()).command.active_consumer_change.is_active
    for number in range(1, len(names)):
        change = (await wire.next()).command.active_consumer_change
        assert (change.consumer_id, change.is_active) == (number, False)
    sender = await bed.connect()
    await sender.producer(LOOSE)
    await sender.publish(plain(b"x"))
    assert (await wire.message()).consumer_id == 0


@pytest.mark.req("B-37")
async def test_a_loose_subscription_whose_first_consumer_was_refused_stays(bed: Bed, wire: Wire) -> None:
    """The topic stays listed until another consumer of the subscription has come and left."""
    request: dict[str, Any] = {
        "topic": LOOSE,
        "subscription": "sub",
        "subType": KeyShared,
        "keySharedMeta": {"keySharedMode": 1},
    }
    assert (await wire.refused(Type.SUBSCRIBE, consumer_id=0, **request))[0] == pb.ConsumerAssignError
    listing: dict[str, Any] = {"namespace": "public/default", "mode": 1}
    assert (await wire.ask(Type.GET_TOPICS_OF_NAMESPACE, **listing)).topics == [LOOSE]
    await wire.subscribe(LOOSE)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert (await wire.ask(Type.GET_TOPICS_OF_NAMESPACE, **listing)).topics == []


@pytest.mark.req("B-37")
@pytest.mark.serving(Config(maxConcurrentNonPersistentMessagePerConnection=2, statsUpdateFrequencyInSecs=1))
async def test_only_so_many_non_persistent_messages_are_taken_at_once(bed: Bed) -> None:
    wire, sender, rest = await bed.connect(), await bed.connect(), rest_of(bed)
    await wire.subscribe(LOOSE)
    await wire.flow()
    await sender.producer(LOOSE)
    await sender.producer(f"{LOOSE}2", 1)
    for _ in range(2):  # the count begins at 0 with each read from the connection
        first = sender.sends(*[plain(b"%d" % i) for i in range(2)])
        await sender.write(first + sender.sends(*[plain(b"x")] * 3, producer_id=1) + sender.sends(plain(b"y")))
        taken = [position != Position(-1, -1) for position in await sender.receipts(6)]
        assert taken == [True, True, True, False, False, False]
        assert await wire.payloads(2) == [b"0", b"1"]
    await wire.quiet(1.1)
    stats = await rest.get(f"{NON_PERSISTENT}/t2/stats")
    assert stats["msgDropRate"] == stats["publishers"][0]["msgDropRate"] == 4.0  # two for each round
    stats = await rest.get(f"{NON_PERSISTENT}/t/stats")
    assert stats["msgDropRate"] == 2.0
    assert stats["subscriptions"]["sub"]["msgDropRate"] == 0.0


@pytest.mark.req("B-37")
async def test_with_the_usual_limit_reading_pauses_before_anything_is_dropped(bed: Bed, wire: Wire) -> None:
    await wire.producer(LOOSE)
    assert set(await wire.publish(*[plain(b"x")] * 1500)) == {Position(0, 0)}


@pytest.mark.req("B-37", "B-51")
@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=1))
async def test_dropped_non_persistent_messages_are_counted(bed: Bed) -> None:
    wire, rest = await bed.connect(), rest_of(bed)
    await wire.producer(LOOSE)
    await wire.subscribe(LOOSE)
    await wire.publish(plain(b"a"), batch_of(b"b", b"c", b"d"))
    await wire.quiet(1.1)
    stats = await rest.get(f"{NON_PERSISTENT}/t/stats")
    assert stats["subscriptions"]["sub"]["msgDropRate"] == 4.0
    assert stats["msgDropRate"] == 0.0


@pytest.mark.req("B-37")
async def test_loose_keys_stay_with_their_consumer(bed: Bed, wire: Wire, sender: Wire) -> None:
    await sender.producer(LOOSE, 1)
    other = await bed.connect()
    for number, consumer in enumerate((wire, other)):
        await consumer.subscribe(LOOSE, type=KeyShared, consumer_name=f"c{number}")
        await consumer.flow()
    keys = [f"key-{i}" for i in range(20)]
    sent = [plain(key.encode(), partition_key=key) for key in keys]
    await sender.publish(*sent, *sent, producer_id=1)
    mine, others = [[frame.trailing for frame in await consumer.rest()] for consumer in (wire, other)]
    assert len(mine) + len(others) == 40
    assert mine
    assert others
    assert not set(mine) & set(others)


@pytest.mark.req("B-37", "B-16")
@pytest.mark.parametrize("type", [Exclusive, Shared, Failover, KeyShared])
async def test_the_type_of_a_loose_subscription_goes_with_its_consumers(wire: Wire, type: int) -> None:
    await wire.subscribe(LOOSE, type=type)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.subscribe(LOOSE, type=Shared)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)
    await wire.subscribe(LOOSE, type=type)


async def test_a_loose_subscription_is_deleted_with_its_consumers(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    for consumer in (wire, other):
        await consumer.subscribe(LOOSE, type=Shared)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0, force=True)
    await other.expect(Type.CLOSE_CONSUMER)
    assert not bed.broker.topics.loaded[LOOSE].subscriptions
