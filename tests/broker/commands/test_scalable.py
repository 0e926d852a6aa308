"""Lookup sessions of scalable topics, and a broker that does not serve scalable topics."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing

from pulsarium.broker.config import Config
from pulsarium.broker.config.profile import PROFILES, Profile
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Type, Wire, frame_of, serving

DISABLED = (pb.NotAllowedError, "Scalable topics are disabled on this broker")
FLAGS = ("supports_scalable_topics", "supports_tc_metadata_discovery")
ASKED: list[tuple[int, int, dict[str, Any]]] = [
    (Type.SCALABLE_TOPIC_LOOKUP, Type.SCALABLE_TOPIC_UPDATE, {"session_id": 7, "topic": TOPIC}),
    (
        Type.SCALABLE_TOPIC_SUBSCRIBE,
        Type.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE,
        {
            "request_id": 7,
            "topic": TOPIC,
            "subscription": "s",
            "consumer_name": "c",
            "consumer_id": 1,
            "consumer_type": 0,
        },
    ),
    (Type.WATCH_SCALABLE_TOPICS, Type.WATCH_SCALABLE_TOPICS_UPDATE, {"watch_id": 7, "namespace": "public/default"}),
]
CLOSED: list[tuple[int, dict[str, Any]]] = [
    (Type.SCALABLE_TOPIC_CLOSE, {"session_id": 7}),
    (Type.WATCH_SCALABLE_TOPICS_CLOSE, {"watch_id": 7}),
    (Type.WATCH_TC_ASSIGNMENTS_CLOSE, {"watch_id": 7}),
]


OFF = Config(scalableTopicsEnabled=False)
NAME = TopicName.parse("topic://public/default/t")


@pytest.mark.req("B-54")
@pytest.mark.parametrize(("command", "answer", "fields"), ASKED)
@pytest.mark.serving(OFF)
async def test_a_broker_without_scalable_topics_refuses_each_command_in_its_own_form(
    wire: Wire, command: int, answer: int, fields: dict[str, Any]
) -> None:
    await wire.send(command, **fields)
    told = await wire.expect(answer)
    assert (told.error, told.message) == DISABLED
    name, number = next(iter(fields.items()))
    assert getattr(told, name) == number
    await wire.alive()


@pytest.mark.req("B-54")
@pytest.mark.parametrize(("command", "fields"), CLOSED)
async def test_closing_an_unknown_session_gets_no_answer(wire: Wire, command: int, fields: dict[str, Any]) -> None:
    await wire.send(command, **fields)
    await wire.alive()


@pytest.mark.req("B-54", "W-08")
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
async def test_releases_that_serve_scalable_topics_announce_them(profile: Profile) -> None:
    async with serving(profile=profile) as bed:
        connected = await bed.dial().connect(flags=FLAGS)
        told = profile.name.startswith(("pip", "pulsar-5"))
        assert [getattr(connected.feature_flags, flag) for flag in FLAGS] == [told, told]


@pytest.mark.req("B-54")
@pytest.mark.parametrize(("command", "fields"), [(command, fields) for command, _, fields in ASKED] + CLOSED)
@pytest.mark.serving(profile=PROFILES["pulsar-4.2"])
async def test_a_release_that_does_not_know_them_closes_the_connection(
    wire: Wire, command: int, fields: dict[str, Any]
) -> None:
    await wire.write(frame_of(command, **fields))
    assert await wire.closed() == []


@pytest.mark.req("B-54")
@pytest.mark.parametrize("topic", ["topic://public/default/t", "segment://public/default/t/0000-ffff-0"])
@pytest.mark.parametrize(("profile", "config"), [("pulsar-4.2", Config()), ("pulsar-5.0", OFF)])
async def test_topic_names_are_invalid_without_scalable_topics(topic: str, profile: str, config: Config) -> None:
    async with serving(config, profile=PROFILES[profile]) as bed:
        wire = await bed.connect()
        answer = await wire.ask(Type.LOOKUP, topic=topic)
        assert (answer.response, answer.error) == (answer.Failed, pb.InvalidTopicName)
        metadata = await wire.ask(Type.PARTITIONED_METADATA, topic=topic)
        assert (metadata.response, metadata.error) == (metadata.Failed, pb.InvalidTopicName)
        assert (await wire.refused(Type.PRODUCER, topic=topic, producer_id=0))[0] == pb.InvalidTopicName


async def look_up(wire: Wire, topic: str, session_id: int = 1, **fields: Any) -> Any:
    await wire.send(Type.SCALABLE_TOPIC_LOOKUP, session_id=session_id, topic=topic, **fields)
    return await wire.expect(Type.SCALABLE_TOPIC_UPDATE)


async def update(wire: Wire) -> Any:
    return await wire.expect(Type.SCALABLE_TOPIC_UPDATE)


async def test_a_lookup_creates_an_absent_topic_with_one_segment_of_four_buckets(bed: Bed, wire: Wire) -> None:
    told = await look_up(wire, str(NAME))
    (segment,) = told.dag.segments
    assert (told.resolved_topic_name, told.dag.epoch) == (str(NAME), 0)
    assert (segment.hash_start, segment.hash_end, segment.state) == (0, 0xFFFF, pb.ACTIVE)
    assert list(segment.entry_bucket_splits) == [0x4000, 0x8000, 0xC000]
    assert told.dag.segment_brokers[0].broker_url == bed.broker.assigned.service_url
    assert not told.dag.HasField("controller_broker_url")
    await wire.quiet()


@pytest.mark.parametrize(
    ("profile", "config", "fields"),
    [
        ("pulsar-5.0", Config(), {"create_if_missing": False}),
        ("pulsar-5.0", Config(allowAutoTopicCreation=False), {}),
        ("pulsar-5.0-m1", Config(), {}),
    ],
)
async def test_a_lookup_that_may_not_create_says_that_the_topic_is_absent(
    profile: str, config: Config, fields: dict[str, Any]
) -> None:
    async with serving(config, profile=PROFILES[profile]) as bed:
        told = await look_up(await bed.connect(), str(NAME), **fields)
        assert (told.error, told.message) == (pb.TopicNotFound, f"Scalable topic not found: {NAME}")
        assert bed.broker.cluster.scalable.names("public/default") == []


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        (
            "topic://public/default/x-partition-0",
            pb.TopicNotFound,
            (
                "Cannot open a scalable-topic lookup for an individual partition: "
                "topic://public/default/x-partition-0; use the base topic name topic://public/default/x"
            ),
        ),
        (
            "segment://public/default/x/0000-ffff-0",
            pb.TopicNotFound,
            "Scalable topic not found: segment://public/default/x/0000-ffff-0",
        ),
        (
            "non-persistent://public/default/x",
            pb.NotAllowedError,
            "Scalable topics do not support non-persistent:// topics",
        ),
        ("topic://public/none/x", pb.TopicNotFound, "Scalable topic not found: topic://public/none/x"),
    ],
)
async def test_a_lookup_of_another_kind_of_topic_is_refused(wire: Wire, topic: str, code: int, text: str) -> None:
    told = await look_up(wire, topic)
    assert (told.error, told.message) == (code, text)


@pytest.mark.parametrize("topic", ["", "topic://a", "bad://a/b/c", "topic://a/b/"])
async def test_a_lookup_of_an_invalid_name_closes_the_connection(wire: Wire, topic: str) -> None:
    await wire.send(Type.SCALABLE_TOPIC_LOOKUP, session_id=1, topic=topic)
    assert await wire.closed() == []


async def test_a_persistent_topic_is_shown_as_one_segment_and_nothing_is_created(bed: Bed, wire: Wire) -> None:
    told = await look_up(wire, "some")
    (segment,) = told.dag.segments
    assert segment.legacy_topic_name == "persistent://public/default/some"
    assert told.resolved_topic_name == "topic://public/default/some"
    assert not told.dag.segment_brokers
    assert bed.broker.topics.names("public/default") == bed.broker.cluster.scalable.names("public/default") == []


async def test_partitions_are_shown_as_segments(bed: Bed, wire: Wire) -> None:
    bed.broker.topics.create_partitions(TopicName.parse("many"), 3)
    segments = (await look_up(wire, "many")).dag.segments
    assert [(each.hash_start, each.hash_end) for each in segments] == [(0, 21844), (21845, 43689), (43690, 65535)]
    assert [each.legacy_topic_name.rpartition("-")[2] for each in segments] == ["0", "1", "2"]


async def test_each_session_is_told_of_a_split_until_it_is_closed(bed: Bed, wire: Wire) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    await look_up(wire, str(NAME), 1)
    await look_up(wire, str(NAME), 2)
    topic.split(0)
    first, second = await update(wire), await update(wire)
    assert {first.session_id, second.session_id} == {1, 2}
    assert [(each.segment_id, each.state) for each in first.dag.segments] == [(0, 1), (1, 0), (2, 0)]
    assert [each.segment_id for each in first.dag.segment_brokers] == [1, 2]
    await wire.send(Type.SCALABLE_TOPIC_CLOSE, session_id=1)
    await wire.alive()
    topic.merge(1, 2)
    assert (await update(wire)).session_id == 2
    await wire.quiet()


async def test_a_session_that_has_gone_is_told_nothing(bed: Bed, wire: Wire) -> None:
    scalable = bed.broker.cluster.scalable
    topic, before = scalable.create(NAME), dict(scalable.observers)
    await look_up(wire, str(NAME))
    await wire.aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert not topic.observers
    assert scalable.observers == before


async def test_a_new_session_of_the_same_id_ends_the_old_one(bed: Bed, wire: Wire) -> None:
    scalable = bed.broker.cluster.scalable
    old, new = scalable.create(NAME), scalable.create(TopicName.parse("topic://public/default/new"))
    await look_up(wire, str(old.name))
    await look_up(wire, str(new.name))
    old.split(0)
    new.split(0)
    assert (await update(wire)).resolved_topic_name == str(new.name)
    await wire.quiet()


async def test_a_session_outlives_its_topic_and_is_told_of_the_next_one(bed: Bed, wire: Wire) -> None:
    scalable = bed.broker.cluster.scalable
    scalable.create(NAME)
    await look_up(wire, str(NAME))
    scalable.delete(NAME)
    await wire.quiet()
    scalable.create(NAME, 2)
    assert len((await update(wire)).dag.segments) == 2


@pytest.mark.parametrize(("profile", "told"), [("pip", True), ("pulsar-5.0", True), ("pulsar-5.0-m1", False)])
async def test_a_session_is_told_that_a_deleted_topic_has_no_controller_except_in_m1(profile: str, told: bool) -> None:
    async with serving(profile=PROFILES[profile]) as bed:
        wire = await bed.connect()
        bed.broker.cluster.scalable.create(NAME).lead(bed.broker)
        assert (await look_up(wire, str(NAME))).dag.HasField("controller_broker_url")
        bed.broker.cluster.scalable.delete(NAME)
        if told:
            assert not (await update(wire)).dag.HasField("controller_broker_url")
        await wire.quiet()


@pytest.mark.parametrize(("profile", "created"), [("pip", False), ("pulsar-5.0", True), ("pulsar-5.0-m1", False)])
async def test_a_lookup_creates_a_topic_without_a_namespace_in_5_0_1_only(profile: str, created: bool) -> None:
    async with serving(profile=PROFILES[profile]) as bed:
        wire = await bed.connect()
        told = await look_up(wire, "topic://public/none/t")
        assert [each.segment_id for each in told.dag.segment_brokers] == ([0] if created else [])
        assert (told.error == pb.TopicNotFound) is not created


async def test_a_session_is_told_when_its_topic_gets_a_controller(bed: Bed, wire: Wire) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    await look_up(wire, str(NAME))
    topic.lead(bed.broker)
    assert (await update(wire)).dag.controller_broker_url == bed.broker.assigned.service_url


async def test_a_migration_is_told_before_the_old_producers_are_closed(bed: Bed, wire: Wire) -> None:
    await wire.producer("old")
    await look_up(wire, "old")
    bed.broker.cluster.scalable.migrate(TopicName.parse("old"), force=True)
    sealed, active = (await update(wire)).dag.segments
    assert (sealed.state, sealed.legacy_topic_name, list(sealed.child_ids)) == (
        pb.SEALED,
        "persistent://public/default/old",
        [1],
    )
    assert (active.state, list(active.parent_ids)) == (pb.ACTIVE, [0])
    await wire.expect(Type.CLOSE_PRODUCER)


async def test_producers_of_a_split_segment_are_closed_before_the_layout_comes(bed: Bed, wire: Wire) -> None:
    topic = bed.broker.cluster.scalable.create(NAME)
    await look_up(wire, str(NAME))
    await wire.producer("segment://public/default/t/0000-ffff-0")
    topic.split(0)
    await wire.expect(Type.CLOSE_PRODUCER)
    assert (await update(wire)).dag.epoch == 1


async def test_advertised_listeners_are_the_addresses_of_segments_and_controller() -> None:
    url = "pulsar://broker.example:7000"
    async with serving(Config(advertisedListeners=f"out:{url}")) as bed:
        bed.broker.cluster.scalable.create(NAME).lead(bed.broker)
        dag = (await look_up(await bed.connect(), str(NAME))).dag
        assert (dag.segment_brokers[0].broker_url, dag.controller_broker_url) == (url, url)
