"""Resource groups, whose namespaces share their rates."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.profile import PIP, PULSAR_4_2
from tests.broker.commands.dispatch_rate import times as delivered
from tests.broker.commands.publish_rate import times as receipts
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, Rest
from tests.broker.wire import TOPIC, Bed, Earliest, Wire, plain, serving

GROUP = f"{ADMIN}/resourcegroups/rg"
ELSEWHERE = "persistent://public/other/t"


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    return await grouped(bed.broker)


async def grouped(broker: Broker, **rates: Any) -> Rest:
    """Create a resource group with these rates for two namespaces, and return the REST client."""
    rest = Rest(broker)
    await rest.done("PUT", f"{NAMESPACES}/public/other")
    await rest.done("PUT", GROUP, rates)
    for namespace in ("default", "other"):
        await rest.done("POST", f"{NAMESPACES}/public/{namespace}/resourcegroup/rg")
    return rest


async def test_topics_of_its_namespaces_share_the_publish_rate(bed: Bed, rest: Rest, wire: Wire, sender: Wire) -> None:
    await wire.producer(ELSEWHERE)
    await rest.done("PUT", GROUP, {"publishRateInMsgs": 4})
    await sender.publish(*[plain(b"x")] * 3)
    await wire.write(wire.sends(*[plain(b"x")] * 3))
    assert await receipts(wire, 3) == [0, 0.25, 0.5]  # one token was left


async def test_bytes_are_shared_too(bed: Bed, rest: Rest, sender: Wire) -> None:
    await rest.done("PUT", GROUP, {"publishRateInBytes": 2 * len(plain(b"x"))})
    await sender.write(sender.sends(*[plain(b"x")] * 5))
    assert await receipts(sender, 5) == pytest.approx([0, 0, 0.02, 0.52, 1.02], abs=0.02)


async def test_a_namespace_that_leaves_the_group_has_no_limit(bed: Bed, rest: Rest, sender: Wire) -> None:
    await rest.done("PUT", GROUP, {"publishRateInMsgs": 1})
    await rest.done("DELETE", f"{NAMESPACES}/public/default/resourcegroup")
    await sender.write(sender.sends(*[plain(b"x")] * 5))
    assert await receipts(sender, 5) == [0] * 5


async def test_a_rate_of_none_limits_nothing(bed: Bed, rest: Rest, sender: Wire) -> None:
    await rest.done("PUT", GROUP, {"publishRateInMsgs": 1})
    await rest.done("PUT", GROUP, {"publishRateInMsgs": -1})
    await sender.write(sender.sends(*[plain(b"x")] * 5))
    assert await receipts(sender, 5) == [0] * 5


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("released", [False, True])
async def test_subscriptions_share_the_dispatch_rate_which_4_2_does_not_enforce(released: bool) -> None:
    async with serving(profile=PULSAR_4_2 if released else PIP) as bed:
        await grouped(bed.broker, dispatchRateInMsgs=3)
        wire, other = await bed.connect(), await bed.connect()
        await wire.producer()
        await wire.publish(*[plain(b"x")] * 2)
        await other.producer(ELSEWHERE)
        await other.publish(*[plain(b"x")] * 3)
        await wire.subscribe(initialPosition=Earliest)
        await wire.flow()
        await wire.messages(2)
        await other.subscribe(ELSEWHERE, initialPosition=Earliest)
        await other.flow()
        assert await delivered(other, 3) == ([0, 0, 0] if released else [0, 1, 1])


async def test_a_topic_that_is_loaded_later_belongs_to_the_group(bed: Bed, rest: Rest, wire: Wire) -> None:
    await rest.done("PUT", GROUP, {"publishRateInMsgs": 2})
    await wire.producer(f"{TOPIC}-later")
    await wire.write(wire.sends(*[plain(b"x")] * 3))
    assert await receipts(wire, 3) == [0, 0, 0.5]
