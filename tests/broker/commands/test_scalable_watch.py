"""WATCH_SCALABLE_TOPICS: the scalable topics of a namespace."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from pulsarium.broker.model.topic.watchers import hash_of_names
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import Bed, Type, Wire

pytestmark = pytest.mark.usefixtures("autojump_clock")

NAMESPACE = "public/default"


def name(local: str) -> str:
    return f"topic://{NAMESPACE}/{local}"


def create(bed: Bed, local: str, **properties: str) -> None:
    bed.broker.cluster.scalable.create(TopicName.parse(name(local)), properties=properties)


def delete(bed: Bed, local: str) -> None:
    bed.broker.cluster.scalable.delete(TopicName.parse(name(local)))


async def watch(wire: Wire, watch_id: int = 1, namespace: str = NAMESPACE, **fields: Any) -> None:
    await wire.send(Type.WATCH_SCALABLE_TOPICS, watch_id=watch_id, namespace=namespace, **fields)


async def told(wire: Wire) -> Any:
    return await wire.expect(Type.WATCH_SCALABLE_TOPICS_UPDATE)


async def diff(wire: Wire) -> tuple[list[str], list[str]]:
    update = await told(wire)
    return list(update.diff.added), list(update.diff.removed)


async def test_a_watch_begins_with_all_topics_and_follows_their_changes(bed: Bed, wire: Wire) -> None:
    create(bed, "b")
    create(bed, "a")
    await watch(wire, 7)
    first = await told(wire)
    assert (first.watch_id, list(first.snapshot.topics)) == (7, [name("a"), name("b")])
    create(bed, "c")
    delete(bed, "a")
    assert await diff(wire) == ([name("c")], [name("a")])


async def test_changes_that_follow_closely_are_one_update_and_cancel_each_other(bed: Bed, wire: Wire) -> None:
    await watch(wire)
    assert (await told(wire)).HasField("snapshot")
    for local in ("a", "b", "c"):
        create(bed, local)
    await trio.sleep(0.04)
    delete(bed, "b")
    assert await diff(wire) == ([name("a"), name("c")], [])


async def test_a_watch_shows_the_topics_that_have_all_properties(bed: Bed, wire: Wire) -> None:
    create(bed, "a", team="x", stage="test")
    create(bed, "b", team="x")
    await watch(wire, property_filters=[pb.KeyValue(key="team", value="x"), pb.KeyValue(key="stage", value="test")])
    assert list((await told(wire)).snapshot.topics) == [name("a")]
    create(bed, "c", team="x")
    create(bed, "d", stage="test", team="x")
    assert await diff(wire) == ([name("d")], [])


async def test_a_client_that_has_the_topics_gets_only_changes(bed: Bed, wire: Wire) -> None:
    create(bed, "a")
    await watch(wire, current_hash=hash_of_names([name("a")]))
    await wire.alive()
    create(bed, "b")
    assert await diff(wire) == ([name("b")], [])


async def test_a_split_changes_no_list(bed: Bed, wire: Wire) -> None:
    create(bed, "a")
    await watch(wire)
    await told(wire)
    bed.broker.cluster.scalable.get(TopicName.parse(name("a"))).split(0)
    await trio.sleep(1)
    create(bed, "b")
    assert await diff(wire) == ([name("b")], [])


@pytest.mark.parametrize("text", ["bad", ""])
async def test_an_invalid_namespace_is_refused(wire: Wire, text: str) -> None:
    await watch(wire, namespace=text)
    refused = await told(wire)
    assert (refused.error, refused.message) == (pb.InvalidTopicName, f"Invalid namespace: {text}")


async def test_a_namespace_that_does_not_exist_has_no_topics(wire: Wire) -> None:
    await watch(wire, namespace="no/such")
    assert (await told(wire)).HasField("snapshot")


async def test_a_watch_ends_with_its_close_its_successor_and_its_connection(bed: Bed, wire: Wire) -> None:
    observers = bed.broker.cluster.scalable.observers
    others = set(observers)
    await watch(wire)
    await watch(wire)
    await told(wire)
    await told(wire)
    assert len(observers.keys() - others) == 1
    await wire.send(Type.WATCH_SCALABLE_TOPICS_CLOSE, watch_id=1)
    await wire.alive()
    assert observers.keys() == others
    await watch(wire)
    await told(wire)
    bed.broker.close_sessions()
    assert observers.keys() == others
