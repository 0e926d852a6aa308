"""Subscriptions of scalable topics over REST (recordings 021 and 022)."""

from __future__ import annotations

import pytest

from pulsarium.broker.config.profile import PULSAR_5_0
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import ADMIN, Rest, rest_of
from tests.broker.wire import Bed, plain, serving

NAME = TopicName.parse("topic://public/default/t")
TOPIC = f"{ADMIN}/scalable/public/default/t"
S = f"{TOPIC}/subscriptions/s"
ABSENT = "Scalable topic not found: topic://public/default/t"


@pytest.fixture
def topic(bed: Bed) -> ScalableTopic:
    return bed.broker.cluster.scalable.create(NAME, 2)


def segment(topic: ScalableTopic, number: int) -> PersistentTopic:
    found = topic.opened_segment(topic.layout.segments[number])
    assert found is not None
    return found


def backlogs(topic: ScalableTopic) -> list[int]:
    return [segment(topic, each).subscriptions["s"].cursor.backlog() for each in sorted(topic.layout.segments)]


async def test_a_new_subscription_has_a_cursor_on_each_active_segment(rest: Rest, topic: ScalableTopic) -> None:
    topic.split(0)
    assert (await rest.call("PUT", S)).status == 204
    assert topic.made == {"s": "STREAM"}
    assert ["s" in segment(topic, each).subscriptions for each in range(4)] == [False, True, True, True]
    assert (await rest.call("PUT", f"{S}?type=QUEUE")).status == 204
    assert topic.made == {"s": "STREAM"}


@pytest.mark.parametrize("kind", ["CHECKPOINT", "x"])
async def test_only_stream_and_queue_are_types(rest: Rest, topic: ScalableTopic, kind: str) -> None:
    answer = await rest.call("PUT", f"{S}?type={kind}")
    assert (answer.status, answer.body) == (404, b"")
    assert topic.made == {}


async def test_a_deleted_subscription_keeps_the_cursors_that_clients_use(bed: Bed, topic: ScalableTopic) -> None:
    rest, wire = rest_of(bed), await bed.connect()
    await rest.call("PUT", S)
    used = str(topic.segment_topic(topic.layout.segments[0]))
    await wire.subscribe(topic=used, name="s")
    assert (await rest.call("DELETE", S)).status == 204
    assert topic.subscriptions == []
    assert ["s" in segment(topic, each).subscriptions for each in range(2)] == [True, False]
    assert (await rest.call("DELETE", S)).status == 204
    await wire.alive()


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", S), ("DELETE", S), ("POST", f"{S}/seek?timestamp=1"), ("POST", f"{S}/skip-all")]
)
async def test_an_absent_topic_has_no_controller(method: str, path: str) -> None:
    async with serving() as bed:
        answer = await rest_of(bed).call(method, path)
        assert (answer.status, answer.reason) == (404, ABSENT)
    async with serving(profile=PULSAR_5_0) as bed:
        answer = await rest_of(bed).call(method, path)
        assert answer.status == 500
        assert "Message: Failed to initialize controller for topic://public/default/t\n" in answer.reason


async def test_seek_and_skip_move_the_subscription_on_all_segments(bed: Bed, topic: ScalableTopic) -> None:
    rest, wire = rest_of(bed), await bed.connect()
    await rest.call("PUT", S)
    for number in range(2):
        await wire.producer(topic=str(topic.segment_topic(topic.layout.segments[number])), producer_id=number)
        await wire.publish(*(plain(b"x", publish_time=time) for time in (100, 200, 300)), producer_id=number)
    assert (await rest.call("POST", f"{S}/skip-all")).status == 204
    assert backlogs(topic) == [0, 0]
    for query, left in (("", 3), ("?timestamp=200", 2), ("?timestamp=301", 0)):
        assert (await rest.call("POST", f"{S}/seek{query}")).status == 204
        assert backlogs(topic) == [left, left]


async def test_seek_and_skip_of_an_unknown_subscription_succeed(rest: Rest, topic: ScalableTopic) -> None:
    for path in ("seek?timestamp=1", "skip-all"):
        assert (await rest.call("POST", f"{TOPIC}/subscriptions/none/{path}")).status == 204


async def test_the_time_of_a_seek_is_a_number(rest: Rest, topic: ScalableTopic) -> None:
    assert (await rest.call("POST", f"{S}/seek?timestamp=x")).status == 404


@pytest.mark.serving(brokers=2)
async def test_another_broker_redirects_to_the_leader(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    bed.broker.cluster.controllers.lead(topic, bed.brokers[1])
    answer = await rest_of(bed).call("PUT", S)
    assert answer.status == 307
    assert answer.headers["location"].endswith(f"{S}?authoritative=true")
