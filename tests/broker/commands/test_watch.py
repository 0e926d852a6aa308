"""WATCH_TOPIC_LIST, and the updates that follow."""

from __future__ import annotations

from collections.abc import Iterable
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
    assert (await watch(wire, namespace="public/none")).topic == []
    await wire.write(wire.numbered(Type.WATCH_TOPIC_LIST, watcher_id=1, namespace="public", topics_pattern=ALL))
    assert await wire.closed() == []


@pytest.mark.parametrize(
    ("pattern", "code", "text"),
    [
        ("(", pb.InvalidTopicName, "Invalid topics pattern: Unclosed group near index 1\n("),
        ("a**", pb.InvalidTopicName, "Invalid topics pattern: Dangling meta character '*' near index 2\na**\n  ^"),
        ("foo://x", pb.AuthorizationError, "Exception occurred while trying to handle command WatchTopicList"),
        (
            r"(a)\1",
            pb.NotAllowedError,
            "Unable to create topic list watcher: Evaluating subscription patterns is disabled.",
        ),
    ],
)
async def test_a_watch_of_a_pattern_that_cannot_be_evaluated_is_refused(
    wire: Wire, pattern: str, code: int, text: str
) -> None:
    """The last pattern needs backtracking. Its client looks for topics now and then instead."""
    refused = await wire.refused(
        Type.WATCH_TOPIC_LIST, watcher_id=0, namespace="public/default", topics_pattern=pattern
    )
    assert refused == (code, text)


@pytest.mark.req("B-38")
async def test_a_watcher_with_lookaround_hears_only_of_matching_topics(bed: Bed, wire: Wire) -> None:
    create(bed)
    create(bed, f"{TOPIC}-DLQ")
    success = await watch(wire, topics_pattern="public/default/(?!.*-DLQ).*")
    assert list(success.topic) == [TOPIC]
    create(bed, f"{TOPIC}2-DLQ")
    create(bed, f"{TOPIC}2")
    assert (await wire.expect(Type.WATCH_TOPIC_UPDATE)).new_topics == [f"{TOPIC}2"]
    await wire.quiet()


async def test_a_watcher_is_not_told_of_a_name_that_takes_too_much_work(
    bed: Bed, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    await watch(wire, topics_pattern="public/default/(?=((.*)*)*!).*")
    create(bed, f"{TOPIC}{'x' * 400}!")
    create(bed, f"{TOPIC}!")
    assert (await wire.expect(Type.WATCH_TOPIC_UPDATE)).new_topics == [f"{TOPIC}!"]
    assert "its pattern takes too much work" in caplog.text


@pytest.mark.serving(Config(enableBrokerTopicListWatcher=False))
async def test_watchers_may_not_be_offered(bed: Bed) -> None:
    """Pulsar 4.2.4 still answers a client that asks nevertheless."""
    wire = bed.dial()
    connected = await wire.connect()
    assert not connected.feature_flags.supports_topic_watchers
    create(bed)
    assert (await watch(wire)).topic == [TOPIC]


@pytest.mark.req("B-38")
@pytest.mark.serving(Config(enableBrokerSideSubscriptionPatternEvaluation=False))
async def test_watching_may_be_off(wire: Wire) -> None:
    refused = await wire.refused(Type.WATCH_TOPIC_LIST, watcher_id=0, namespace="public/default", topics_pattern=ALL)
    text = "Unable to create topic list watcher: Evaluating subscription patterns is disabled."
    assert refused == (pb.NotAllowedError, text)


async def test_watchers_with_one_pattern_share_the_work_of_a_new_topic(
    bed: Bed, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = []

    def counting(names: Iterable[str]) -> str:
        hashed.append(1)
        return hash_of_names(names)

    for watcher_id in range(5):
        await watch(wire, watcher_id=watcher_id)
    monkeypatch.setattr("pulsarium.broker.model.topic.watchers.hash_of_names", counting)
    create(bed, f"{TOPIC}2")
    updates = [(await wire.expect(Type.WATCH_TOPIC_UPDATE)).watcher_id for _ in range(5)]
    assert updates == [*range(5)]
    assert len(hashed) == 1


async def test_a_stopped_watcher_leaves_those_with_its_pattern(bed: Bed, wire: Wire) -> None:
    for watcher_id in range(2):
        await watch(wire, watcher_id=watcher_id)
    await wire.ask(Type.WATCH_TOPIC_LIST_CLOSE, watcher_id=0)
    create(bed, f"{TOPIC}2")
    assert (await wire.expect(Type.WATCH_TOPIC_UPDATE)).watcher_id == 1
    await wire.quiet()
