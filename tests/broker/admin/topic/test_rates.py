"""Rates over whole intervals."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from pulsarium.broker.config import Config
from pulsarium.broker.rates import Rate, Rates
from tests.broker.admin.rest import TOPICS, rest_of
from tests.broker.wire import Earliest, Shared, Type, plain, serving

STATS = f"{TOPICS}/t/stats"


async def test_after_an_interval(autojump_clock: MockClock) -> None:
    async with serving(Config(statsUpdateFrequencyInSecs=10)) as bed:
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


def test_rates_add_up() -> None:
    assert Rate(1.0, 10.0) + Rate(3.0, 30.0) == Rate(4.0, 40.0)
    assert Rate(4.0, 40.0).average_size == 10.0
    assert Rate().average_size == 0.0


async def test_of_a_partition_that_another_broker_serves(autojump_clock: MockClock) -> None:
    """Any broker answers for a partitioned topic."""
    async with serving(Config(statsUpdateFrequencyInSecs=10), brokers=2) as bed:
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


async def test_they_are_not_looked_at_once_nobody_answers_http(autojump_clock: MockClock) -> None:
    async with serving(Config(statsUpdateFrequencyInSecs=10)) as bed:
        rates = Rates(bed.broker)
        wire = await bed.connect()
        await wire.producer()
        producer = next(iter(bed.broker.loaded_topics())).producers.by_name.popitem()[1]
        rates.stop()
        producer.messages_in = 5
        await trio.sleep(21)
        assert rates.of(producer) == Rate()
