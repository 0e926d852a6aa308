"""Rates over whole intervals."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from pulsarium.broker.admin.rates import Rate
from pulsarium.broker.config import Config
from tests.broker.admin.rest import TOPICS, rest_of
from tests.broker.wire import Earliest, Shared, plain, serving

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
