"""Measured rates over whole intervals, and rate limits (B-42)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.net import rounds
from pulsarium.broker.web.rates import IntervalRate, Rates
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Cumulative, Earliest, Shared, Type, Wire, batch_of, plain, serving

STATS = f"{TOPICS}/t/stats"
DEFAULT = f"{NAMESPACES}/public/default"


@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=10))
async def test_rates_are_those_of_the_last_whole_interval(bed: Bed) -> None:
    rest, wire = rest_of(bed), await bed.connect()
    entry = plain(b"x" * 20)
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.publish(*[entry] * 5)
    await wire.flow()
    await wire.messages(5)
    before = await rest.get(STATS)
    assert before["msgRateIn"] == before["msgRateOut"] == before["averageMsgSize"] == 0.0
    await trio.sleep(11)
    stats = await rest.get(STATS)
    assert (stats["msgRateIn"], stats["msgThroughputIn"]) == (0.5, 0.5 * len(entry))
    assert (stats["msgRateOut"], stats["averageMsgSize"]) == (0.5, len(entry))
    assert stats["publishers"][0]["msgRateIn"] == 0.5
    subscription = stats["subscriptions"]["sub"]
    assert subscription["msgRateOut"] == subscription["consumers"][0]["msgRateOut"] == 0.5
    await trio.sleep(10)
    assert (await rest.get(STATS))["msgRateIn"] == 0.0


@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=10))
async def test_a_shared_consumer_has_rates_of_acknowledged_and_redelivered_messages(bed: Bed) -> None:
    rest, wire = rest_of(bed), await bed.connect()
    await wire.producer()
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    batch, *positions = await wire.publish(batch_of(b"1", b"2", b"3"), *[plain(b"x")] * 6)
    await wire.flow()
    await wire.messages(7)
    await wire.ack(batch, *positions[:2])
    await wire.redeliver(positions[2:])
    await trio.sleep(11)
    stats = (await rest.get(STATS))["subscriptions"]["sub"]
    assert (stats["messageAckRate"], stats["msgRateRedeliver"]) == (0.5, 0.4)
    (consumer,) = stats["consumers"]
    assert (consumer["messageAckRate"], consumer["msgRateRedeliver"]) == (0.5, 0.4)


@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=10))
async def test_the_acknowledgements_of_an_exclusive_consumer_count_as_in_pulsar(bed: Bed) -> None:
    """A cumulative acknowledgement counts as one message, and an individual one as none."""
    rest, wire = rest_of(bed), await bed.connect()
    await wire.producer()
    await wire.subscribe(initialPosition=Earliest)
    positions = await wire.publish(*[plain(b"x")] * 6)
    await wire.flow()
    await wire.messages(6)
    await wire.ack(positions[3], type=Cumulative)
    await wire.ack(*positions[4:])
    await trio.sleep(11)
    assert (await rest.get(STATS))["subscriptions"]["sub"]["messageAckRate"] == 0.1


def test_rates_add_up() -> None:
    assert IntervalRate(1.0, 10.0) + IntervalRate(3.0, 30.0) == IntervalRate(4.0, 40.0)
    assert IntervalRate(4.0, 40.0).average_size == 10.0
    assert IntervalRate().average_size == 0.0


@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=10), brokers=2)
async def test_any_broker_knows_the_rates_of_a_partitioned_topic(bed: Bed) -> None:
    first, second = rest_of(bed), rest_of(bed, 1)
    await first.done("PUT", f"{TOPICS}/p/partitions", 1)
    name = "persistent://public/default/p-partition-0"
    wire = await bed.connect(broker=1)
    await wire.ask(Type.LOOKUP, topic=name, authoritative=True)
    await wire.producer(name)
    await wire.publish(*[plain(b"x")] * 5)
    await trio.sleep(11)
    for rest in (first, second):
        assert (await rest.get(f"{TOPICS}/p/partitioned-stats"))["msgRateIn"] == 0.5


@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=10))
async def test_rates_are_not_updated_once_http_has_stopped(bed: Bed) -> None:
    rates = Rates(bed.broker)
    wire = await bed.connect()
    await wire.producer()
    producer = next(iter(bed.broker.loaded_topics())).producers.by_name.popitem()[1]
    rates.stop()
    producer.messages_in = 5
    await trio.sleep(21)
    assert rates.of(producer) == IntervalRate()


@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=10))
async def test_the_rates_of_each_subscription_are_counted_in_a_step_of_their_own(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []

    def one_step(steps: Iterator[None]) -> bool:
        taken.append(next(steps, "over"))
        return taken[-1] is None

    monkeypatch.setattr(rounds, "work_for_a_slice", one_step)
    rest, wire = rest_of(bed), await bed.connect()
    await wire.producer()
    for consumer_id in range(3):
        await wire.subscribe(name=f"s{consumer_id}", consumer_id=consumer_id)
        await wire.flow(10, consumer_id)
    await wire.publish(*[plain(b"x")] * 5)
    await trio.sleep(11)
    assert taken.count(None) == 1 + 3  # the producers, and each subscription
    stats = await rest.get(STATS)
    assert [each["msgRateOut"] for each in stats["subscriptions"].values()] == [0.5] * 3


# rate limits


@pytest.mark.req("B-42")
async def test_stats_count_how_often_producers_had_to_wait(bed: Bed, rest: Rest, wire: Wire) -> None:
    await wire.producer()
    answer = await rest.call("POST", f"{DEFAULT}/publishRate", {"publishThrottlingRateInMsg": 2})
    assert answer.status == 204
    await wire.write(wire.sends(*[plain(b"x")] * 4))
    await wire.receipts(4)
    assert (await rest.get(STATS))["publishRateLimitedTimes"] == 3
    await trio.sleep(60)  # statsUpdateFrequencyInSecs
    assert (await rest.get(STATS))["publishRateLimitedTimes"] == 0


@pytest.mark.req("B-42")
async def test_stats_count_how_often_a_limit_shortened_a_read(bed: Bed, rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe()
    await wire.flow()
    await rest.call("POST", f"{TOPICS}/t/dispatchRate", {"dispatchThrottlingRateInMsg": 2})
    await rest.call("POST", f"{TOPICS}/t/sub/dispatchRate", {"dispatchThrottlingRateInByte": 10_000})
    await wire.publish(*[plain(b"x")] * 3)
    await wire.messages(3)
    stats = (await rest.get(STATS))["subscriptions"]["sub"]
    assert stats["dispatchThrottledMsgEventsByTopicLimit"] >= 2
    assert stats["dispatchThrottledBytesEventsBySubscriptionLimit"] >= 1
    assert stats["dispatchThrottledMsgEventsByBrokerLimit"] == 0


@pytest.mark.req("B-42")
@pytest.mark.usefixtures("autojump_clock")
async def test_the_brokers_own_rates_are_applied() -> None:
    config = Config(dispatchThrottlingRatePerTopicInMsg=5, dispatchThrottlingRatePerSubscriptionInByte=6)
    async with serving(config) as bed:
        rest = rest_of(bed)
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()

        def rate(messages: int, size: int) -> dict[str, Any]:
            limits = {"dispatchThrottlingRateInMsg": messages, "dispatchThrottlingRateInByte": size}
            return {**limits, "relativeToPublishRate": False, "ratePeriodInSecond": 1}

        assert await rest.get(f"{TOPICS}/t/dispatchRate?applied=true") == rate(5, 0)
        assert await rest.get(f"{TOPICS}/t/subscriptionDispatchRate?applied=true") == rate(0, 6)
        assert await rest.get(f"{TOPICS}/t/sub/dispatchRate?applied=true") == rate(0, 6)
        assert await rest.get(f"{TOPICS}/t/replicatorDispatchRate?applied=true") == rate(0, 0)


@pytest.mark.req("B-42")
@pytest.mark.parametrize("key", ["maxPublishRatePerTopicInMessages", "brokerPublisherThrottlingMaxMessageRate"])
async def test_rates_of_a_running_broker_change_at_once(bed: Bed, rest: Rest, wire: Wire, key: str) -> None:
    await wire.producer()
    path = f"{ADMIN}/brokers/configuration/{key}"
    await rest.call("POST", f"{path}/1")
    await wire.write(wire.sends(*[plain(b"x")] * 3))
    await wire.receipts(1)
    await wire.quiet(0.5)
    await rest.call("DELETE", path)
    began = trio.current_time()
    await wire.receipts(2)
    assert trio.current_time() == began
    await wire.send(Type.PING)
    await wire.expect(Type.PONG)
