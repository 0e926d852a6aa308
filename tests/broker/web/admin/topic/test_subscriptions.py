"""Subscriptions over REST, without a client."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from tests.broker.web.admin.rest import NON_PERSISTENT, TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire, plain

LONG_MAX = 2**63 - 1
URL = f"{TOPICS}/t/subscription/s"
STATUS = "subscription/s/replicatedSubscriptionStatus"


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
async def test_a_subscription_begins_where_asked(rest: Rest, wire: Wire, where: Any, first: int) -> None:
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
async def test_a_subscription_does_not_begin_at_nonsense(rest: Rest, where: Any) -> None:
    answer = await rest.call("PUT", URL, where)
    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain")
    assert await rest.get(TOPICS) == []


async def test_no_partition_is_made_of_a_topic_without_partitions(rest: Rest) -> None:
    text = f"Partition metadata not found for the partitioned topic: {TOPIC}-partition-0"
    assert await rest.refused("PUT", f"{TOPICS}/t-partition-0/subscription/s") == (409, text)
    assert await rest.get(TOPICS) == []


@pytest.mark.serving(Config(allowAutoTopicCreation=False))
async def test_a_subscription_makes_no_topic_where_none_are_made(bed: Bed) -> None:
    assert await rest_of(bed).refused("PUT", URL) == (404, f"Topic {TOPIC} not found")


async def test_a_subscription_with_a_consumer_stays_unless_forced(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(name="s", type=Shared)
    assert await rest.refused("DELETE", URL) == (412, "Subscription has active connected consumers")
    await rest.done("DELETE", f"{URL}?force=true")
    await wire.expect(Type.CLOSE_CONSUMER)
    assert await rest.get(f"{TOPICS}/t/subscriptions") == []


async def test_non_persistent_subscriptions_come_and_go_with_their_consumers(rest: Rest, wire: Wire) -> None:
    url = f"{NON_PERSISTENT}/t/subscription/s"
    refused = (400, "Create subscription on non-persistent topic can only be done through client")
    assert await rest.refused("PUT", url) == refused
    await wire.subscribe(f"non-{TOPIC}", "s")
    assert await rest.get(f"{NON_PERSISTENT}/t/subscriptions") == ["s"]
    await rest.done("DELETE", url)
    await wire.expect(Type.CLOSE_CONSUMER)


async def test_the_wish_to_be_replicated_is_set_and_shown(rest: Rest, wire: Wire) -> None:
    await wire.subscribe(name="s")
    for replicated in (True, False):
        await rest.done("POST", f"{TOPICS}/t/{STATUS}", replicated)
        assert await rest.get(f"{TOPICS}/t/{STATUS}") == {TOPIC: replicated}
        stats = (await rest.get(f"{TOPICS}/t/stats"))["subscriptions"]["s"]
        assert stats["replicated"] == stats["isReplicated"] == replicated


async def test_each_partition_has_its_own_wish_to_be_replicated(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t/partitions", 2)
    await rest.done("PUT", f"{TOPICS}/t/subscription/s")
    await rest.done("POST", f"{TOPICS}/t-partition-1/{STATUS}", True)
    shown = {f"{TOPIC}-partition-0": False, f"{TOPIC}-partition-1": True}
    assert await rest.get(f"{TOPICS}/t/{STATUS}") == shown
    await rest.done("POST", f"{TOPICS}/t/{STATUS}", True)
    assert await rest.get(f"{TOPICS}/t/{STATUS}") == dict.fromkeys(shown, True)


async def test_a_property_with_an_internal_name_is_refused(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    await rest.done("PUT", f"{TOPICS}/t/subscription/s")
    url = f"{TOPICS}/t/subscription/s/properties"
    text = "The property key can't start with #pulsar.internal."
    assert await rest.refused("PUT", url, {"#pulsar.internal.x": "a", "b": "c"}) == (400, text)
    assert await rest.get(url) == {}


# a subscription that some partitions lack: each partition answers for itself, and the first refusal is the answer


@pytest.fixture
async def partitioned(rest: Rest) -> Rest:
    """Create a topic of three partitions. The first two have a subscription."""
    await rest.done("PUT", f"{TOPICS}/t/partitions", 3)
    for number in range(2):
        await rest.done("PUT", f"{TOPICS}/t-partition-{number}/subscription/s")
    return rest


async def have_it(rest: Rest) -> list[int]:
    """Return the partitions that have the subscription."""
    return [number for number in range(3) if await rest.get(f"{TOPICS}/t-partition-{number}/subscriptions")]


@pytest.mark.parametrize("query", ["", "?force=true"])
async def test_a_deletion_is_refused_when_a_partition_lacks_the_subscription_and_the_others_lose_it(
    partitioned: Rest, query: str
) -> None:
    assert await partitioned.refused("DELETE", f"{URL}{query}") == (404, "Subscription not found")
    assert await have_it(partitioned) == []
    assert await partitioned.refused("DELETE", f"{URL}{query}") == (404, "Subscription not found")


async def test_a_subscription_of_all_partitions_is_deleted(partitioned: Rest) -> None:
    await partitioned.done("PUT", f"{TOPICS}/t-partition-2/subscription/s")
    await partitioned.done("DELETE", URL)
    assert await have_it(partitioned) == []


@pytest.mark.parametrize(
    ("busy", "refusal"),
    [(0, (412, "Subscription has active connected consumers")), (2, (404, "Subscription not found"))],
)
async def test_a_partition_with_consumers_keeps_the_subscription_and_the_first_partition_that_refuses_answers(
    partitioned: Rest, wire: Wire, busy: int, refusal: tuple[int, str]
) -> None:
    if busy:
        await partitioned.done("DELETE", f"{TOPICS}/t-partition-0/subscription/s")
    await wire.subscribe(f"{TOPIC}-partition-{busy}", "s")
    assert await partitioned.refused("DELETE", URL) == refusal
    assert await have_it(partitioned) == [busy]


@pytest.mark.parametrize(
    ("what", "body", "text", "shown"),
    [
        ("properties", {"a": "b"}, f"Subscription s not found for topic {TOPIC}", {"a": "b"}),
        ("replicatedSubscriptionStatus", True, "Topic or subscription not found", {f"{TOPIC}-partition-1": True}),
    ],
)
async def test_a_change_is_refused_when_a_partition_lacks_the_subscription_and_the_others_change(
    partitioned: Rest, what: str, body: Any, text: str, shown: Any
) -> None:
    method = "PUT" if what == "properties" else "POST"
    assert await partitioned.refused(method, f"{URL}/{what}", body) == (404, text)
    assert await partitioned.get(f"{TOPICS}/t-partition-1/subscription/s/{what}") == shown


async def test_the_properties_of_a_subscription_that_a_partition_lacks_are_refused(partitioned: Rest) -> None:
    refusal = (404, f"Subscription s not found for topic {TOPIC}")
    assert await partitioned.refused("GET", f"{URL}/properties") == refusal
