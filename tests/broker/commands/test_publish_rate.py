"""Publish rates: the broker does not read for a while from a connection that publishes too fast (B-42)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.producer_limits import LOOSE, put, put_topic
from tests.broker.commands.publish_rate import times
from tests.broker.wire import TOPIC, Bed, Type, Wire, batch_of, plain, serving

pytestmark = pytest.mark.req("B-42")
OTHER = f"{TOPIC}-other"


def rate(messages: int = -1, size: int = -1) -> dict[str, Any]:
    return {
        "publishMaxMessageRate": {
            "standalone": {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}
        }
    }


async def test_a_connection_pauses_until_there_are_tokens_again(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    put(bed, **rate(5))
    ping = wire.sends(*[plain(b"x")] * 8) + b"\0\0\0\x09\0\0\0\x05\x08\x12\x92\x01\0"
    await wire.write(ping)
    assert await times(wire, 8) == [0, 0, 0, 0, 0, 0.2, 0.4, 0.6]
    began = trio.current_time()
    await wire.expect(Type.PONG)  # a PING behind SENDs waits with them
    assert trio.current_time() - began == pytest.approx(0.2, abs=0.01)


async def test_everything_that_a_connection_says_pauses_and_no_other(bed: Bed, wire: Wire) -> None:
    put_topic(bed, **rate(1))
    await wire.producer()
    await wire.producer(OTHER, 1)
    other = await bed.connect()
    await other.producer(OTHER)
    await wire.publish(plain(b"x"))
    await wire.write(wire.sends(plain(b"y"), producer_id=1))
    await other.publish(plain(b"z"))
    await other.alive()
    assert not wire.inbox
    assert await times(wire, 1) == [1]


async def test_bytes_are_counted_as_they_come(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    size = len(plain(b"x"))
    put(bed, **rate(size=2 * size))
    await wire.write(wire.sends(*[plain(b"x")] * 5))
    found = await times(wire, 5)  # one token lets a message in, on credit
    assert found == pytest.approx([0, 0, 0.02, 0.52, 1.02], abs=0.02)


async def test_a_batch_is_taken_whole_and_paid_for(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    put(bed, **rate(10))
    batch = batch_of(*[b"x"] * 30)
    await wire.write(wire.sends(batch, batch, num_messages=30))
    assert await times(wire, 2) == [0, 2.1]


async def test_many_throttled_connections_go_on_in_turn(bed: Bed) -> None:
    put(bed, **rate(2))
    wires = [await bed.connect() for _ in range(4)]
    for wire in wires:
        await wire.producer()
    began = trio.current_time()
    for wire in wires:
        await wire.write(wire.sends(plain(b"x"), plain(b"y")))
    when = []
    for wire in wires:
        for _ in range(2):
            await wire.expect(Type.SEND_RECEIPT)
        when.append(trio.current_time() - began)
    assert sorted(when) == when
    assert when[-1] == pytest.approx(3, abs=0.6)  # eight messages, of which two were free


@pytest.mark.parametrize("change", [{}, {"publishMaxMessageRate": None}])
async def test_a_paused_connection_resumes_when_the_rate_is_removed(
    bed: Bed, wire: Wire, change: dict[str, Any]
) -> None:
    await wire.producer()
    put(bed, **rate(1))
    await wire.write(wire.sends(*[plain(b"x")] * 4))
    await wire.receipts(1)
    await wire.quiet(0.5)
    namespace = dict(bed.broker.metadata.namespaces["public/default"])
    del namespace["publishMaxMessageRate"]
    bed.broker.metadata.put_namespace("public/default", namespace | change)
    assert await times(wire, 3) == [0, 0, 0]


async def test_a_topics_rate_comes_before_its_namespaces_and_none_before_neither(bed: Bed, wire: Wire) -> None:
    put(bed, **rate(1))
    put_topic(bed, **rate(3))
    await wire.producer()
    await wire.write(wire.sends(*[plain(b"x")] * 4))
    assert await times(wire, 4) == pytest.approx([0, 0, 0, 0.33], abs=0.02)
    put_topic(bed, **rate(-1, -1))  # no limit
    await wire.write(wire.sends(*[plain(b"x")] * 2))
    assert (await times(wire, 2))[1] == pytest.approx(1, abs=0.05)


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("key", ["maxPublishRatePerTopicInMessages", "brokerPublisherThrottlingMaxMessageRate"])
async def test_a_broker_has_rates_of_its_own(key: str) -> None:
    settings: dict[str, Any] = {key: 2}
    async with serving(Config(**settings)) as bed:
        wire, other = await bed.connect(), await bed.connect()
        await wire.producer()
        await other.producer(OTHER)
        await wire.write(wire.sends(*[plain(b"x")] * 3))
        assert await times(wire, 3) == [0, 0, 0.5]
        alone = key.startswith("max")  # then each topic has the rate for itself
        await other.write(other.sends(plain(b"x")))
        await other.receipts(1)
        await other.write(other.sends(plain(b"x")))
        assert await times(other, 1) == pytest.approx([0 if alone else 1], abs=0.51 if not alone else 0.01)


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.serving(Config(brokerPublisherThrottlingMaxByteRate=2 * len(plain(b"x"))))
async def test_a_broker_has_a_rate_of_bytes(bed: Bed) -> None:
    wire, other = await bed.connect(), await bed.connect()
    await wire.producer()
    await other.producer(OTHER)
    await wire.write(wire.sends(*[plain(b"x")] * 2))
    await wire.receipts(2)
    await other.write(other.sends(*[plain(b"x")] * 3))
    assert (await times(other, 3))[2] > 0.4


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.serving(Config(brokerPublisherThrottlingMaxMessageRate=1, defaultNumberOfNamespaceBundles=1))
async def test_brokers_of_one_cluster_have_their_own(bed: Bed) -> None:
    cluster = bed.broker.cluster
    Broker(cluster)
    cluster.metadata.put_namespace("public/other", dict(cluster.metadata.namespaces["public/default"]))
    names = [TopicName.parse(f"persistent://public/{namespace}/t") for namespace in ("default", "other")]
    for name, broker in zip(names, cluster.brokers, strict=True):
        bundle = cluster.ownership.bundle_of(name)
        assert bundle is not None
        cluster.ownership.assign(str(name.namespace_name), bundle, broker)
    limits = [cluster.limits_of(name) for name in names]
    assert limits[0] is not limits[1]
    assert all(each.publish.is_active for each in limits)


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.serving(Config(brokerPublisherThrottlingMaxMessageRate=1, subscribeThrottlingRatePerConsumer=1))
async def test_a_system_topic_has_no_limits_of_the_broker(bed: Bed) -> None:
    topic = bed.broker.topics.create(TopicName.parse("persistent://public/default/__change_events"))
    assert topic.checks is None
    assert not topic.policies.subscribe_rate.subscribes


@pytest.mark.usefixtures("autojump_clock")
async def test_a_rate_of_the_broker_may_change_while_it_runs(bed: Bed, wire: Wire) -> None:
    dynamic = bed.broker.cluster.dynamic
    await wire.producer()
    for key in ("maxPublishRatePerTopicInMessages", "brokerPublisherThrottlingMaxMessageRate"):
        dynamic.put(key, "2")
        await wire.write(wire.sends(*[plain(b"x")] * 3))
        assert await times(wire, 3) == [0, 0, 0.5]
        dynamic.forget(key)
        await wire.write(wire.sends(*[plain(b"x")] * 20))
        assert (await times(wire, 20))[-1] < 0.6


async def test_non_persistent_topics_have_rates_too(bed: Bed, wire: Wire) -> None:
    await wire.producer(LOOSE)
    put(bed, **rate(5))
    await wire.write(wire.sends(*[plain(b"x")] * 7))
    assert await times(wire, 7) == [0, 0, 0, 0, 0, 0.2, 0.4]


async def test_a_paused_connection_is_not_taken_for_dead(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    put(bed, **rate(1))
    batch = batch_of(*[b"x"] * 200)
    await wire.write(wire.sends(batch, batch, num_messages=200))
    await wire.receipts(1)
    received = await wire.rest(199)
    assert {each.command.type for each in received} == {Type.PING}
    assert len(received) == 6  # one in each keep-alive interval; the broker reads no PONG
    assert not wire.ended
    await wire.expect(Type.SEND_RECEIPT)


async def test_a_limited_client_that_leaves_is_forgotten(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    put(bed, **rate(1))
    await wire.write(wire.sends(*[plain(b"x")] * 4))
    await wire.receipts(1)
    session = next(iter(bed.broker.sessions))
    session.close()
    bed.broker.turn.finish()
    topic = bed.topic()
    assert not topic.producers.by_name
    other = await bed.connect()
    await other.producer()
    await other.write(other.sends(plain(b"y")))
    assert await times(other, 1) == [0]
    assert topic.messages_in == 2  # messages that the broker had not handled are lost


async def test_paused_producers_are_counted(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    await wire.producer(OTHER, 1)
    put_topic(bed, **rate(2))
    await wire.write(wire.sends(*[plain(b"x")] * 4))
    await times(wire, 4)
    loaded = bed.broker.topics.loaded
    assert loaded[TOPIC].publish_limited == 3
    assert loaded[OTHER].publish_limited == 3  # counts for all topics of the connection, as in Pulsar


async def test_an_unloaded_topic_knows_nothing_of_before(bed: Bed, wire: Wire) -> None:
    put_topic(bed, **rate(2))
    await wire.producer()
    await wire.publish(plain(b"x"), plain(b"x"))
    bed.broker.topics.unload(bed.topic().name)
    other = await bed.connect()
    await other.producer()
    await other.write(other.sends(plain(b"x"), plain(b"x")))
    assert await times(other, 2) == [0, 0]


async def test_nobody_waits_for_a_topic_that_was_unloaded(bed: Bed, wire: Wire) -> None:
    put_topic(bed, **rate(1))
    await wire.producer()
    await wire.write(wire.sends(batch_of(*[b"x"] * 100), plain(b"x"), num_messages=100))
    await wire.receipts(1)
    began = trio.current_time()
    bed.broker.topics.unload(bed.topic().name)
    await wire.expect(Type.CLOSE_PRODUCER)
    await wire.producer()
    await wire.publish(plain(b"y"))
    assert trio.current_time() == began
