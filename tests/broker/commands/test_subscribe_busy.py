"""SUBSCRIBE: the consumers that may share a subscription."""

from __future__ import annotations

from itertools import permutations

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.refusals import refused_consumer
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
    plain,
    serving,
)

LOOSE = "non-persistent://public/default/t"
BUSY = (pb.ConsumerBusy, "Exclusive consumer is already connected")


@pytest.mark.req("C-04", "B-01")
async def test_a_living_exclusive_consumer_stays(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    other = await bed.connect()
    await other.write(other.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=0))
    await wire.expect(Type.PING)
    await other.quiet(4.9)
    await wire.send(Type.PONG)
    refused = (await other.reply(1)).error
    assert (refused.error, refused.message) == BUSY


@pytest.mark.req("C-04", "B-01")
async def test_even_the_connection_that_asks_is_asked(wire: Wire) -> None:
    await wire.subscribe()
    await wire.write(wire.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=1))
    await wire.expect(Type.PING)
    await wire.send(Type.PONG)
    refused = (await wire.reply(2)).error
    assert (refused.error, refused.message) == BUSY
    await wire.flow()
    await wire.alive()


@pytest.mark.req("C-04", "B-01", "W-12")
async def test_a_dead_exclusive_consumer_is_evicted(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.publish(plain(b"before"))
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.message()
    other = await bed.connect()
    started = bed.broker.clock.monotonic()
    await other.subscribe()
    assert 5 <= bed.broker.clock.monotonic() - started < 5.5
    assert [received.command.type for received in await wire.closed()] == [Type.PING]
    await other.flow()
    assert (await other.message()).payload == b"before"


@pytest.mark.req("C-04", "B-14")
@pytest.mark.parametrize("topic", [TOPIC, LOOSE])
async def test_a_topic_that_goes_with_a_dead_consumer_is_created_again(bed: Bed, wire: Wire, topic: str) -> None:
    await wire.subscribe(topic, durable=False)
    other = await bed.connect()
    await other.subscribe(topic, durable=False)  # answered five seconds later
    await other.flow()
    sender = await bed.connect()
    await sender.producer(topic)
    await sender.publish(plain(b"x"))
    assert await other.payloads(1) == [b"x"]


@pytest.mark.req("C-04")
async def test_two_exclusive_consumers_wait_for_a_dead_consumer(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    first, second = await bed.connect(), await bed.connect()
    for other in (first, second):
        await other.write(
            other.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=0)
        )
    await wire.expect(Type.PING)
    assert (await first.reply(1)).type == Type.SUCCESS
    await first.expect(Type.PING)  # the second now waits for the first one's PONG
    await first.send(Type.PONG)
    assert (await second.reply(1)).error.error == pb.ConsumerBusy


@pytest.mark.req("C-04", "B-50")
async def test_a_topic_that_is_unloaded_while_an_owner_is_asked(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    other = await bed.connect()
    await other.write(other.numbered(Type.SUBSCRIBE, topic=TOPIC, subscription="sub", subType=Exclusive, consumer_id=0))
    await wire.expect(Type.PING)
    bed.broker.topics.unload(TopicName.parse(TOPIC))
    await wire.expect(Type.CLOSE_CONSUMER)
    reply = await other.reply(1)  # after five seconds, because the owner is silent
    if reply.type == Type.ERROR:
        assert reply.error.error == pb.ServiceNotReady  # the client looks up the topic again
        await other.subscribe()
    await other.producer()
    await other.flow()
    await other.publish(plain(b"x"))
    assert await other.payloads(1) == [b"x"]


@pytest.mark.req("C-05")
@pytest.mark.parametrize(("first", "second"), [*permutations([Exclusive, Shared, Failover, KeyShared], 2)])
async def test_types_do_not_mix(bed: Bed, wire: Wire, first: int, second: int) -> None:
    await wire.subscribe(type=first)
    other = await bed.connect()
    names = [pb.CommandSubscribe.SubType.Name(each) for each in (first, second)]
    code, text = await refused_consumer(other, type=second)
    assert code == pb.ConsumerBusy
    assert text == (
        f"Subscription is of different type. Active subscription type of '{names[0]}' is different than the "
        f"connecting consumer's type '{names[1]}'."
    )
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await other.subscribe(type=second)  # no consumer is left, so the type may change


@pytest.mark.req("C-13")
@pytest.mark.parametrize(
    ("config", "text"),
    [
        (Config(maxConsumersPerSubscription=2), "Subscription reached max consumers limit"),
        (Config(maxConsumersPerTopic=2), "Topic reached max consumers limit"),
    ],
)
async def test_a_topic_takes_only_so_many_consumers(autojump_clock: object, config: Config, text: str) -> None:
    async with serving(config) as bed:
        wire = await bed.connect()
        for consumer_id in range(2):
            await wire.subscribe(type=Shared, consumer_id=consumer_id)
        assert await refused_consumer(wire, type=Shared, consumer_id=2) == (pb.ConsumerBusy, text)
        if config.maxConsumersPerTopic:
            assert await refused_consumer(wire, "other", consumer_id=2) == (pb.ConsumerBusy, text)
        await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
        await wire.subscribe(type=Shared, consumer_id=2)
