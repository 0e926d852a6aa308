"""Subscriptions without a client."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from tests.broker.admin.rest import ADMIN, NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Shared, Type, Wire, plain, serving

LONG_MAX = 2**63 - 1
URL = f"{TOPICS}/t/subscription/s"


async def test_a_subscriptions_life(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    assert await rest.get(f"{TOPICS}/t/subscriptions") == []
    await rest.done("PUT", URL)
    assert await rest.refused("PUT", URL) == (409, "Subscription already exists for topic")
    assert await rest.get(f"{TOPICS}/t/subscriptions") == ["s"]
    await rest.done("DELETE", URL)
    assert await rest.refused("DELETE", URL) == (404, f"Subscription s not found for topic {TOPIC}")


@pytest.mark.parametrize(
    ("where", "first"),
    [
        (None, 3),
        ("latest", 3),
        ("earliest", 0),
        ({"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchIndex": -1, "excluded": False}, 0),
        ({"ledgerId": LONG_MAX, "entryId": LONG_MAX}, 3),
        ({"ledgerId": "ledger", "entryId": 1}, 1),
        ({"ledgerId": "ledger", "entryId": 1, "excluded": True}, 2),
        ({"ledgerId": 99999, "entryId": 1}, 3),
    ],
)
async def test_where_it_begins(rest: Rest, wire: Wire, where: Any, first: int) -> None:
    await wire.producer()
    positions = await wire.publish(*(plain(b"%d" % i) for i in range(3)))
    if isinstance(where, dict) and where["ledgerId"] == "ledger":
        where = {**where, "ledgerId": positions[0].ledger_id}
    await rest.done("PUT", URL, where)
    await wire.publish(plain(b"3"))
    await wire.subscribe(name="s")
    await wire.flow()
    assert (await wire.message()).payload == b"%d" % first


@pytest.mark.parametrize(
    "where", ["1:1", 5, [], {"ledgerId": "x"}, {"ledgerId": "1.5"}, {"entryId": 2**63}, {"ledgerId": True}]
)
async def test_where_it_cannot_begin(rest: Rest, where: Any) -> None:
    answer = await rest.call("PUT", URL, where)
    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain")
    assert await rest.get(TOPICS) == []


async def test_its_topic_is_made(rest: Rest) -> None:
    await rest.done("PUT", URL)
    assert await rest.get(TOPICS) == [TOPIC]
    nope = f"{ADMIN}/persistent/public/nope/x/subscription/s"
    assert await rest.refused("PUT", nope) == (404, "Namespace not found")


async def test_no_partition_is_made_of_a_topic_without_partitions(rest: Rest) -> None:
    text = f"Partition metadata not found for the partitioned topic: {TOPIC}-partition-0"
    assert await rest.refused("PUT", f"{TOPICS}/t-partition-0/subscription/s") == (409, text)
    assert await rest.get(TOPICS) == []


async def test_its_topic_is_not_made() -> None:
    async with serving(Config(allowAutoTopicCreation=False)) as bed:
        assert await rest_of(bed).refused("PUT", URL) == (404, f"Topic {TOPIC} not found")


async def test_on_all_partitions(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await rest.done("PUT", f"{TOPICS}/p/subscription/s")
    await rest.done("PUT", f"{TOPICS}/p-partition-0/subscription/one")
    assert await rest.refused("PUT", f"{TOPICS}/p/subscription/s") == (409, "Subscription already exists for topic")
    assert await rest.get(f"{TOPICS}/p-partition-1/subscriptions") == ["s"]
    assert await rest.get(f"{TOPICS}/p/subscriptions") == ["s", "one"]
    await rest.done("DELETE", f"{TOPICS}/p/subscription/one")
    await rest.done("DELETE", f"{TOPICS}/p/subscription/s")
    assert await rest.get(f"{TOPICS}/p/subscriptions") == []


async def test_partitions_that_lack_a_subscription_get_it(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    await rest.done("PUT", f"{TOPICS}/p-partition-1/subscription/s")
    await rest.done("PUT", f"{TOPICS}/p/subscription/s")
    for index in range(3):
        assert await rest.get(f"{TOPICS}/p-partition-{index}/subscriptions") == ["s"]
    assert await rest.refused("PUT", f"{TOPICS}/p/subscription/s") == (409, "Subscription already exists for topic")


async def test_with_a_consumer_it_stays(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(name="s", type=Shared)
    assert await rest.refused("DELETE", URL) == (412, "Subscription has active connected consumers")
    await rest.done("DELETE", f"{URL}?force=true")
    await wire.expect(Type.CLOSE_CONSUMER)
    assert await rest.get(f"{TOPICS}/t/subscriptions") == []


async def test_non_persistent_ones_come_and_go_with_their_consumers(rest: Rest, wire: Wire) -> None:
    url = f"{NON_PERSISTENT}/t/subscription/s"
    refused = (400, "Create subscription on non-persistent topic can only be done through client")
    assert await rest.refused("PUT", url) == refused
    await wire.subscribe(f"non-{TOPIC}", "s")
    assert await rest.get(f"{NON_PERSISTENT}/t/subscriptions") == ["s"]
    await rest.done("DELETE", url)
    await wire.expect(Type.CLOSE_CONSUMER)


async def test_of_no_topic(rest: Rest) -> None:
    for root, domain in ((TOPICS, "persistent"), (NON_PERSISTENT, "non-persistent")):
        missing = (404, f"Topic {domain}://public/default/nope not found")
        assert await rest.refused("GET", f"{root}/nope/subscriptions") == missing
        assert await rest.refused("DELETE", f"{root}/nope/subscription/s") == missing
    await rest.done("PUT", f"{NON_PERSISTENT}/p/partitions", 1)
    assert await rest.refused("DELETE", f"{NON_PERSISTENT}/p/subscription/s") == (404, "Subscription not found")
