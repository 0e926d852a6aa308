"""Registration of consumers with the controller of a scalable topic, by frames (recordings 012 to 019, and 5.0.1)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_5_0, PULSAR_5_0_M1
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Bed, Cumulative, Earliest, Type, Wire, message_id, plain, serving

NAME = TopicName.parse("topic://public/default/t")
GRACE = Config(scalableTopicConsumerSessionGracePeriodSeconds=3, scalableTopicAutoScaleEnabled=False)
UPDATE, RESPONSE = Type.SCALABLE_TOPIC_ASSIGNMENT_UPDATE, Type.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.fixture
async def m1() -> AsyncIterator[Bed]:
    async with serving(GRACE, profile=PULSAR_5_0_M1) as bed:
        yield bed


@pytest.fixture
async def released() -> AsyncIterator[Bed]:
    async with serving(GRACE, profile=PULSAR_5_0) as bed:
        yield bed


def created(bed: Bed, segments: int = 1) -> ScalableTopic:
    return bed.broker.cluster.scalable.create(NAME, segments)


async def subscribe(
    bed: Bed, name: str, *, wire: Wire | None = None, consumer_id: int = 1, kind: str = "STREAM", **fields: Any
) -> Wire:
    """Send SCALABLE_TOPIC_SUBSCRIBE, on a new connection if none is given."""
    wire = wire or await bed.connect()
    asked = {"topic": str(NAME), "subscription": "s", **fields}
    kind_number = pb.ScalableConsumerType.Value(kind)
    await wire.write(
        wire.numbered(
            Type.SCALABLE_TOPIC_SUBSCRIBE,
            consumer_name=name,
            consumer_id=consumer_id,
            consumer_type=kind_number,
            **asked,
        )
    )
    return wire


async def told(wire: Wire, type: int = UPDATE) -> list[int]:
    return [each.segment_id for each in (await wire.expect(type)).assignment.segments]


async def joined(bed: Bed, name: str, **fields: Any) -> tuple[Wire, list[int]]:
    """Register a consumer. Return its connection and its segments, which M1 names before the answer too."""
    wire = await subscribe(bed, name, **fields)
    update = await told(wire) if bed.broker.profile.scalable_as_m1 else None
    segments = await told(wire, RESPONSE)
    assert update in (None, segments)
    return wire, segments


async def silence(*wires: Wire, seconds: float = 10) -> None:
    for wire in wires:
        assert await wire.rest(seconds) == []


async def test_m1_tells_a_consumer_its_segments_before_the_answer(m1: Bed) -> None:
    created(m1, 2)
    wire = await subscribe(m1, "c1", consumer_id=7)
    update = await wire.expect(UPDATE)
    assert update.consumer_id == 7
    assert update.assignment.layout_epoch == 0
    assert [(each.hash_start, each.hash_end, each.segment_topic) for each in update.assignment.segments] == [
        (0, 0x7FFF, "segment://public/default/t/0000-7fff-0"),
        (0x8000, 0xFFFF, "segment://public/default/t/8000-ffff-1"),
    ]
    assert (await wire.expect(RESPONSE)).assignment == update.assignment


async def test_the_answer_is_the_first_that_a_consumer_hears_of_its_segments(released: Bed) -> None:
    created(released, 2)
    first, segments = await joined(released, "c1")
    assert segments == [0, 1]
    again, segments = await joined(released, "c1")
    assert segments == [0, 1]
    await silence(first, again)


async def test_a_first_subscribe_makes_the_broker_the_controller_and_makes_no_cursor(m1: Bed) -> None:
    topic = created(m1)
    watcher = await m1.connect()
    await watcher.send(Type.SCALABLE_TOPIC_LOOKUP, session_id=1, topic=str(NAME))
    assert not (await watcher.expect(Type.SCALABLE_TOPIC_UPDATE)).dag.HasField("controller_broker_url")
    await joined(m1, "c1")
    assert (await watcher.expect(Type.SCALABLE_TOPIC_UPDATE)).dag.controller_broker_url
    segment = topic.loaded_segment(topic.layout.segments[0])
    assert segment is not None
    assert segment.subscriptions == {}


async def test_all_consumers_are_told_when_one_joins_and_when_its_grace_period_is_over(m1: Bed) -> None:
    created(m1, 2)
    first, _ = await joined(m1, "c1")
    second, segments = await joined(m1, "c2")
    assert (await told(first), segments) == ([0], [1])
    await second.aclose()
    await silence(first, seconds=2.9)
    assert await told(first) == [0, 1]


async def test_a_consumer_that_comes_back_in_time_is_the_only_one_that_is_told(m1: Bed) -> None:
    created(m1, 2)
    first, _ = await joined(m1, "c1")
    second, _ = await joined(m1, "c2")
    await told(first)
    await second.aclose()
    await trio.sleep(2)
    again, segments = await joined(m1, "c2", consumer_id=9)
    assert segments == [1]
    await silence(first, again)


async def test_m1_knows_only_the_last_consumer_of_an_id(m1: Bed) -> None:
    topic = created(m1, 2)
    wire, _ = await joined(m1, "c2", consumer_id=5)
    await joined(m1, "c1", wire=wire, consumer_id=5, subscription="s2")
    await wire.aclose()
    await trio.sleep(4)
    assert topic.registered == {"s": ["c2"]}


async def test_children_come_once_their_parent_is_drained(m1: Bed) -> None:
    topic = created(m1)
    wire, _ = await joined(m1, "c1")
    parent = str(topic.segment_topic(topic.layout.segments[0]))
    await wire.producer(topic=parent)
    positions = await wire.publish(plain(b"one"), plain(b"two"))
    await wire.subscribe(topic=parent, name="s", consumer_id=50, initialPosition=Earliest)
    topic.split(0)
    await wire.expect(Type.CLOSE_PRODUCER)
    assert await told(wire) == [0]
    await silence(wire, seconds=4)
    await wire.send(
        Type.ACK, consumer_id=50, ack_type=Cumulative, message_id=[message_id(positions[-1])], request_id=99
    )
    answers = [(await wire.next()).command.type for _ in range(2)]
    assert sorted(answers) == sorted((Type.REACHED_END_OF_TOPIC, Type.ACK_RESPONSE))
    assert await told(wire) == [1, 0, 2]


async def test_a_subscription_of_the_record_gets_cursors_on_new_segments(m1: Bed) -> None:
    topic = created(m1)
    await joined(m1, "c1")
    topic.split(0)
    for number in (1, 2):
        child = topic.loaded_segment(topic.layout.segments[number])
        assert child is not None
        assert list(child.subscriptions) == ["s"]


async def test_checkpoint_consumers_have_children_at_once(m1: Bed) -> None:
    topic = created(m1)
    first, _ = await joined(m1, "c1", kind="CHECKPOINT")
    topic.split(0)
    assert await told(first) == [1, 0, 2]
    _, segments = await joined(m1, "c2")
    assert segments == []
    assert [await told(first), await told(first)] == [[0], [0]]


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        *(
            (name, pb.UnknownError, f"Failed to initialize controller for {full}")
            for name, full in (
                ("topic://public/default/absent", "topic://public/default/absent"),
                ("public/default/t", "persistent://public/default/t"),
                ("bad", "persistent://public/default/bad"),
                ("non-persistent://public/default/t", "non-persistent://public/default/t"),
                ("segment://public/default/t/0000-ffff-0", "segment://public/default/t/0000-ffff-0"),
            )
        ),
        ("x://y/z", pb.InvalidTopicName, "Invalid topic name: x://y/z"),
    ],
)
async def test_only_scalable_topics_have_controllers(m1: Bed, topic: str, code: int, text: str) -> None:
    created(m1)
    wire = await subscribe(m1, "c1", topic=topic)
    response = await wire.expect(RESPONSE)
    assert (response.error, response.message) == (code, text)


async def test_a_consumer_without_a_name_is_refused_and_a_subscription_without_one_is_not(m1: Bed) -> None:
    created(m1)
    wire = await subscribe(m1, "")
    response = await wire.expect(RESPONSE)
    assert response.error == pb.UnknownError
    assert response.message == "Path(/topics/public/default/t/subscriptions/s/consumers/) is invalid"
    assert (await joined(m1, "c1", subscription=""))[1] == [0]


# leaving


async def test_unsubscribe_gives_the_segments_to_the_others_at_once(released: Bed) -> None:
    created(released, 2)
    first, _ = await joined(released, "c1")
    second, _ = await joined(released, "c2", consumer_id=4)
    await told(first)
    await second.write(second.numbered(Type.SCALABLE_TOPIC_UNSUBSCRIBE, consumer_id=4))
    await second.expect(Type.SUCCESS)
    assert await told(first) == [0, 1]
    await second.aclose()
    await silence(first)


async def test_unsubscribe_of_an_unknown_consumer_succeeds(released: Bed) -> None:
    wire = await released.connect()
    await wire.write(wire.numbered(Type.SCALABLE_TOPIC_UNSUBSCRIBE, consumer_id=4))
    await wire.expect(Type.SUCCESS)


@pytest.mark.serving(Config(scalableTopicsEnabled=False))
async def test_unsubscribe_is_refused_without_scalable_topics(wire: Wire) -> None:
    await wire.write(wire.numbered(Type.SCALABLE_TOPIC_UNSUBSCRIBE, consumer_id=4))
    error = await wire.expect(Type.ERROR)
    assert (error.error, error.message) == (pb.NotAllowedError, "Scalable topics are disabled on this broker")


async def test_m1_closes_the_connection_of_an_unsubscribe_and_the_grace_period_begins(m1: Bed) -> None:
    created(m1, 2)
    first, _ = await joined(m1, "c1")
    second, _ = await joined(m1, "c2")
    await told(first)
    await second.write(second.numbered(Type.SCALABLE_TOPIC_UNSUBSCRIBE, consumer_id=1))
    await second.closed()
    await silence(first, seconds=2.9)
    assert await told(first) == [0, 1]


async def test_two_consumers_of_one_segment_share_its_buckets(released: Bed) -> None:
    created(released)
    await joined(released, "c1")
    wire = await subscribe(released, "c2")
    ranges = (await wire.expect(RESPONSE)).assignment.segments[0].bucket_ranges
    assert [(each.start, each.end) for each in ranges] == [
        (0, 0x3FFF),
        (0x4000, 0x7FFF),
        (0x8000, 0xBFFF),
        (0xC000, 0xFFFF),
    ]


# brokers


@pytest.mark.serving(GRACE, brokers=2)
async def test_only_the_leader_registers_consumers_until_it_stops(bed: Bed) -> None:
    topic = created(bed, 2)
    await joined(bed, "c1")
    other = await bed.connect(broker=1)
    await subscribe(bed, "c2", wire=other)
    response = await other.expect(RESPONSE)
    assert (response.error, response.message) == (
        pb.UnknownError,
        "This broker is not the leader for topic: topic://public/default/t",
    )
    bed.broker.stop()
    assert topic.controller is None
    assert (await joined(bed, "c1", wire=other))[1] == [0, 1]
    assert topic.controller is bed.brokers[1]


async def test_an_unload_leaves_the_leader_and_its_registrations(released: Bed) -> None:
    topic = created(released, 2)
    wire, _ = await joined(released, "c1")
    bundle = released.broker.cluster.ownership.bundle_of(NAME)
    assert bundle is not None
    await released.broker.cluster.unload({("public/default", bundle)})
    assert topic.controller is released.broker
    topic.split(0)
    assert await told(wire) == [0, 1]  # the children follow once segment 0 is drained
