"""/admin/v2/namespaces: subscriptions of many topics at once."""

from __future__ import annotations

import pytest

from pulsarium.broker.config import PULSAR_4_2
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest
from tests.broker.web.admin.steps import Reason, Step, play
from tests.broker.wire import Type, Wire, plain

DEFAULT = f"{NAMESPACES}/public/default"
MISSING = f"{NAMESPACES}/public/missing"
NAMES = "persistent://public/default"
ABSENT = {"reason": "Namespace not found"}


async def backlogs(rest: Rest, topic: str) -> dict[str, int]:
    stats = await rest.get(f"{TOPICS}/{topic}/stats")
    return {name: subscription["msgBacklog"] for name, subscription in stats["subscriptions"].items()}


@pytest.fixture
async def backlog(rest: Rest, wire: Wire) -> Rest:
    """Make topics a and b with subscriptions s and t and a message each."""
    for number, local in enumerate("ab"):
        await rest.done("PUT", f"{TOPICS}/{local}")
        for subscription in ("s", "t"):
            await rest.done("PUT", f"{TOPICS}/{local}/subscription/{subscription}", {"ledgerId": -1, "entryId": -1})
        await wire.producer(f"{NAMES}/{local}", producer_id=number)
        await wire.publish(plain(b"x"), producer_id=number)
    return rest


async def test_the_backlog_of_a_namespace_is_cleared(backlog: Rest) -> None:
    await backlog.done("POST", f"{DEFAULT}/clearBacklog/s")
    assert [await backlogs(backlog, local) for local in "ab"] == [{"s": 0, "t": 1}] * 2
    await backlog.done("POST", f"{DEFAULT}/clearBacklog")
    assert [await backlogs(backlog, local) for local in "ab"] == [{"s": 0, "t": 0}] * 2


async def test_the_backlog_of_a_bundle_is_cleared(backlog: Rest) -> None:
    bundle = (await backlog.call("GET", "/lookup/v2/topic/persistent/public/default/a/bundle")).body.decode()
    await backlog.done("POST", f"{DEFAULT}/{bundle}/clearBacklog/s")
    other = (await backlog.call("GET", "/lookup/v2/topic/persistent/public/default/b/bundle")).body.decode()
    assert other != bundle
    assert [await backlogs(backlog, local) for local in "ab"] == [{"s": 0, "t": 1}, {"s": 1, "t": 1}]
    await backlog.done("POST", f"{DEFAULT}/{bundle}/clearBacklog")
    assert await backlogs(backlog, "a") == {"s": 0, "t": 0}
    await backlog.done("POST", f"{DEFAULT}/{bundle}/unsubscribe/s")
    assert [list(await backlogs(backlog, local)) for local in "ab"] == [["t"], ["s", "t"]]


async def test_a_subscription_that_some_topic_has_not(backlog: Rest) -> None:
    assert await backlog.refused("POST", f"{DEFAULT}/clearBacklog/none") == (404, "Subscription none not found")
    await backlog.done("POST", f"{DEFAULT}/unsubscribe/none")


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_an_absent_subscription_is_a_fault_of_the_released_broker(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/a")
    failed = Reason("\n --- An unexpected error occurred in the server ---\n\nMessage: Cursor not found")
    await play(rest, Step(f"POST {DEFAULT}/clearBacklog/none", 500, failed))


async def test_subscriptions_go_unless_they_are_used(backlog: Rest, wire: Wire) -> None:
    await wire.subscribe(f"{NAMES}/a", "s")
    used = (412, "Subscription has active connected consumers")
    assert await backlog.refused("POST", f"{DEFAULT}/unsubscribe/s") == used
    assert [list(await backlogs(backlog, local)) for local in "ab"] == [["s", "t"]] * 2
    await wire.ask(Type.CLOSE_CONSUMER, consumer_id=0)
    await backlog.done("POST", f"{DEFAULT}/unsubscribe/s")
    assert [list(await backlogs(backlog, local)) for local in "ab"] == [["t"]] * 2


async def test_backlogs_of_absent_namespaces_and_of_replicators_are_not_cleared(rest: Rest) -> None:
    replicator = {"reason": "Cannot unsubscribe a replication cursor"}
    await play(
        rest,
        Step(f"POST {MISSING}/clearBacklog/s", 404, ABSENT),
        Step(f"POST {MISSING}/0x00000000_0xffffffff/clearBacklog", 404, ABSENT),
        Step(f"POST {DEFAULT}/unsubscribe/pulsar.repl.other", 412, replicator),
    )
