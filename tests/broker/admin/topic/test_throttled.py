"""Rates that are kept to, over REST: what is set takes effect at once, what is told of it, what stats count (B-42)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from tests.broker.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.wire import Bed, Type, Wire, plain, serving

pytestmark = pytest.mark.req("B-42")
DEFAULT = f"{NAMESPACES}/public/default"
STATS = f"{TOPICS}/t/stats"


async def test_how_often_producers_had_to_wait(bed: Bed, rest: Rest, wire: Wire) -> None:
    await wire.producer()
    answer = await rest.call("POST", f"{DEFAULT}/publishRate", {"publishThrottlingRateInMsg": 2})
    assert answer.status == 204
    await wire.write(wire.sends(*[plain(b"x")] * 4))
    await wire.receipts(4)
    assert (await rest.get(STATS))["publishRateLimitedTimes"] == 3
    await trio.sleep(60)  # statsUpdateFrequencyInSecs
    assert (await rest.get(STATS))["publishRateLimitedTimes"] == 0


async def test_how_often_a_limit_shortened_a_read(bed: Bed, rest: Rest, wire: Wire) -> None:
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


@pytest.mark.parametrize("key", ["maxPublishRatePerTopicInMessages", "brokerPublisherThrottlingMaxMessageRate"])
async def test_settings_of_a_running_broker(bed: Bed, rest: Rest, wire: Wire, key: str) -> None:
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
