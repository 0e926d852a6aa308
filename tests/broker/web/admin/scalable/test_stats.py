"""Stats of scalable topics over REST: the short form of 5.0.0-M1 (recording 023), and the form of 5.0.1."""

from __future__ import annotations

import pytest
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PULSAR_5_0, PULSAR_5_0_M1
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.dispatch.sharing import got, joined
from tests.broker.model.scalable.silent import Silent
from tests.broker.web.admin.rest import ADMIN, rest_of
from tests.broker.wire import Bed, Earliest, batch_of, plain, serving

NAME = TopicName.parse("topic://public/default/t")
STATS = f"{ADMIN}/scalable/public/default/t/stats"


@pytest.mark.serving(profile=PULSAR_5_0_M1)
async def test_m1_shows_segments_and_the_number_of_consumers(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME, 2)
    registrations = bed.broker.cluster.controllers.lead(topic, bed.broker).registrations
    registrations.create("made", "QUEUE")
    registrations.join("s", "c1", Silent(), 1, ordered=True)
    registrations.join("a/b", "c1", Silent(), 1, ordered=True)
    topic.split(0)
    assert (await rest_of(bed).call("GET", STATS)).json == {
        "epoch": 1,
        "totalSegments": 4,
        "activeSegments": 3,
        "sealedSegments": 1,
        "segments": {
            "0": {"name": "segment://public/default/t/0000-7fff-0", "state": "SEALED"},
            "1": {"name": "segment://public/default/t/8000-ffff-1", "state": "ACTIVE"},
            "2": {"name": "segment://public/default/t/0000-3fff-2", "state": "ACTIVE"},
            "3": {"name": "segment://public/default/t/4000-7fff-3", "state": "ACTIVE"},
        },
        "subscriptions": {"a": {"consumerCount": 0}, "made": {"consumerCount": 0}, "s": {"consumerCount": 1}},
    }


@pytest.mark.serving(profile=PULSAR_5_0)
async def test_5_0_1_folds_the_parts_of_producers_and_consumers(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME, 2)
    controller = bed.broker.cluster.controllers.lead(topic, bed.broker)
    controller.registrations.join("s", "c", Silent(), 1, ordered=True)
    wire = await bed.connect()
    for number in range(2):
        name = str(topic.segment_topic(topic.layout.segments[number]))
        await wire.producer(topic=name, producer_id=number, producer_name=f"p-seg-{number}")
        await wire.publish(plain(b"x"), producer_id=number)
        seg = f"c-seg-{number}"
        await wire.subscribe(topic=name, name="s", consumer_id=number, consumer_name=seg, initialPosition=Earliest)
    last = str(topic.segment_topic(topic.layout.segments[1]))
    await wire.subscribe(topic=last, name="queue", consumer_id=9, consumer_name="q-seg-1")
    found = (await rest_of(bed).call("GET", STATS)).json
    assert [each["producerName"] for each in found["producers"]] == ["p"]
    stream, queue = found["subscriptions"]["s"], found["subscriptions"]["queue"]
    assert (stream["type"], stream["msgBacklog"], stream["uncoveredSegmentIds"]) == ("STREAM", 2, [])
    assert [(each["consumerName"], each["segmentIds"]) for each in stream["consumers"]] == [("c", [0, 1])]
    assert (queue["type"], queue["consumers"][0]["consumerName"]) == ("QUEUE", "q")
    assert found["storageSize"] > 0
    assert found["controllerBroker"] == bed.broker.web_address


async def test_5_0_1_shows_the_last_operation_and_what_blocks_the_next() -> None:
    few = Config(scalableTopicEntryBucketMaxPerSegment=4)
    async with serving(few, profile=PULSAR_5_0) as bed:
        topic = bed.broker.cluster.scalable.create(NAME)
        controller = bed.broker.cluster.controllers.lead(topic, bed.broker)
        topic.split(0)
        topic.merge(1, 2)
        topic.set_policy({"maxSegments": 1})
        for number in range(5):
            controller.registrations.join("s", f"c{number}", Silent(), 1, ordered=True)
        await trio.testing.wait_all_tasks_blocked()
        found = (await rest_of(bed).call("GET", STATS)).json
        operation = found["layout"]["lastOperation"]
        assert (operation["operation"], operation["trigger"], operation["segmentIds"]) == ("MERGE", "manual", [1, 2])
        assert operation["status"] == "SUCCEEDED"
        assert found["layout"]["segments"]["1"]["terminated"]
        assert found["autoScale"]["policy"]["maxSegments"] == 1
        assert found["autoScale"]["blockedReason"] == "max_entry_buckets"
        assert "lastMergeAt" in found["autoScale"]


@pytest.mark.serving(profile=PULSAR_5_0)
async def test_5_0_1_counts_the_buckets_of_a_segment_that_drain_before_they_move(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    bed.broker.cluster.controllers.lead(topic, bed.broker)
    segment = topic.layout.segments[0]
    starts = (0, *segment.splits)
    ranges = [{"start": start, "end": end - 1} for start, end in zip(starts, (*starts[1:], 1 << 16), strict=True)]
    meta = {"keySharedMode": pb.KeySharedMode.STICKY, "hashRanges": ranges, "entryBucketDispatch": True}
    name = str(topic.segment_topic(segment))
    first = await joined(bed, "c2", topic=name, keySharedMeta=meta)
    wire = await bed.connect()
    await wire.producer(name)
    await wire.publish(*(batch_of(b"a", entry_hash_min=start, sequence_id=start) for start in starts))
    await got(first)
    await joined(bed, "c1", topic=name, keySharedMeta=meta)
    found = (await rest_of(bed).call("GET", STATS)).json["subscriptions"]["sub"]["segments"]["0"]
    assert found["drainingBuckets"] == 2
