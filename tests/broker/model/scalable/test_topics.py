"""Scalable topics on a store: crashes, failed commits, and several brokers."""

from __future__ import annotations

import pytest
import trio

from pulsarium.broker.cluster import Broker
from pulsarium.broker.config import Config
from pulsarium.broker.model.scalable.layout import Layout
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.proto.entry import payload_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import Bed, Earliest, Type, Wire, plain, serving

NAME = TopicName.parse("topic://public/default/t")
LEGACY = TopicName.parse("persistent://public/default/t")
SEGMENT = "segment://public/default/t/0000-ffff-0"

CHANGES = ("create", "split", "merge", "migrate", "prune", "delete")


async def prepared(bed: Bed, change: str) -> None:
    """Create the topic that a change needs, with a subscription in its record and a message in its first segment."""
    scalable = bed.broker.cluster.scalable
    if change == "create":
        return
    wire = await bed.connect()
    if change == "migrate":
        await wire.producer(str(LEGACY))
        await wire.publish(plain(b"m"))
        return
    topic = scalable.create(NAME)
    topic.made["s"] = "STREAM"
    topic.save()
    await wire.producer(SEGMENT)
    await wire.publish(plain(b"m"))
    if change in ("merge", "prune"):
        await wire.alive()
        topic.split(0)
    bed.broker.turn.finish()


def changed(bed: Bed, change: str) -> None:
    scalable = bed.broker.cluster.scalable
    if change == "create":
        scalable.create(NAME, 3)
    elif change == "migrate":
        scalable.migrate(LEGACY, force=True)
    elif change == "delete":
        scalable.delete(NAME, force=True)
    else:
        topic = scalable.get(NAME)
        {"split": lambda: topic.split(0), "merge": lambda: topic.merge(1, 2), "prune": lambda: topic.prune([0])}[
            change
        ]()
    bed.broker.turn.finish()


def check_whole(broker: Broker, topic: ScalableTopic) -> None:
    """Assert that the segments of the record exist. New ones must have cursors, and sealed ones must be terminated."""
    for segment in topic.layout.segments.values():
        found = broker.topics.find_persistent(topic.segment_topic(segment))
        assert (found.ledger.terminated is None) is segment.active
        if segment.parents and segment.legacy_topic is None:
            assert [*found.subscriptions] == topic.subscriptions


async def read(wire: Wire, topic: str) -> list[bytes]:
    await wire.subscribe(topic, "reader", initialPosition=Earliest)
    await wire.flow()
    return [payload_of((await wire.message()).entry)]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("commits", range(4))
async def test_a_crash_behind_any_commit_leaves_the_old_layout_or_the_new_one_whole(change: str, commits: int) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        await prepared(bed, change)
        before = bed.broker.cluster.scalable.find(NAME)
        old = None if before is None else before.layout
        store.holding = True
        changed(bed, change)
        after = bed.broker.cluster.scalable.find(NAME)
        new = None if after is None else after.layout
        store.release(min(commits, len(store.waiting)))
        crashed = store.left_behind()
        store.release()
    async with serving(storage=crashed) as bed:
        topic = bed.broker.cluster.scalable.find(NAME)
        found: Layout | None = None if topic is None else topic.layout
        assert found in (old, new)
        if topic is not None:
            check_whole(bed.broker, topic)
        names = {
            str(each) for each in (() if topic is None else map(topic.segment_topic, topic.layout.segments.values()))
        }
        assert {name for name in bed.broker.topics._logs if name.startswith("segment://")} == {
            name for name in names if name.startswith("segment://")
        }
        if change in ("split", "merge", "migrate"):
            assert await read(await bed.connect(), str(LEGACY) if change == "migrate" else SEGMENT) == [b"m"]


