"""CONSUMER_STATS."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PULSAR_4_2
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import (
    Bed,
    Shared,
    Type,
    Wire,
)

LOOSE = "non-persistent://public/default/t"


async def test_stats_of_a_consumer(bed: Bed, wire: Wire, sender: Wire) -> None:
    await wire.subscribe(type=Shared, consumer_name="me")
    await wire.flow(10)
    await sender.publish_numbered(4)
    positions = [message.position for message in await wire.messages(4)]
    await wire.ack(positions[0])
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=0)
    assert stats.consumerName == "me"
    assert stats.availablePermits == 6
    assert stats.unackedMessages == 3
    assert stats.msgBacklog == 3
    assert stats.type == "Shared"
    assert stats.address.startswith("/test:")
    assert not stats.blockedConsumerOnUnackedMsgs
    assert stats.connectedSince.endswith("Z")
    assert not stats.HasField("error_code")


async def test_stats_of_an_exclusive_or_loose_consumer(wire: Wire, sender: Wire) -> None:
    await wire.subscribe()
    await wire.subscribe(topic=LOOSE, consumer_id=1)
    await sender.publish_numbered(2)
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=0)
    assert (stats.type, stats.msgBacklog, stats.unackedMessages) == ("Exclusive", 2, 0)
    assert (await wire.ask(Type.CONSUMER_STATS, consumer_id=1)).msgBacklog == 0


async def test_stats_of_an_unknown_consumer(wire: Wire) -> None:
    stats = await wire.ask(Type.CONSUMER_STATS, consumer_id=7)
    assert stats.error_code == pb.ConsumerNotFound
    await wire.alive()


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_stats_of_an_unknown_consumer_as_the_release_answers(wire: Wire) -> None:
    await wire.write(wire.numbered(Type.CONSUMER_STATS, consumer_id=7))
    assert await wire.closed() == []
