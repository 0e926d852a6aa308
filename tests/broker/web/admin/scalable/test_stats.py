"""Stats of scalable topics over REST: the short form of 5.0.0-M1 (recording 023), and the form of 5.0.1."""

from __future__ import annotations

from typing import Any

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
        assert (operation["operation"], operation["trigger"], operation["segmentIds"]) == ("merge", "manual", [1, 2])
        assert operation["status"] == "success"
        assert found["layout"]["segments"]["1"]["terminated"]
        assert found["autoScale"]["policy"]["maxSegments"] == 1
        assert found["autoScale"]["blockedReason"] == "max_entry_buckets"
        assert "lastMergeAt" in found["autoScale"]


@pytest.mark.serving(profile=PULSAR_5_0)
async def test_5_0_1_shows_an_operation_by_hand_that_failed(bed: Bed) -> None:
    bed.broker.cluster.scalable.create(NAME, 1)
    rest = rest_of(bed)
    for segment, text in ((0, None), (0, "Cannot split non-active segment: 0"), (9, "Segment not found: 9")):
        await rest.call("POST", f"{STATS.removesuffix('stats')}split/{segment}")
        last = (await rest.call("GET", STATS)).json["layout"]["lastOperation"]
        error = None if text is None else f"java.lang.IllegalArgumentException: {text}"
        assert (last["operation"], last["trigger"], last["segmentIds"]) == ("split", "manual", [segment])
        assert (last["status"], last.get("error")) == ("failure" if error else "success", error)


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.serving(profile=PULSAR_5_0)
async def test_5_0_1_shows_the_removal_of_sealed_segments_as_an_operation(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    bed.broker.cluster.controllers.lead(topic, bed.broker)
    topic.split(0)
    await trio.sleep(61)
    last = (await rest_of(bed).call("GET", STATS)).json["layout"]["lastOperation"]
    assert (last["operation"], last["trigger"], last["segmentIds"], last["status"]) == ("prune", "auto", [0], "success")


@pytest.mark.serving(profile=PULSAR_5_0)
async def test_5_0_1_says_which_active_segments_lack_a_subscription(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME, 2)
    registrations = bed.broker.cluster.controllers.lead(topic, bed.broker).registrations
    registrations.join("stream", "c", Silent(), 1, ordered=True)
    registrations.join("checkpoint", "c", Silent(), 2, ordered=False)
    wire = await bed.connect()
    await wire.subscribe(topic=str(topic.segment_topic(topic.layout.segments[0])), name="queue", consumer_id=9)
    topic.split(0)
    found = (await rest_of(bed).call("GET", STATS)).json["subscriptions"]
    shown = {name: (each["type"], each.get("uncoveredSegmentIds")) for name, each in found.items()}
    assert shown == {"checkpoint": ("STREAM", None), "queue": ("QUEUE", [1, 2, 3]), "stream": ("STREAM", [1])}
    blocked = {name: [part for part, each in of["segments"].items() if each["blocked"]] for name, of in found.items()}
    assert blocked == {"checkpoint": [], "queue": [], "stream": ["2", "3"]}


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.serving(profile=PULSAR_5_0)
async def test_5_0_1_shows_the_load_of_a_segment_and_its_age_once_it_is_measured(bed: Bed) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    bed.broker.cluster.controllers.lead(topic, bed.broker)

    async def shown() -> dict[str, Any]:
        segment: dict[str, Any] = (await rest_of(bed).call("GET", STATS)).json["layout"]["segments"]["0"]
        return segment

    assert (await shown()).keys() == {"name", "state", "createdAt", "terminated", "entryBuckets", "ownerBroker"}
    await trio.sleep(25)
    load = (await shown())["load"]
    assert load.pop("ageSeconds") == pytest.approx(5, abs=0.5)
    assert load == {"msgRateIn": 0, "byteRateIn": 0, "msgRateOut": 0, "byteRateOut": 0}


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