async def test_a_failed_commit_leaves_the_layout_as_it_was(store: HeldStorage, bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    await (await bed.connect()).alive()
    store.holding = True
    topic.split(0)
    topic.split(1)
    bed.broker.turn.finish()
    store.fail()
    assert [each.id for each in topic.layout.active()] == [0]
    store.release()


async def test_a_topic_whose_creation_is_not_stored_does_not_exist(store: HeldStorage, bed: Bed) -> None:
    await (await bed.connect()).alive()
    store.holding = True
    topic = bed.broker.cluster.scalable.create(NAME)
    bed.broker.turn.finish()
    store.fail()
    assert bed.broker.cluster.scalable.find(NAME) is None
    assert not topic.exists
    store.release()


async def test_subscriptions_of_the_record_get_cursors_on_new_segments(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    topic.made["s"] = "STREAM"
    topic.split(0)
    children = [bed.broker.topics.find_persistent(topic.segment_topic(each)) for each in topic.layout.active()]
    assert [[*each.subscriptions] for each in children] == [["s"], ["s"]]


async def test_a_schema_of_one_segment_binds_all_and_goes_with_the_topic(bed: Bed, wire: Wire) -> None:
    scalable = bed.broker.cluster.scalable
    topic = scalable.create(NAME, 2)
    low, high = (str(topic.segment_topic(each)) for each in topic.layout.active())
    schema = pb.Schema(name="s", schema_data=b"", type=pb.Schema.String)
    await wire.producer(low, schema=schema)
    assert (await wire.ask(Type.GET_SCHEMA, topic=high)).schema.name == "public/default/t"
    assert (await wire.ask(Type.GET_SCHEMA, topic=str(NAME))).schema.type == pb.Schema.String
    topic.split(0)
    topic.prune([0])
    assert bed.broker.schemas.latest(NAME) is not None
    scalable.delete(NAME, force=True)
    assert bed.broker.schemas.latest(NAME) is None


async def test_a_lost_active_segment_comes_back_for_a_client_that_names_it(bed: Bed, wire: Wire) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    topic.split(0)
    bed.broker.cluster.scalable.delete_segments(
        [topic.segment_topic(each) for each in topic.layout.segments.values()], force=True
    )
    await wire.producer("segment://public/default/t/0000-7fff-1")
    refused = await wire.refused(Type.PRODUCER, topic=SEGMENT, producer_id=1)
    assert refused == (pb.TopicNotFound, f"Topic not found {SEGMENT}")


@pytest.mark.parametrize("topic", [SEGMENT, str(NAME)])
async def test_clients_do_not_create_segments_or_topics_of_other_domains(wire: Wire, topic: str) -> None:
    assert (await wire.refused(Type.PRODUCER, topic=topic, producer_id=0))[0] == pb.TopicNotFound


async def test_a_persistent_topic_is_not_created_beside_a_scalable_topic_of_its_name(bed: Bed, wire: Wire) -> None:
    bed.broker.cluster.scalable.create(NAME)
    assert (await wire.refused(Type.PRODUCER, topic=str(LEGACY), producer_id=0))[0] == pb.TopicNotFound


@pytest.mark.serving(brokers=2)
async def test_segments_are_served_by_several_brokers_each_at_its_own_address(bed: Bed) -> None:
    for index, broker in enumerate(bed.brokers):
        broker.listening(6650 + index, 8080 + index)
    bed.broker.cluster.scalable.create(NAME, 16)
    wire = await bed.connect()
    await wire.send(Type.SCALABLE_TOPIC_LOOKUP, session_id=1, topic=str(NAME))
    dag = (await wire.expect(Type.SCALABLE_TOPIC_UPDATE)).dag
    urls = {each.broker_url for each in dag.segment_brokers}
    assert urls == {"pulsar://localhost:6650", "pulsar://localhost:6651"}
    for each, segment in zip(dag.segment_brokers, dag.segments, strict=True):
        at = await bed.connect(broker=int(each.broker_url[-1]))
        await at.producer(
            f"segment://public/default/t/{segment.hash_start:04x}-{segment.hash_end:04x}-{segment.segment_id}"
        )


async def test_inactive_segments_are_not_deleted(autojump_clock: object) -> None:
    config = Config(brokerDeleteInactiveTopicsFrequencySeconds=1)
    async with serving(config) as bed:
        bed.broker.cluster.scalable.create(NAME)
        await trio.sleep(600)
        assert bed.broker.topics.exists(TopicName.parse(SEGMENT))


@pytest.mark.serving(brokers=2)
async def test_a_moved_segment_is_named_at_its_new_broker_by_the_next_lookup(bed: Bed) -> None:
    for index, broker in enumerate(bed.brokers):
        broker.listening(6650 + index, 8080 + index)
    cluster = bed.broker.cluster
    topic = cluster.scalable.create(NAME)
    (segment,) = topic.layout.active()
    name = topic.segment_topic(segment)
    first = cluster.ownership.serving(name)
    (other,) = (broker for broker in bed.brokers if broker is not first)
    bundle = cluster.ownership.bundle_of(name)
    assert bundle is not None
    await cluster.unload([("public/default", bundle)], other)
    wire = await bed.connect()
    await wire.send(Type.SCALABLE_TOPIC_LOOKUP, session_id=1, topic=str(NAME))
    (address,) = (await wire.expect(Type.SCALABLE_TOPIC_UPDATE)).dag.segment_brokers
    assert address.broker_url == other.assigned.service_url


@pytest.mark.parametrize(("segments", "buckets"), [(1, 8), (3, 2), (16, 1)])
@pytest.mark.serving(Config(scalableTopicEntryBucketBudget=8))
async def test_new_segments_share_the_budget_of_entry_buckets(bed: Bed, segments: int, buckets: int) -> None:
    topic = bed.broker.cluster.scalable.create(NAME, segments)
    assert {each.buckets for each in topic.layout.active()} == {buckets}


async def test_a_segment_has_no_more_entry_buckets_than_the_key_allows() -> None:
    config = Config(scalableTopicEntryBucketBudget=8, scalableTopicEntryBucketMaxPerSegment=4)
    async with serving(config) as bed:
        assert bed.broker.cluster.scalable.create(NAME).layout.segments[0].buckets == 4
