"""maxTopicsPerNamespace: the limit on persistent topics and segments of a namespace."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.commands.refusals import refused_consumer, refused_producer
from tests.broker.web.admin.rest import ADMIN, NAMESPACES, NON_PERSISTENT, TOPICS, Rest
from tests.broker.wire import Bed, Type, Wire

FULL = "Exceed maximum number of topics in namespace."
LIMIT = f"{NAMESPACES}/public/default/maxTopicsPerNamespace"
AUTO = f"{NAMESPACES}/public/default/autoTopicCreation"
NEW = "persistent://public/default/new"


async def test_partitions_count_one_by_one(rest: Rest) -> None:
    await rest.done("POST", LIMIT, 3)
    await rest.done("PUT", f"{TOPICS}/a")
    assert await rest.refused("PUT", f"{TOPICS}/p/partitions", 3) == (412, FULL)
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    assert await rest.refused("PUT", f"{TOPICS}/b") == (409, FULL)
    assert await rest.refused("PUT", f"{TOPICS}/b/subscription/s") == (409, FULL)
    assert await rest.refused("PUT", f"{TOPICS}/p/partitions", 2) == (412, FULL)  # Pulsar checks the limit first
    assert await rest.refused("PUT", f"{TOPICS}/a") == (409, "This topic already exists")
    assert await rest.get(TOPICS) == [
        f"persistent://public/default/{name}" for name in ("a", "p-partition-0", "p-partition-1")
    ]


async def test_existing_topics_may_grow_and_non_persistent_topics_do_not_count(rest: Rest) -> None:
    await rest.done("POST", LIMIT, 2)
    await rest.done("PUT", f"{TOPICS}/p/partitions", 2)
    await rest.done("POST", f"{TOPICS}/p/partitions", 4)
    await rest.done("POST", f"{TOPICS}/p/createMissedPartitions")
    await rest.done("PUT", f"{NON_PERSISTENT}/n")
    await rest.done("PUT", f"{NON_PERSISTENT}/np/partitions", 2)


async def test_clients_are_refused_too(bed: Bed, rest: Rest, wire: Wire) -> None:
    await rest.done("POST", LIMIT, 1)
    await wire.producer()
    assert await refused_producer(wire, 1, NEW) == (pb.NotAllowedError, FULL)
    assert await refused_consumer(wire, topic=NEW) == (pb.NotAllowedError, FULL)
    await wire.subscribe()  # to the existing topic


async def test_a_topic_that_would_be_made_partitioned_is_refused_at_its_metadata(rest: Rest, wire: Wire) -> None:
    await rest.done("POST", LIMIT, 1)
    auto = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2}
    await rest.done("POST", AUTO, auto)
    await wire.send(Type.PARTITIONED_METADATA, request_id=7, topic=NEW, metadata_auto_creation_enabled=True)
    reply = await wire.expect(Type.PARTITIONED_METADATA_RESPONSE)
    assert (reply.error, reply.message) == (pb.ServiceNotReady, FULL)
    assert await rest.refused("GET", f"{TOPICS}/new/partitions?checkAllowAutoCreation=true") == (409, FULL)
    assert await rest.get(f"{TOPICS}/partitioned") == []


@pytest.mark.parametrize(("own", "refused"), [(None, True), (0, False), (2, False), (1, True)])
@pytest.mark.serving(Config(maxTopicsPerNamespace=1))
async def test_a_namespace_has_the_last_word(rest: Rest, own: Any, refused: bool) -> None:
    if own is not None:
        await rest.done("POST", LIMIT, own)
    await rest.done("PUT", f"{TOPICS}/a")
    assert (await rest.call("PUT", f"{TOPICS}/b")).status == (409 if refused else 204)


async def test_segments_of_scalable_topics_count_apart_and_without_room_a_segment_is_not_split(rest: Rest) -> None:
    await rest.done("POST", LIMIT, 2)
    await rest.done("PUT", f"{TOPICS}/a")
    scalable = f"{ADMIN}/scalable/public/default"
    await rest.done("PUT", f"{scalable}/s")
    await rest.done("PUT", f"{TOPICS}/b")
    assert await rest.refused("PUT", f"{scalable}/u?numInitialSegments=2") == (409, FULL)
    assert await rest.refused("POST", f"{scalable}/s/split/0") == (409, FULL)
    await rest.done("PUT", f"{scalable}/u")
    assert len((await rest.get(f"{scalable}/s"))["segments"]) == 1


async def test_topics_of_the_broker_need_no_room(rest: Rest) -> None:
    await rest.done("POST", LIMIT, 1)
    await rest.done("PUT", f"{TOPICS}/a")
    await rest.done("POST", f"{TOPICS}/a/maxProducers", 1)  # creates the topic of topic policies
    assert "persistent://public/default/__change_events" in await rest.get(f"{TOPICS}?includeSystemTopic=true")
