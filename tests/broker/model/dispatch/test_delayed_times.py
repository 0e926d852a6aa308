"""Exact times of delayed messages on Shared, by the tick (B-21). Times are milliseconds after the first message.

The first message is sent on a boundary of all buckets, and its alarm begins the ticks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import trio

from pulsarium.broker.config import PIP, PULSAR_4_2, Config, Profile
from pulsarium.broker.model.dispatch.sharing import SharingDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.reasons import Reason
from tests.broker.model.dispatch.sharing import joined, why
from tests.broker.wire import Bed, Message, Shared, Wire, plain, serving

BOUNDARY_MS = 4096
"""A multiple of this begins a bucket, for all ticks up to 8 s."""


class Stage:
    """A producer, a consumer, and the time since the boundary."""

    def __init__(self, bed: Bed, sender: Wire, wire: Wire) -> None:
        self._begin_ms = bed.broker.clock.now_ms()
        self._sender = sender
        self.wire = wire
        self._clock = bed.broker.clock

    def now(self) -> int:
        return self._clock.now_ms() - self._begin_ms

    async def send(self, payload: bytes, due: int | None = None) -> list[Position]:
        fields: dict[str, Any] = {} if due is None else {"deliver_at_time": self._begin_ms + due}
        return await self._sender.publish(plain(payload, partition_key="k", **fields))

    async def next(self) -> tuple[bytes, int]:
        message: Message = await self.wire.message(25)
        return message.payload, self.now()


@asynccontextmanager
async def stage(
    profile: Profile = PIP, policy_ms: int | None = None, **config: Any
) -> AsyncIterator[tuple[Bed, Stage]]:
    """Start a broker and wait for the boundary. `policy_ms` is the tick of the namespace's policy."""
    exact = replace(profile, separate_publish_times=False)  # a message is stored at the time of its SEND
    async with serving(Config(keepAliveIntervalSeconds=0, **config), profile=exact) as bed:
        if policy_ms is not None:
            metadata = bed.broker.metadata
            policy = {"active": True, "tickTime": policy_ms, "maxDeliveryDelayInMillis": 0}
            policies = {**metadata.namespaces["public/default"], "delayed_delivery_policies": policy}
            metadata.put_namespace("public/default", policies)
        sender = await bed.connect()
        await sender.producer()
        wire = await joined(bed, "c", type=Shared)
        clock = bed.broker.clock
        left = BOUNDARY_MS - clock.wall() * 1000 % BOUNDARY_MS
        await trio.sleep((left + 0.5) / 1000)  # the middle of a millisecond, where rounding is harmless
        assert clock.now_ms() % BOUNDARY_MS == 0
        yield bed, Stage(bed, sender, wire)


@pytest.mark.req("B-21")
@pytest.mark.parametrize(
    ("tick_ms", "due", "comes"),
    [
        (1000, 1000, 0),
        (1000, 1001, 1000),
        (1000, 1535, 2000),
        (1000, 2000, 2000),
        (1000, 2047, 2000),
        (1000, 2048, 3000),
        (100, 100, 0),
        (100, 101, 100),
        (100, 255, 200),
        (100, 256, 300),
        (5000, 5000, 0),
        (5000, 8191, 5000),
        (5000, 8192, 10_000),
    ],
)
async def test_a_message_comes_at_the_tick_after_its_bucket_begins(
    autojump_clock: object, tick_ms: int, due: int, comes: int
) -> None:
    async with stage(delayedDeliveryTickTimeMillis=tick_ms) as (_, on):
        await on.send(b"x", due)
        assert await on.next() == (b"x", comes)


@pytest.mark.req("B-21")
@pytest.mark.parametrize(
    ("tick_ms", "due", "comes"),
    [
        (1000, 0, 0),
        (1000, 1, 1000),
        (1000, 512, 1000),
        (1000, 513, 2000),
        (1000, 2047, 3000),
        (100, 1, 100),
        (100, 65, 200),
        (5000, 4096, 5000),
        (5000, 4097, 10_000),
    ],
)
async def test_strictly_it_comes_at_the_tick_after_its_bucket_ends(
    autojump_clock: object, tick_ms: int, due: int, comes: int
) -> None:
    async with stage(delayedDeliveryTickTimeMillis=tick_ms, isDelayedDeliveryDeliverAtTimeStrict=True) as (_, on):
        await on.send(b"x", due)
        assert await on.next() == (b"x", comes)


