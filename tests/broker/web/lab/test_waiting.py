"""REST calls of /lab/wait and /lab/expect."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from pulsarium.broker.lab.arguments import OF_SUBSCRIPTION, OF_TOPIC
from pulsarium.broker.lab.awaited import AwaitedError, awaited
from tests.broker.web.admin.rest import Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Shared, Wire, plain, serving

URL = "/lab/wait?topic=t"
EXPECT = "/lab/expect"


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving() as bed:
        yield bed


@pytest.fixture
def rest(bed: Bed) -> Rest:
    return rest_of(bed)


async def states(bed: Bed, subscription: str | None) -> set[str]:
    """Return the states that the topic or the subscription has now. States with a count are asked for with a count of
    1."""
    known = OF_TOPIC if subscription is None else OF_SUBSCRIPTION
    cluster = bed.broker.cluster
    return {state for state in known if awaited(cluster, "t", subscription, state, None).decided()}


async def test_the_states_of_a_subscription_from_its_first_consumer_to_its_end(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    assert await states(bed, "sub") == {"absent"}
    await wire.subscribe(type=Shared)
    assert await states(bed, "sub") == {"exists", "connected", "caught-up"}
    (position,) = await wire.publish(plain(b"a"))
    assert await states(bed, "sub") == {"exists", "connected"}
    await wire.flow()
    await wire.message()
    assert await states(bed, "sub") == {"exists", "connected", "delivered"}
    await wire.ack(position)
    assert await states(bed, "sub") == {"exists", "connected", "delivered", "caught-up", "acked"}
    await wire.aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert await states(bed, "sub") == {"exists", "no-consumer", "delivered", "caught-up", "acked"}


async def test_the_states_of_a_topic(bed: Bed, wire: Wire) -> None:
    assert await states(bed, None) == {"absent"}
    await wire.producer()
    assert await states(bed, None) == {"exists", "connected"}
    await wire.publish(plain(b"a"))
    assert await states(bed, None) == {"exists", "connected", "produced"}
    await wire.aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert await states(bed, None) == {"exists", "no-producer", "produced"}


async def test_a_subscription_of_a_partitioned_topic_needs_every_partition(bed: Bed, rest: Rest, wire: Wire) -> None:
    await rest.call("PUT", "/admin/v2/persistent/public/default/t/partitions", 2)
    await wire.subscribe(f"{TOPIC}-partition-0")
    found = await rest.refused("GET", f"{URL}&subscription=sub&state=exists&timeout=0")
    assert found == (408, f"not exists: sub does not exist on every partition of {TOPIC}")
    await wire.subscribe(f"{TOPIC}-partition-1", consumer_id=1)
    assert await states(bed, "sub") == {"exists", "connected", "caught-up"}


async def test_a_call_waits_until_the_state_is_there(rest: Rest, wire: Wire) -> None:
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def wait() -> None:
            done.append(await rest.get(f"{URL}&subscription=sub&state=connected&count=2"))

        done: list[object] = []
        await wire.subscribe(type=Shared)
        await trio.testing.wait_all_tasks_blocked()
        assert not done
        await wire.subscribe(type=Shared, consumer_id=1)
    assert done == [{"topic": "t", "subscription": "sub", "state": "connected", "count": 2}]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("state=connected", f"not connected: {TOPIC} has 1 of 5 producers; producers of {TOPIC}: p"),
        ("state=produced", f"not produced: {TOPIC} has 0 messages, not 5: none; connected producers: p"),
        (
            "state=connected&subscription=sub",
            "not connected: sub of %s has 1 of 5 consumers; consumers: c (permits",
        ),
        ("state=connected&subscription=other", f"not connected: {TOPIC} has no subscription other, but sub"),
    ],
)
async def test_the_end_of_a_wait_says_what_there_is_instead(rest: Rest, wire: Wire, query: str, text: str) -> None:
    await wire.producer(producer_name="p")
    await wire.subscribe(consumer_name="c")
    status, reason = await rest.refused("GET", f"{URL}&{query}&count=5&timeout=0")
    assert status == 408
    assert reason.startswith(text.replace("%s", TOPIC))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "pass ?topic=...&state=..., and as you need them subscription, count and timeout"),
        ("&state=exists&when=1", "pass ?topic="),
        ("&state=conected", "a topic has no state 'conected'; did you mean connected?"),
        ("&state=acked", "a topic has no state 'acked'; there are exists, absent, connected, no-producer, produced"),
        ("&state=exists&count=2", "the state exists has no count; connected, produced have one"),
        ("&state=produced&count=-1", "count is '-1'; it must be a number from 0"),
    ],
)
async def test_a_wrong_wait_is_refused(rest: Rest, query: str, text: str) -> None:
    status, reason = await rest.refused("GET", URL + query)
    assert status == 400
    assert reason.startswith(text)


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("topic://public/default/t", "is a scalable topic: wait for one of its segments"),
        ("non-persistent://public/default/t", "acknowledgements of its messages are not stored"),
        ("persistent://t", "t"),
    ],
)
async def test_topics_without_such_a_state(bed: Bed, topic: str, text: str) -> None:
    with pytest.raises(AwaitedError, match=text):
        awaited(bed.broker.cluster, topic, "sub", "acked", None)


async def test_exactly_the_expected_messages_are_awaited(rest: Rest, wire: Wire) -> None:
    await wire.producer()
    await wire.subscribe(type=Shared)
    await wire.publish(plain(b"a"))
    asked = {"topic": TOPIC, "state": "produced", "timeout": 0}
    assert (await rest.call("POST", EXPECT, {**asked, "values": ["YQ=="]})).status == 204
    status, text = await rest.refused("POST", EXPECT, {**asked, "count": 2})
    assert (status, text.partition(";")[0]) == (417, f"{TOPIC} has 1 message, not 2: b'a'")
    waits = {"topic": TOPIC, "subscription": "sub", "timeout": 0}
    assert (await rest.refused("POST", EXPECT, {**waits, "state": "delivered", "count": 1}))[0] == 417
    assert (await rest.refused("POST", EXPECT, {**waits, "state": "acked"}))[0] == 417


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "an expectation needs a topic, and a state, one of produced, delivered, acked"),
        ({"topic": "t", "state": "gone"}, "an expectation needs a topic, and a state, one of produced, "),
        ({"topic": "t", "state": "produced"}, "the state produced needs count, a number of messages"),
        ({"topic": "t", "state": "delivered", "count": 1}, "the state delivered needs a subscription"),
        ({"topic": "t", "state": "produced", "count": True}, "count is True; an expectation has topic, subscription, "),
        ({"topic": "t", "state": "produced", "colour": 1}, "colour is 1; an expectation has topic, subscription, "),
        (
            {"topic": "t", "state": "produced", "count": 1, "timeout": "5"},
            "timeout is '5'; it must be a number",
        ),
        ({"topic": "t", "state": "produced", "values": ["?"]}, "values: each is a message in base64"),
        ({"topic": "non-persistent://public/default/t", "state": "produced", "values": ["YQ=="]}, "is not persistent"),
    ],
)
async def test_an_expectation_that_cannot_be_is_refused(rest: Rest, asked: dict[str, object], says: str) -> None:
    status, text = await rest.refused("POST", EXPECT, asked)
    assert (status, says in text) == (400, True), text
