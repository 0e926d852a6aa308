"""Faults of a proxy in front of a broker of ours. `tests/foreign/test_proxy.py` has the same in front of a real one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from pulsarium.broker.lab.arguments import Selected
from pulsarium.broker.lab.faults import ACTIONS, Drop
from tests.broker.lab.proxy import actions
from tests.broker.lab.proxy.behind import Behind, behind
from tests.broker.wire import TOPIC, Earliest, plain


def test_each_action_has_a_case() -> None:
    assert actions.ACTIONS.keys() == ACTIONS.keys()


@pytest.mark.parametrize("case", actions.CASES, ids=lambda case: case.__name__)
async def test_an_action_through_the_proxy(case: Callable[[Behind, str], Awaitable[None]]) -> None:
    async with behind() as it:
        await case(it, TOPIC)


async def test_a_rule_selects_the_connections_that_were_open_before_by_their_names() -> None:
    async with behind() as it:
        wire = await it.connect()
        name = (await wire.producer()).producer_name
        await wire.subscribe(name="audit", initialPosition=Earliest)
        by_names = Selected(topic="t", producer=name)
        for selected in by_names, Selected(client_version="wire", when='metadata.partition_key == "k"'):
            rule = it.lab.faults.add(Drop(), "SEND", **selected)
            await wire.write(wire.sends(plain(b"lost", partition_key="k")))
            await wire.publish(plain(b"kept"))
            assert rule.hits == 1
        rule = it.lab.faults.observe("MESSAGE", subscription="audit")
        other = it.lab.faults.observe("MESSAGE", subscription="other")
        await wire.flow()
        assert await wire.payloads(2) == [b"kept", b"kept"]
        assert (rule.hits, other.hits) == (2, 0)


async def test_without_a_rule_no_connection_has_a_tap() -> None:
    async with behind() as it:
        wire = await it.connect()
        rule = it.lab.faults.observe("*")
        assert [each.tap is not None for each in it.lab.taps.connections.all()] == [True]
        rule.remove()
        assert [each.tap is not None for each in it.lab.taps.connections.all()] == [False]
        await wire.alive()
