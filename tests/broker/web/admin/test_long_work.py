"""Requests that take long: other tasks have their turn meanwhile, and may change what the request reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest
import trio

from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net import slices
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, TOPICS, Rest
from tests.broker.wire import TOPIC, Bed, Shared, Type, Wire, plain

MANY = 600
ANSWERED = 40  # PINGs during one request; a pause for each topic alone would leave time for fewer
LONG = [
    f"GET {TOPICS}/t/stats",
    f"GET {TOPICS}/t/internalStats",
    f"GET {TOPICS}/p/partitioned-stats",
    f"GET {TOPICS}/p/partitioned-internalStats",
    "GET /metrics/",
    f"GET {ADMIN}/broker-stats/topics",
    "GET /pulsarium/topics",
    "GET /pulsarium/topic/persistent/public/default/t",
    "GET /pulsarium/topic/persistent/public/default/p",
    f"PUT {NAMESPACES}/public/default/unload",
    f"POST {NAMESPACES}/public/default/clearBacklog",
    f"POST {NAMESPACES}/public/default/clearBacklog/s0",
    f"POST {NAMESPACES}/public/default/unsubscribe/s0",
]

Meanwhile = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture
def each_step_is_a_slice(monkeypatch: pytest.MonkeyPatch, bed: Bed) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    monkeypatch.setattr(bed.broker, "started_ms", 0)  # broker-stats shows topics only a minute after the start


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch, each_step_is_a_slice: None) -> Iterator[Meanwhile]:
    """Return a function that runs an action in the third pause of a request. Expect at least three pauses."""
    pauses = 0

    def do(action: Callable[[], Awaitable[None]]) -> None:
        async def checkpoint() -> None:
            nonlocal pauses
            pauses += 1
            if pauses == 3:
                await action()

        monkeypatch.setattr(slices, "checkpoint", checkpoint)

    yield do
    assert pauses >= 3


def subscribe_often(bed: Bed, name: str) -> None:
    """Make a topic with many subscriptions."""
    topic = bed.broker.topics.create(TopicName.parse(name))
    assert isinstance(topic, PersistentTopic)
    for number in range(MANY):
        topic.subscribe(f"s{number}", earliest=True)


def make_ready(bed: Bed, call: str) -> None:
    """Create the topics and subscriptions that a call is about."""
    topics = bed.broker.topics
    if "/public/default/" in call and NAMESPACES in call:
        for number in range(MANY):
            topic = topics.create(TopicName.parse(str(number)))
            assert isinstance(topic, PersistentTopic)
            topic.subscribe("s0", earliest=True)
    elif "/p/" in call or call.endswith("/p"):
        topics.create_partitions(TopicName.parse("p"), 1)
        subscribe_often(bed, "p-partition-0")
    else:
        subscribe_often(bed, "t")


async def answered_meanwhile(rest: Rest, bystander: Wire, call: str) -> int:
    """Make a call, and return how many PINGs of a bystander are answered meanwhile."""
    answered = 0

    async def ping() -> None:
        nonlocal answered
        while True:
            await bystander.alive()
            answered += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ping)
        answer = await rest.call(*call.split())
        nursery.cancel_scope.cancel()
    assert answer.status in (200, 204)
    return answered


@pytest.mark.parametrize("call", LONG)
async def test_a_bystander_is_answered_while_it_takes_long(
    rest: Rest, bed: Bed, wire: Wire, each_step_is_a_slice: None, call: str
) -> None:
    make_ready(bed, call)
    assert await answered_meanwhile(rest, wire, call) >= ANSWERED


@pytest.mark.parametrize("what", ["producers", "consumers"])
async def test_a_bystander_is_answered_while_many_clients_are_told_of(
    rest: Rest, bed: Bed, wire: Wire, each_step_is_a_slice: None, what: str
) -> None:
    many = await bed.connect()
    for number in range(MANY):
        if what == "producers":
            await many.producer(producer_id=number)
        else:
            await many.subscribe(type=Shared, consumer_id=number)
    assert await answered_meanwhile(rest, wire, f"GET {TOPICS}/t/stats") >= ANSWERED


@pytest.mark.parametrize("what", ["stats", "internalStats"])
async def test_a_subscription_that_goes_meanwhile_is_left_out(
    rest: Rest, bed: Bed, wire: Wire, meanwhile: Meanwhile, what: str
) -> None:
    for number in range(5):
        await wire.subscribe(TOPIC, f"s{number}", Shared, consumer_id=number)
    topic = bed.topic()

    async def unsubscribe() -> None:
        topic.unsubscribe("s4")

    meanwhile(unsubscribe)
    told = await rest.get(f"{TOPICS}/t/{what}")
    assert list(told["subscriptions" if what == "stats" else "cursors"]) == ["s0", "s1", "s2", "s3"]


async def test_messages_sent_to_a_subscription_that_is_deleted_meanwhile_count(
    rest: Rest, bed: Bed, wire: Wire, meanwhile: Meanwhile
) -> None:
    await wire.producer()
    for number in range(5):
        await wire.subscribe(TOPIC, f"s{number}", Shared, consumer_id=number)
        await wire.flow(consumer_id=number)
    await wire.publish(plain(b"x"))
    await wire.messages(5)
    topic = bed.topic()

    async def unsubscribe() -> None:
        topic.unsubscribe("s0")  # the stats have counted it already
        topic.unsubscribe("s4")

    meanwhile(unsubscribe)
    assert (await rest.get(f"{TOPICS}/t/stats"))["msgOutCounter"] == 5


@pytest.mark.parametrize("what", ["stats", "internalStats"])
async def test_a_topic_may_be_deleted_meanwhile(
    rest: Rest, bed: Bed, wire: Wire, meanwhile: Meanwhile, what: str
) -> None:
    for number in range(5):
        await wire.subscribe(TOPIC, f"s{number}", Shared, consumer_id=number)

    async def delete() -> None:
        bed.broker.topics.delete(TopicName.parse(TOPIC), force=True)

    meanwhile(delete)
    assert (await rest.call("GET", f"{TOPICS}/t/{what}")).status == 200


def let_two_of_five_change(bed: Bed, meanwhile: Meanwhile) -> None:
    """Create topics t0 to t4. Meanwhile, delete t3, and load t4 again."""
    topics = bed.broker.topics
    for number in range(5):
        topics.create(TopicName.parse(f"t{number}"))

    async def change() -> None:
        topics.delete(TopicName.parse("t3"), force=True)
        topics.unload(TopicName.parse("t4"))
        topics.create(TopicName.parse("t4"))

    meanwhile(change)


@pytest.mark.parametrize("url", ["/metrics/", *(f"{ADMIN}/broker-stats/{what}" for what in ("topics", "bookieops"))])
async def test_a_topic_that_goes_meanwhile_is_not_measured(
    rest: Rest, bed: Bed, meanwhile: Meanwhile, url: str
) -> None:
    let_two_of_five_change(bed, meanwhile)
    answer = await rest.call("GET", url)
    told = [number for number in range(5) if f'{TOPIC}{number}"' in answer.body.decode()]
    assert (answer.status, told) == (200, [0, 1, 2])


@pytest.mark.parametrize("what", ["partitioned-stats", "partitioned-internalStats"])
async def test_partitions_may_be_deleted_meanwhile(rest: Rest, bed: Bed, meanwhile: Meanwhile, what: str) -> None:
    await rest.done("PUT", f"{TOPICS}/p/partitions", 3)
    for number in range(5):
        await rest.done("PUT", f"{TOPICS}/p/subscription/s{number}")

    async def delete() -> None:
        bed.broker.topics.delete(TopicName.parse("p-partition-2"), force=True)

    meanwhile(delete)
    told = await rest.get(f"{TOPICS}/p/{what}")
    assert [name[-1] for name in told["partitions"]] == ["0", "1"]


@pytest.mark.req("B-50")
async def test_a_topic_is_looked_up_again_once_its_bundle_is_unloaded(
    rest: Rest, bed: Bed, wire: Wire, meanwhile: Meanwhile
) -> None:
    """The texts of the errors are Pulsar's (NamespaceService, ServerCnx)."""
    for number in range(5):
        await wire.subscribe(f"{TOPIC}{number}", consumer_id=number)
    bundle = bed.broker.cluster.ownership.bundle_of(TopicName.parse(TOPIC))
    other = await bed.connect()

    async def look_up() -> None:
        found = await other.ask(Type.LOOKUP, topic=TOPIC)
        assert (found.response, found.error) == (pb.CommandLookupTopicResponse.Failed, pb.MetadataError)
        assert found.message == f"Namespace bundle public/default/{bundle} is being unloaded"
        code, text = await other.refused(Type.PRODUCER, topic=TOPIC, producer_id=0)
        assert code == pb.ServiceNotReady
        assert f"Namespace bundle (public/default/{bundle}) for topic ({TOPIC}) not served by this instance" in text

    meanwhile(look_up)
    await rest.done("PUT", f"{NAMESPACES}/public/default/unload")
    assert {(await wire.next()).command.close_consumer.consumer_id for _ in range(5)} == {0, 1, 2, 3, 4}
    assert (await other.ask(Type.LOOKUP, topic=TOPIC)).response == pb.CommandLookupTopicResponse.Connect
    await other.producer()


async def test_an_unload_does_not_undo_changes_of_topics_made_meanwhile(
    rest: Rest, bed: Bed, wire: Wire, meanwhile: Meanwhile
) -> None:
    let_two_of_five_change(bed, meanwhile)
    await rest.done("PUT", f"{NAMESPACES}/public/default/unload")
    assert list(bed.broker.topics.loaded) == [f"{TOPIC}4"]


@pytest.mark.parametrize("what", ["clearBacklog", "clearBacklog/s", "unsubscribe/s"])
async def test_topics_that_go_meanwhile_are_passed_over(rest: Rest, bed: Bed, meanwhile: Meanwhile, what: str) -> None:
    for number in range(5):
        await rest.done("PUT", f"{TOPICS}/t{number}/subscription/s")
    topics = bed.broker.topics

    async def change() -> None:
        for number in (0, 3):
            topics.delete(TopicName.parse(f"t{number}"), force=True)
        topics.unload(TopicName.parse("t1"))

    meanwhile(change)
    await rest.done("POST", f"{NAMESPACES}/public/default/{what}")
