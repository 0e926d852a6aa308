"""WATCH_TOPIC_LIST, and the updates that follow."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.topic.watchers import hash_of_names
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Type, Wire

ALL = "persistent://public/default/t.*"


async def watch(wire: Wire, watcher_id: int = 0, **fields: Any) -> pb.CommandWatchTopicListSuccess:
    fields = {"namespace": "public/default", "topics_pattern": ALL, **fields}
    success: pb.CommandWatchTopicListSuccess = await wire.ask(Type.WATCH_TOPIC_LIST, watcher_id=watcher_id, **fields)
    assert success.watcher_id == watcher_id
    return success


def create(bed: Bed, topic: str = TOPIC) -> None:
    bed.broker.topics.create(TopicName.parse(topic))


@pytest.mark.req("B-38")
async def test_a_watcher_hears_of_existing_new_and_deleted_topics(bed: Bed, wire: Wire) -> None:
    create(bed)
    create(bed, "persistent://public/default/other")
    success = await watch(wire)
    assert (list(success.topic), success.topics_hash) == ([TOPIC], hash_of_names([TOPIC]))
    create(bed, f"{TOPIC}2")
    update = await wire.expect(Type.WATCH_TOPIC_UPDATE)
    assert (update.watcher_id, update.new_topics, update.deleted_topics) == (0, [f"{TOPIC}2"], [])
    assert update.topics_hash == hash_of_names([TOPIC, f"{TOPIC}2"])
    bed.broker.topics.delete(TopicName.parse(TOPIC), force=True)
    update = await wire.expect(Type.WATCH_TOPIC_UPDATE)
    assert (update.new_topics, update.deleted_topics) == ([], [TOPIC])
    create(bed, "persistent://public/default/another")
    create(bed, "persistent://pulsar/system/t")
    bed.broker.topics.unload(TopicName.parse(f"{TOPIC}2"))
    await wire.quiet()


@pytest.mark.req("B-38", "B-36")
async def test_partitions_are_told_one_by_one(bed: Bed, wire: Wire) -> None:
    await watch(wire)
    bed.broker.topics.create_partitions(TopicName.parse(TOPIC), 2)
    updates = [await wire.expect(Type.WATCH_TOPIC_UPDATE) for _ in range(2)]
    assert [list(update.new_topics) for update in updates] == [[f"{TOPIC}-partition-{i}"] for i in range(2)]


@pytest.mark.req("B-38")
async def test_a_watcher_that_knows_the_list_is_not_sent_it_again(bed: Bed, wire: Wire) -> None:
    create(bed)
    success = await watch(wire, topics_hash=hash_of_names([TOPIC]))
    assert (list(success.topic), success.topics_hash) == ([], hash_of_names([TOPIC]))


@pytest.mark.req("B-38")
async def test_the_same_watcher_twice(bed: Bed, wire: Wire) -> None:
    await watch(wire)
    await watch(wire)
    create(bed)
    await wire.expect(Type.WATCH_TOPIC_UPDATE)
    await wire.quiet()


@pytest.mark.req("B-38")
async def test_a_watch_ends(bed: Bed, wire: Wire) -> None:
    other = await bed.connect()
    await watch(wire)
    await watch(other)
    await wire.ask(Type.WATCH_TOPIC_LIST_CLOSE, watcher_id=0)
    await wire.ask(Type.WATCH_TOPIC_LIST_CLOSE, watcher_id=99)
    await other.aclose()
    create(bed)
    await wire.quiet()


@pytest.mark.req("B-38")
async def test_watches_that_are_refused(bed: Bed, wire: Wire) -> None:
    code, text = await wire.refused(
        Type.WATCH_TOPIC_LIST, watcher_id=0, namespace="public/default", topics_pattern="x" * 51
    )
    assert (code, text) == (
        pb.NotAllowedError,
        "Unable to create topic list watcher: Pattern longer than maximum: 50",
    )
    assert (await watch(wire, topics_pattern="persistent://" + "x" * 50, watcher_id=9)).topic == []
    code, text = await wire.refused(Type.WATCH_TOPIC_LIST, watcher_id=0, namespace="public/default", topics_pattern="(")
    assert code == pb.InvalidTopicName
    assert text.startswith("Invalid topics pattern: ")
    assert (await watch(wire, namespace="public/none")).topic == []
    await wire.write(wire.numbered(Type.WATCH_TOPIC_LIST, watcher_id=1, namespace="public", topics_pattern=ALL))
    assert await wire.closed() == []


@pytest.mark.req("B-38")
@pytest.mark.serving(Config(enableBrokerTopicListWatcher=False))
async def test_watching_may_be_off(wire: Wire) -> None:
    code, _ = await wire.refused(Type.WATCH_TOPIC_LIST, watcher_id=0, namespace="public/default", topics_pattern=ALL)
    assert code == pb.NotAllowedError
