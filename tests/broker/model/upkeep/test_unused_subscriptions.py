"""Deletion of unused subscriptions (subscriptionExpirationTimeMinutes)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from pulsarium.proto.topic_name import TopicName
from tests.broker.model.upkeep.policed import fresh, patient, set_policies
from tests.broker.wall import Wall
from tests.broker.wire import TOPIC, Bed, Type, Wire

MINUTE = 60
CHECK = 5 * MINUTE  # in seconds, from subscriptionExpiryCheckIntervalInMinutes


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with patient(subscriptionExpirationTimeMinutes=7, brokerDeleteInactiveTopicsEnabled=False) as bed:
        yield bed


def names(bed: Bed) -> list[str]:
    return list(bed.topic().subscriptions)


async def left(wire: Wire, **fields: Any) -> None:
    """Subscribe, and close the consumer again."""
    await wire.subscribe(**fields)
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)


async def test_an_unused_subscription_goes_with_its_backlog(bed: Bed, wire: Wire, sender: Wire) -> None:
    await left(wire)
    await sender.publish(fresh(bed.broker, b"0"))
    await trio.sleep(CHECK + 1)
    assert names(bed) == ["sub"]  # not unused for long enough at the first check
    await trio.sleep(CHECK)
    assert names(bed) == []


async def test_a_consumer_keeps_it_and_its_leaving_counts(bed: Bed, wire: Wire) -> None:
    await wire.subscribe()
    await trio.sleep(4 * CHECK + 1)
    assert names(bed) == ["sub"]
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await trio.sleep(CHECK)
    assert names(bed) == ["sub"]
    await trio.sleep(CHECK)
    assert names(bed) == []


async def test_a_replicated_subscription_is_never_unused(bed: Bed, wire: Wire) -> None:
    await left(wire, replicate_subscription_state=True)
    await trio.sleep(4 * CHECK)
    assert names(bed) == ["sub"]


@pytest.mark.parametrize(("namespace", "topic", "stays"), [(0, None, True), (60, None, True), (0, 3, False)])
async def test_a_namespace_and_a_topic_have_their_own_times(
    bed: Bed, wire: Wire, namespace: int, topic: int | None, stays: bool
) -> None:
    await left(wire)
    set_policies(bed.broker, subscription_expiration_time_minutes=namespace)
    if topic is not None:
        own = {"subscription_expiration_time_minutes": topic}
        bed.broker.metadata.put_topic_policies(TopicName.parse(TOPIC), own)
    await trio.sleep(3 * CHECK + 1)
    assert names(bed) == (["sub"] if stays else [])


async def test_a_machine_that_slept_did_not_use_its_subscriptions(wall: Wall, bed: Bed, wire: Wire) -> None:
    await left(wire)
    wall.ahead += 7 * MINUTE
    await trio.sleep(CHECK + 1)
    assert names(bed) == []


async def test_a_clock_that_is_set_back_keeps_no_subscription_longer(wall: Wall, bed: Bed, wire: Wire) -> None:
    await left(wire)
    wall.ahead -= 1000 * MINUTE
    await trio.sleep(3 * CHECK + 1)
    assert names(bed) == []


@pytest.mark.usefixtures("autojump_clock")
async def test_nothing_is_looked_at_with_an_interval_of_0() -> None:
    async with patient(
        subscriptionExpirationTimeMinutes=1,
        subscriptionExpiryCheckIntervalInMinutes=0,
        brokerDeleteInactiveTopicsEnabled=False,
    ) as bed:
        await left(await bed.connect())
        await trio.sleep(4 * CHECK)
        assert names(bed) == ["sub"]
