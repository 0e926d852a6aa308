"""Authorization of skipByMessageIds, and the broker that performs it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.model.ledger.position import Position
from pulsarium.proto.topic_name import TopicName
from tests.broker.auth.secured import SECRET, bearer, by_token
from tests.broker.web.admin.rest import TOPICS, give, rest_of
from tests.broker.web.admin.skipped import SKIP, Secured, format_1, skip, triplet
from tests.broker.wire import Bed, Wire, plain, serving


@pytest.fixture
async def secured(autojump_clock: object) -> AsyncIterator[Secured]:
    async with serving(by_token()) as bed:
        made = Secured(bed)
        await made.fill()
        yield made


@pytest.mark.req("S423-23")
@pytest.mark.parametrize("role", ["producer", "nobody"])
async def test_a_role_that_may_not_consume_may_not_skip(secured: Secured, role: str) -> None:
    for url in (SKIP, SKIP.replace("/t/", "/missing/"), SKIP.replace("/sub/", "/missing/")):
        answer = await secured.post(url, **bearer(role))
        assert answer.status == 403
        assert "Unauthorized to validateTopicOperation for operation [SKIP]" in answer.reason
    assert secured.backlog == 1


@pytest.mark.req("S423-24", "SREV-10")
@pytest.mark.parametrize("role", ["consumer", "admin"])
async def test_a_role_that_may_consume_may_skip(secured: Secured, role: str) -> None:
    answer = await secured.post(**bearer(role))
    assert (answer.status, answer.body) == (204, b"")
    assert secured.backlog == 0


@pytest.mark.req("S423-25")
async def test_nobody_skips_without_credentials(secured: Secured) -> None:
    wrong = [{}, bearer("admin", key=SECRET[::-1]), {"authorization": "Bearer nonsense"}]
    for headers in wrong:
        assert (await secured.post(**headers)).status == 401
    assert secured.backlog == 1


# several brokers


@pytest.fixture
async def two(autojump_clock: object) -> AsyncIterator[Bed]:
    async with serving(brokers=2) as bed:
        yield bed


@pytest.mark.req("S423-57")
async def test_a_skip_is_redirected_to_the_broker_of_the_topic(two: Bed) -> None:
    first, second = rest_of(two), rest_of(two, 1)
    give(two, 0)
    await first.done("PUT", f"{TOPICS}/t/subscription/sub", "earliest")
    wire: Wire = await two.connect()
    await wire.producer()
    (position,) = await wire.publish(plain(b"0"))
    body = format_1([triplet(position)])
    answer = await second.call("POST", SKIP, body)
    location = f"http://broker.internal:8080{SKIP}?authoritative=false"
    assert (answer.status, answer.headers["location"]) == (307, location)
    assert two.subscription().cursor.backlog() == 1
    await first.done("POST", f"{SKIP}?authoritative=true", body)
    assert two.subscription().cursor.backlog() == 0


@pytest.mark.req("S423-55")
async def test_a_skip_reaches_partitions_on_several_brokers(two: Bed) -> None:
    """A broker that gets the call passes it on to the owners of other partitions."""
    names = [TopicName.parse(f"persistent://public/default/parted-partition-{number}") for number in range(4)]
    for number, name in enumerate(names):
        give(two, number % 2, name)
    brokers = [two.broker.cluster.ownership.owner(name) for name in names]
    assert set(brokers) == set(two.brokers)
    await rest_of(two).done("PUT", f"{TOPICS}/parted/partitions", 4)
    await rest_of(two).done("PUT", f"{TOPICS}/parted/subscription/sub", "earliest")
    sent = list[Position]()
    for name, broker in zip(names, brokers, strict=True):
        assert broker is not None
        wire = await two.connect(broker=two.brokers.index(broker))
        await wire.producer(topic=str(name))
        sent += await wire.publish(plain(b"0"), plain(b"1"))
    await skip(rest_of(two, 1), sent[0], sent[3], sent[5], url=f"{TOPICS}/parted/subscription/sub/skipByMessageIds")
    stats = await rest_of(two, 1).get(f"{TOPICS}/parted/partitioned-stats?perPartition=true")
    backlogs = [stats["partitions"][str(name)]["subscriptions"]["sub"]["msgBacklog"] for name in names]
    assert backlogs == [1, 1, 1, 2]