@pytest.mark.req("B-21")
async def test_after_a_tick_the_next_one_is_left_out(autojump_clock: object) -> None:
    """The next alarm must be at least one tick length later, and goes off at the first tick after that."""
    async with stage() as (_, on):
        await on.send(b"first", 1536)
        await on.send(b"second", 2600)
        assert await on.next() == (b"first", 2000)
        assert await on.next() == (b"second", 4000)


@pytest.mark.req("B-21")
async def test_a_message_that_came_early_leaves_no_alarm_behind(autojump_clock: object) -> None:
    """A remaining alarm at 3000 would deliver the second message then, 489 ms too early."""
    async with stage() as (_, on):
        await on.send(b"first", 2560)
        await on.send(b"second", 3489)
        await trio.sleep(2.1)
        await on.send(b"now")
        assert {(await on.next())[0], (await on.next())[0]} == {b"first", b"now"}
        assert await on.next() == (b"second", 4000)


@pytest.mark.req("B-21")
async def test_a_policy_that_ends_delays_leaves_no_alarm_behind(autojump_clock: object) -> None:
    async with stage(policy_ms=1000) as (bed, on):
        await on.send(b"x", 2600)
        metadata = bed.broker.metadata
        policies = metadata.namespaces["public/default"]
        delays = {**policies["delayed_delivery_policies"], "active": False}
        metadata.put_namespace("public/default", {**policies, "delayed_delivery_policies": delays})
        assert await on.next() == (b"x", 0)
        dispatcher = bed.subscription().dispatcher
        assert isinstance(dispatcher, SharingDispatcher)
        assert dispatcher.delayed._alarm is None


@pytest.mark.req("B-21")
async def test_all_subscriptions_have_the_same_ticks(autojump_clock: object) -> None:
    async with stage() as (bed, on):
        await on.send(b"first", 5000)
        await trio.sleep(0.3)
        wire = await bed.connect()
        await wire.subscribe(name="other", type=Shared)
        await wire.flow()
        await on.send(b"second", 2000)
        assert ((await wire.message()).payload, on.now()) == (b"second", 2000)


@pytest.mark.req("B-21")
async def test_a_namespace_s_tick_changes_neither_buckets_nor_ticks(autojump_clock: object) -> None:
    """The broker's setting decides both. The policy says how early a message may come, and how far alarms are apart."""
    async with stage(policy_ms=5000) as (_, on):
        await on.send(b"at once", 5000)
        assert await on.next() == (b"at once", 0)
        await on.send(b"first", 5632)
        assert await on.next() == (b"first", 6000)
        await on.send(b"second", 11_264)
        assert await on.next() == (b"second", 12_000)


@pytest.mark.req("B-21")
async def test_an_alarm_that_is_too_early_for_a_shorter_tick_is_later(autojump_clock: object) -> None:
    """The bucket begins at 4608, and all its messages are due within 100 ms at 5019."""
    async with stage(policy_ms=100) as (_, on):
        await on.send(b"x", 4608)
        assert await on.next() == (b"x", 6000)


@pytest.mark.req("B-21")
async def test_the_released_broker_has_no_second_alarm_for_a_shorter_tick(autojump_clock: object) -> None:
    async with stage(PULSAR_4_2, policy_ms=100) as (_, on):
        await on.send(b"x", 4608)
        await on.wire.quiet(60)
        await on.send(b"now")
        assert sorted([await on.next(), await on.next()]) == [(b"now", 60_000), (b"x", 60_000)]


@pytest.mark.req("B-21")
@pytest.mark.parametrize("profile", [PIP, PULSAR_4_2])
async def test_a_dispatch_between_the_time_and_the_tick_keeps_the_alarm(
    autojump_clock: object, profile: Profile
) -> None:
    """The bucket begins at 3584, and all its messages are due within 100 ms at 3995, before the tick."""
    async with stage(profile, policy_ms=100) as (_, on):
        await on.send(b"x", 3584)
        await trio.sleep(3.7)
        await on.send(b"now")
        assert await on.next() == (b"now", 3700)
        assert await on.next() == (b"x", 4000)


@pytest.mark.req("B-21")
async def test_between_its_time_and_the_tick_it_still_waits(autojump_clock: object) -> None:
    async with stage() as (bed, on):
        (position,) = await on.send(b"x", 2048)
        await trio.sleep(2.5)
        assert why(bed, position) is Reason.DELAYED
        assert await on.next() == (b"x", 3000)
        assert why(bed, position) is Reason.DELIVERED
