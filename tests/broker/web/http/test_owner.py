"""The broker that serves a topic answers requests. Other brokers redirect to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import ADMIN, TOPICS, Rest, give, rest_of
from tests.broker.wire import TOPIC, Bed, serving

LOOKUP = "/lookup/v2/topic/persistent/public/default/t"
T = f"{TOPICS}/t"


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    async with serving(brokers=2) as made:
        yield made


@pytest.fixture
def first(bed: Bed) -> Rest:
    return rest_of(bed)


@pytest.fixture
def second(bed: Bed) -> Rest:
    return rest_of(bed, 1)


async def test_a_topic_of_another_broker_is_redirected(bed: Bed, first: Rest, second: Rest) -> None:
    give(bed, 1)
    answer = await first.call("PUT", T)
    assert (answer.status, answer.body) == (307, b"")
    assert answer.headers["location"] == f"http://broker.internal:8081{T}?authoritative=true"  # by the leader
    await second.done("PUT", T)
    give(bed, 0)
    answer = await second.call("GET", f"{T}/stats?getPreciseBacklog=true&authoritative=true")
    location = f"http://broker.internal:8080{T}/stats?getPreciseBacklog=true&authoritative=false"
    assert (answer.status, answer.headers["location"]) == (307, location)
    assert (await first.get(f"{T}/stats"))["msgInCounter"] == 0


async def test_only_the_leader_assigns_an_unowned_topic(bed: Bed, second: Rest) -> None:
    answer = await second.call("PUT", T)
    assert answer.headers["location"] == f"http://broker.internal:8080{T}?authoritative=false"
    assert bed.broker.cluster.ownership.owner(TopicName.parse(TOPIC)) is None
    await second.done("PUT", f"{T}?authoritative=true")
    assert bed.broker.cluster.ownership.owner(TopicName.parse(TOPIC)) is bed.brokers[1]


async def test_any_broker_answers_for_partitions_wherever_they_are(first: Rest, second: Rest) -> None:
    await second.done("PUT", f"{TOPICS}/p/partitions", 8)
    for rest in (first, second):
        assert (await rest.get(f"{TOPICS}/p/partitioned-stats"))["metadata"]["partitions"] == 8
        assert len(await rest.get(TOPICS)) == 8


async def test_any_broker_answers_from_the_shared_metadata(bed: Bed, first: Rest) -> None:
    give(bed, 1)
    assert (await first.call("GET", f"{T}/partitions")).status == 404


async def test_a_lookup_is_redirected_to_the_leader(bed: Bed, first: Rest, second: Rest) -> None:
    answer = await second.call("GET", LOOKUP)
    assert (answer.status, answer.headers["location"]) == (
        307,
        f"http://broker.internal:8080{LOOKUP}?authoritative=false",
    )
    give(bed, 1)
    urls = await first.get(LOOKUP)
    assert (urls["brokerUrl"], urls["httpUrl"]) == ("pulsar://broker.internal:6651", "http://broker.internal:8081")


async def test_a_redirect_goes_to_the_advertised_address() -> None:
    async with serving(Config(advertisedAddress="b.example"), brokers=2) as bed:
        rest = rest_of(bed)
        give(bed, 1)
        answer = await rest.call("GET", f"{T}/stats")
        assert answer.headers["location"] == f"http://b.example:8081{T}/stats?authoritative=true"


async def test_a_redirect_does_not_repeat_a_wrong_host(bed: Bed, first: Rest) -> None:
    give(bed, 1)
    answer = await first.call("GET", f"{T}/stats", host="evil/x")
    assert answer.headers["location"].startswith("http://localhost:8081/")


async def test_brokers_that_stopped_are_not_listed(bed: Bed, first: Rest, second: Rest) -> None:
    assert await first.get(f"{ADMIN}/brokers") == ["localhost:8080", "localhost:8081"]
    bed.broker.stop()
    assert await second.get(f"{ADMIN}/brokers") == ["localhost:8081"]
    assert (await second.get(f"{ADMIN}/brokers/leaderBroker"))["brokerId"] == "localhost:8081"
