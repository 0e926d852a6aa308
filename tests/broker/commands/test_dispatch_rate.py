"""Dispatch rates: messages go out no faster than a subscription, its topic and its broker allow (B-42)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.model.subscription.reasons import Reason
from tests.broker.commands.dispatch_rate import times
from tests.broker.commands.producer_limits import put, put_topic
from tests.broker.wire import TOPIC, Bed, Earliest, Exclusive, KeyShared, Shared, Type, Wire, batch_of, plain, serving

pytestmark = pytest.mark.req("B-42")
OTHER = f"{TOPIC}-other"


def rate(messages: int = -1, size: int = -1, period: int = 1, *, relative: bool = False) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "ratePeriodInSecond": period,
        "relativeToPublishRate": relative,
    }


def of_topic(**limits: Any) -> dict[str, Any]:
    return {"topicDispatchRate": {"standalone": rate(**limits)}}


@pytest.mark.parametrize("kind", [Exclusive, Shared, KeyShared])
async def test_the_rate_bounds_the_messages_of_each_second(bed: Bed, wire: Wire, sender: Wire, kind: int) -> None:
    put(bed, **of_topic(messages=5))
    await sender.publish(*[plain(b"x")] * 12)
    await wire.subscribe(type=kind, initialPosition=Earliest)
    await wire.flow()
    assert await times(wire, 12) == [0] * 5 + [1] * 5 + [2] * 2


async def test_two_consumers_have_them_together(bed: Bed, wire: Wire, sender: Wire) -> None:
    put(bed, **of_topic(messages=2))
    await sender.publish(*[plain(b"x")] * 4)
    await wire.subscribe(type=Shared, initialPosition=Earliest)
    await wire.subscribe(type=Shared, consumer_id=1)
    await wire.flow(10)
    await wire.flow(10, consumer_id=1)
    messages = await wire.messages(2)
    assert len({message.consumer_id for message in messages}) == 1
    await wire.quiet(0.9)
    assert {message.consumer_id for message in await wire.messages(2)} != {messages[0].consumer_id}


async def test_subscriptions_share_a_topics_rate_and_have_their_own(bed: Bed, sender: Wire) -> None:
    wires = [await bed.connect() for _ in range(2)]
    for number, wire in enumerate(wires):
        await wire.subscribe(name=f"sub-{number}")
        await wire.flow()
    put_topic(bed, **of_topic(messages=4))
    await sender.publish(*[plain(b"x")] * 4)
    received = [len(await wire.rest(0.5)) for wire in wires]
    assert sum(received) == 4
    put_topic(bed, subscriptionDispatchRate={"standalone": rate(1)})
    assert [len(await wire.rest(0.5)) for wire in wires] == [1 if count < 4 else 0 for count in received]
    put_topic(bed, subscriptionPolicies={"sub-0": {"dispatchRate": rate(2)}})
    await wires[0].rest(10)
    await sender.publish(*[plain(b"x")] * 4)
    await wires[1].messages(4)
    assert await times(wires[0], 4) == [0, 0, 1, 1]


async def test_bytes_are_entries_of_average_size(bed: Bed, wire: Wire, sender: Wire) -> None:
    size = len(plain(b"x" * 936))
    put(bed, **of_topic(size=2 * (size + 64)))
    await sender.publish(*[plain(b"x" * 936)] * 5)
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    assert await times(wire, 5) == [0, 0, 0, 1, 1]  # the 128 bytes that are left allow one more entry, on credit


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize(("counts_batches", "expected"), [(False, [0, 0, 20]), (True, [0, 0, 1])])
async def test_batches_are_paid_for_afterwards(counts_batches: bool, expected: list[int]) -> None:
    async with serving(Config(dispatchThrottlingOnBatchMessageEnabled=counts_batches)) as bed:
        put(bed, **of_topic(messages=2))
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        await wire.publish(*[batch_of(*[b"x"] * 20)] * 3, num_messages=20)
        assert await times(wire, 3) == expected


async def test_a_period_may_be_longer(bed: Bed, wire: Wire, sender: Wire) -> None:
    put(bed, **of_topic(messages=1, period=7))
    await wire.subscribe()
    await wire.flow()
    await sender.publish(plain(b"x"), plain(b"y"))
    assert await times(wire, 2) == [0, 7]


async def test_redelivered_messages_count_against_the_dispatch_rate(bed: Bed, wire: Wire, sender: Wire) -> None:
    put(bed, **of_topic(messages=2))
    await wire.subscribe(type=Shared)
    await wire.flow()
    await sender.publish(plain(b"x"), plain(b"y"))
    positions = [message.position for message in await wire.messages(2)]
    await wire.redeliver(positions)
    assert await times(wire, 2) == [1, 1]


async def test_a_rate_that_changes_holds_at_once(bed: Bed, wire: Wire, sender: Wire) -> None:
    put(bed, **of_topic(messages=1, period=100))
    await wire.subscribe()
    await wire.flow()
    await sender.publish(*[plain(b"x")] * 6)
    assert await times(wire, 1) == [0]
    await wire.quiet(5)
    put(bed, **of_topic(messages=2, period=100))
    assert await times(wire, 2) == [0, 0]
    await wire.quiet(5)
    put(bed, topicDispatchRate={})
    assert await times(wire, 3) == [0, 0, 0]


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.serving(Config(statsUpdateFrequencyInSecs=5))
async def test_more_than_comes_in(bed: Bed) -> None:
    put(bed, **of_topic(messages=1, relative=True))
    wire = await bed.connect()
    await wire.producer()
    await wire.subscribe()
    await wire.publish(*[plain(b"x")] * 15)
    await trio.sleep(5)
    await wire.flow()  # three messages a second came in, so four may go out until the rate is measured again
    assert await times(wire, 15) == [0.0] * 4 + [1] * 4 + [2] * 4 + [3] * 3
    await trio.sleep(10)
    await wire.publish(plain(b"x"))
    await wire.message()
    await trio.sleep(5)
    await wire.publish(*[plain(b"x")] * 3)
    assert await times(wire, 3) == [0, 1, 2]


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("key", ["dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerSubscriptionInMsg"])
async def test_a_broker_has_rates_for_each_topic_and_subscription(key: str) -> None:
    settings: dict[str, Any] = {key: 3}
    async with serving(Config(**settings)) as bed:
        wire = await bed.connect()
        await wire.producer()
        await wire.subscribe()
        await wire.flow()
        await wire.publish(*[plain(b"x")] * 3)
        await wire.messages(3)
        await wire.publish(plain(b"x"))
        assert await times(wire, 1) == [1]


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.serving(Config(dispatchThrottlingRateInMsg=3))
async def test_a_broker_has_a_rate_for_all_together_which_may_change(bed: Bed, wire: Wire) -> None:
    for number, topic in enumerate((TOPIC, OTHER)):
        await wire.producer(topic, number)
        await wire.subscribe(topic, consumer_id=number)
        await wire.flow(consumer_id=number)
    await wire.publish(plain(b"x"), plain(b"y"))
    await wire.messages(2)
    await wire.publish(plain(b"x"), plain(b"y"), producer_id=1)
    assert await times(wire, 2) == [0, 1]
    bed.broker.cluster.dynamic.put("dispatchThrottlingRateInMsg", "0")
    await wire.publish(*[plain(b"x")] * 9)
    assert await times(wire, 9) == [0] * 9


@pytest.mark.usefixtures("autojump_clock")
async def test_a_consumer_without_backlog_may_be_exempt_from_the_rate() -> None:
    config = Config(dispatchThrottlingOnNonBacklogConsumerEnabled=False, managedLedgerCursorBackloggedThreshold=10)
    async with serving(config) as bed:
        put(bed, **of_topic(messages=4))
        wire = await bed.connect()
        await wire.producer()
        await wire.publish(*[plain(b"x")] * 16)
        await wire.subscribe(initialPosition=Earliest)
        await wire.flow()
        assert await times(wire, 16) == [0] * 4 + [1] * 12  # from here on the backlog is below ten


async def test_the_reason_is_shown(bed: Bed, wire: Wire, sender: Wire) -> None:
    put(bed, **of_topic(messages=1))
    await wire.subscribe()
    await wire.flow()
    await sender.publish(plain(b"x"))
    await wire.message()
    assert bed.subscription().reason is Reason.CAUGHT_UP
    await sender.publish(plain(b"y"))
    assert bed.subscription().reason is Reason.RATE_LIMITED
    events = bed.subscription().throttle.events
    assert events["dispatchThrottledMsgEventsByTopicLimit"] >= 2
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    assert bed.subscription().reason is Reason.NO_CONSUMER


async def test_without_permits_nothing_is_asked_for(bed: Bed, wire: Wire, sender: Wire) -> None:
    put(bed, **of_topic(messages=1))
    await wire.subscribe(type=Shared)
    await wire.flow(1)
    await sender.publish(plain(b"x"), plain(b"y"))
    await wire.message()
    assert bed.subscription().reason is Reason.NO_PERMITS


async def test_a_long_wait_ends_with_another_rate(bed: Bed, wire: Wire, sender: Wire) -> None:
    put(bed, **of_topic(messages=1, period=3600))
    await sender.publish(*[plain(b"x")] * 3)
    await wire.subscribe(initialPosition=Earliest)
    await wire.flow()
    await wire.message()
    put(bed, **of_topic(messages=1, period=10))
    assert await times(wire, 2) == [0, 10]
