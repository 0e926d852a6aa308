"""UNSUBSCRIBE."""

from __future__ import annotations

import pytest

from pulsarium.broker.config.profile import PULSAR_3_0
from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import (
    Bed,
    Earliest,
    Failover,
    Latest,
    Shared,
    Type,
    Wire,
    plain,
)

LOOSE = "non-persistent://public/default/t"


async def test_unsubscribing_deletes_the_subscription(bed: Bed, wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(initialPosition=Earliest)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)
    assert list(bed.topic().subscriptions) == []
    assert await wire.refused(Type.UNSUBSCRIBE, consumer_id=0) == (pb.MetadataError, "Consumer not found")
    await wire.subscribe()
    await wire.flow()
    await wire.quiet()  # a new subscription, at the end


@pytest.mark.parametrize("type", [Shared, Failover])
async def test_a_consumer_unsubscribes_others_only_with_force(bed: Bed, wire: Wire, type: int) -> None:
    other = await bed.connect()
    for number, consumer in enumerate((wire, other)):
        await consumer.subscribe(type=type, consumer_name=f"c{number}")
    why = "Unconnected or shared consumer attempting to unsubscribe"
    for consumer in (wire, other):
        assert await consumer.refused(Type.UNSUBSCRIBE, consumer_id=0) == (pb.MetadataError, why)
        consumer.inbox.clear()
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0, force=True)
    assert (await other.expect(Type.CLOSE_CONSUMER)).request_id == 2**64 - 1
    assert list(bed.topic().subscriptions) == []
    await other.subscribe(type=type)


@pytest.mark.serving(profile=PULSAR_3_0)
async def test_3_0_knows_no_force(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    await wire.subscribe(type=Shared)
    await other.subscribe(type=Shared)
    code, _ = await wire.refused(Type.UNSUBSCRIBE, consumer_id=0, force=True)
    assert code == pb.MetadataError
    assert list(bed.topic().subscriptions) == ["sub"]


async def test_unsubscribing_readers_and_loose_subscriptions(wire: Wire) -> None:
    await wire.subscribe(durable=False)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)
    await wire.subscribe(topic=LOOSE)
    await wire.ask(Type.UNSUBSCRIBE, consumer_id=0)


@pytest.mark.req("B-13")
async def test_a_closed_subscription_stays_and_goes_on(wire: Wire, five: list[Position]) -> None:
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.messages(5)
    await wire.ack(five[0], five[2])
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await wire.publish(plain(b"meanwhile"), producer_id=50)
    await wire.subscribe(initialPosition=Latest, consumer_id=1)
    await wire.flow(consumer_id=1)
    messages = await wire.messages(4)
    assert [message.position for message in messages[:3]] == [five[1], five[3], five[4]]
    assert messages[3].payload == b"meanwhile"


async def test_consumers_without_a_name_have_none(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    (consumer,) = bed.subscription().consumers
    assert consumer.name == ""
