"""Scalable topics: known, not advertised, refused."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config.profile import PROFILES, Profile
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.broker.wire import TOPIC, Bed, Type, Wire, frame_of, serving

DISABLED = (pb.NotAllowedError, "Scalable topics are disabled")
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


@pytest.mark.req("B-54")
@pytest.mark.parametrize(("command", "answer", "fields"), ASKED)
async def test_each_is_refused_in_its_own_form(wire: Wire, command: int, answer: int, fields: dict[str, Any]) -> None:
    await wire.send(command, **fields)
    told = await wire.expect(answer)
    assert (told.error, told.message) == DISABLED
    name, number = next(iter(fields.items()))
    assert getattr(told, name) == number
    await wire.alive()


@pytest.mark.req("B-54")
@pytest.mark.parametrize(("command", "fields"), CLOSED)
async def test_what_was_never_opened_closes_without_a_word(wire: Wire, command: int, fields: dict[str, Any]) -> None:
    await wire.send(command, **fields)
    await wire.alive()


@pytest.mark.req("B-54", "W-08")
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
async def test_clients_are_told_of_them_since_5_0(profile: Profile) -> None:
    async with serving(profile=profile) as bed:
        connected = await bed.dial().connect(flags=FLAGS)
        has_them = profile.name == "pip" or profile.name.startswith("pulsar-5")
        assert [getattr(connected.feature_flags, flag) for flag in FLAGS] == [has_them] * 2


@pytest.mark.req("B-54")
@pytest.mark.parametrize(("command", "fields"), [(command, fields) for command, _, fields in ASKED] + CLOSED)
async def test_a_release_that_does_not_know_them_closes_the_connection(command: int, fields: dict[str, Any]) -> None:
    async with serving(profile=PROFILES["pulsar-4.2"]) as bed:
        wire = await bed.connect()
        await wire.write(frame_of(command, **fields))
        assert await wire.closed() == []


@pytest.mark.req("B-54")
@pytest.mark.parametrize("domain", ["topic", "segment"])
async def test_their_topic_names_are_invalid(bed: Bed, wire: Wire, domain: str) -> None:
    topic = f"{domain}://public/default/t"
    answer = await wire.ask(Type.LOOKUP, topic=topic)
    assert (answer.response, answer.error) == (answer.Failed, pb.InvalidTopicName)
    metadata = await wire.ask(Type.PARTITIONED_METADATA, topic=topic)
    assert (metadata.response, metadata.error) == (metadata.Failed, pb.InvalidTopicName)
    assert (await wire.refused(Type.PRODUCER, topic=topic, producer_id=0))[0] == pb.InvalidTopicName
