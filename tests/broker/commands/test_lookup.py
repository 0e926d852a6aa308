"""LOOKUP, PARTITIONED_METADATA, GET_TOPICS_OF_NAMESPACE."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.broker.config import Config
from pulsarium.broker.model.topic.watchers import hash_of_names
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.wire import TOPIC, Bed, Type, Wire, serving

Found = pb.CommandLookupTopicResponse
Counted = pb.CommandPartitionedTopicMetadataResponse
Mode = pb.CommandGetTopicsOfNamespace

ANY_TOPIC = [
    TOPIC,
    "t",
    f"{TOPIC}-partition-7",
    "non-persistent://public/default/t",
    "persistent://public/default/with%20space",
]


async def look_up(wire: Wire, topic: str, **fields: Any) -> pb.CommandLookupTopicResponse:
    found: pb.CommandLookupTopicResponse = await wire.ask(Type.LOOKUP, topic=topic, **fields)
    return found


async def count(wire: Wire, topic: str, **fields: Any) -> pb.CommandPartitionedTopicMetadataResponse:
    counted: pb.CommandPartitionedTopicMetadataResponse = await wire.ask(
        Type.PARTITIONED_METADATA, topic=topic, **fields
    )
    return counted


def partition(bed: Bed, topic: str, partitions: int) -> None:
    bed.broker.topics.create_partitions(TopicName.parse(topic), partitions)


# LOOKUP


@pytest.mark.parametrize("topic", ANY_TOPIC)
async def test_every_topic_is_here_and_nothing_is_created(bed: Bed, wire: Wire, topic: str) -> None:
    found = await look_up(wire, topic)
    assert found.response == Found.Connect
    assert found.brokerServiceUrl == "pulsar://localhost:6650"
    assert found.authoritative
    assert found.proxy_through_service_url
    assert not found.HasField("error")
    assert bed.broker.topics.names("public/default", non_persistent=True) == []


async def test_the_proxied_url_is_taken_whatever_it_is(bed: Bed) -> None:
    wire = await bed.connect(proxy_to_broker_url="mapped.example:16650")
    assert (await look_up(wire, TOPIC)).response == Found.Connect


async def test_a_lookup_in_an_absent_namespace_is_refused(wire: Wire) -> None:
    found = await look_up(wire, "persistent://public/none/t")
    assert (found.response, found.error, found.message) == (Found.Failed, pb.TopicNotFound, "Namespace not found")


@pytest.mark.parametrize("topic", ["", "http://public/default/t", "persistent://public/t", "a/b/c/d/e"])
async def test_a_lookup_of_names_that_are_none_is_refused(wire: Wire, topic: str) -> None:
    found = await look_up(wire, topic)
    assert (found.response, found.error) == (Found.Failed, pb.InvalidTopicName)
    assert found.message.startswith("Invalid topic name: ")
    counted = await count(wire, topic)
    assert (counted.response, counted.error) == (Counted.Failed, pb.InvalidTopicName)


async def test_listeners_are_named(autojump_clock: object) -> None:
    listeners = "inside:pulsar://10.0.0.1:6650,outside:pulsar://example.org:7000"
    async with serving(Config(advertisedListeners=listeners, internalListenerName="outside")) as bed:
        wire = await bed.connect()
        assert (await look_up(wire, TOPIC)).brokerServiceUrl == "pulsar://example.org:7000"
        inside = await look_up(wire, TOPIC, advertised_listener_name="inside")
        assert inside.brokerServiceUrl == "pulsar://10.0.0.1:6650"
        unknown = await look_up(wire, TOPIC, advertised_listener_name="nowhere")
        assert (unknown.response, unknown.error) == (Found.Failed, pb.ServiceNotReady)
        assert unknown.message == "the broker do not have nowhere listener"


@pytest.mark.parametrize(
    ("address", "stays"),
    [("localhost", True), ("127.0.0.7", True), ("[::1]", True), ("broker.example", False), ("10.0.0.1", False)],
)
async def test_a_client_stays_on_its_url_where_the_advertised_one_is_local(
    address: str, stays: bool, autojump_clock: object
) -> None:
    async with serving(Config(advertisedListeners=f"mapped:pulsar://{address}:7000")) as bed:
        found = await look_up(await bed.connect(), TOPIC)
        assert (found.brokerServiceUrl, found.proxy_through_service_url) == (f"pulsar://{address}:7000", stays)


async def test_the_internal_listener_where_there_are_none_has_the_usual_url(autojump_clock: object) -> None:
    async with serving(Config(internalListenerName="internal")) as bed:
        wire = await bed.connect()
        named = await look_up(wire, TOPIC, advertised_listener_name="internal")
        assert named.brokerServiceUrl == (await look_up(wire, TOPIC)).brokerServiceUrl != ""


async def test_a_listener_where_there_are_none(wire: Wire) -> None:
    found = await look_up(wire, TOPIC, advertised_listener_name="x")
    assert (found.error, found.message) == (pb.ServiceNotReady, "the broker do not have x listener")


@pytest.mark.serving(Config(advertisedAddress="broker.example", brokerServicePort=7000))
async def test_the_advertised_address_is_used(bed: Bed) -> None:
    found = await look_up(await bed.connect(), TOPIC)
    assert found.brokerServiceUrl == "pulsar://broker.example:7000"


# PARTITIONED_METADATA


@pytest.mark.req("B-36")
async def test_partitions_are_counted(bed: Bed, wire: Wire) -> None:
    partition(bed, TOPIC, 3)
    counted = await count(wire, TOPIC)
    assert (counted.response, counted.partitions) == (Counted.Success, 3)
    assert (await count(wire, f"{TOPIC}-partition-1")).partitions == 0
    assert bed.broker.topics.names("public/default") == [f"{TOPIC}-partition-{i}" for i in range(3)]


@pytest.mark.req("B-40")
async def test_a_topic_that_may_be_created_has_no_partitions_yet(bed: Bed, wire: Wire) -> None:
    counted = await count(wire, TOPIC)
    assert (counted.response, counted.partitions) == (Counted.Success, 0)
    assert bed.broker.topics.names("public/default") == []


async def test_without_creation_an_absent_topic_is_not_found(wire: Wire) -> None:
    counted = await count(wire, TOPIC, metadata_auto_creation_enabled=False)
    assert (counted.response, counted.error, counted.message) == (Counted.Failed, pb.TopicNotFound, "")
    await wire.producer()
    counted = await count(wire, TOPIC, metadata_auto_creation_enabled=False)
    assert (counted.response, counted.partitions) == (Counted.Success, 0)


@pytest.mark.req("B-40")
@pytest.mark.serving(Config(allowAutoTopicCreation=False))
async def test_with_creation_off_an_absent_topic_is_not_found(bed: Bed) -> None:
    counted = await count(await bed.connect(), TOPIC)
    assert (counted.response, counted.error) == (Counted.Failed, pb.TopicNotFound)


@pytest.mark.req("B-36", "B-40")
@pytest.mark.serving(Config(allowAutoTopicCreationType="partitioned", defaultNumPartitions=4))
async def test_topics_may_be_created_with_partitions(wire: Wire) -> None:
    assert (await count(wire, TOPIC, metadata_auto_creation_enabled=False)).error == pb.TopicNotFound
    assert (await count(wire, TOPIC)).partitions == 4
    assert (await count(wire, TOPIC, metadata_auto_creation_enabled=False)).partitions == 4
    await wire.producer(f"{TOPIC}-partition-3")
    code, _ = await wire.refused(Type.PRODUCER, topic=f"{TOPIC}-partition-4", producer_id=1)
    assert code == pb.TopicNotFound


async def test_partitions_of_a_namespace_that_is_not_there(wire: Wire) -> None:
    counted = await count(wire, "persistent://public/none/t")
    assert (counted.response, counted.error) == (Counted.Failed, pb.TopicNotFound)


# GET_TOPICS_OF_NAMESPACE


async def topics_of(wire: Wire, **fields: Any) -> pb.CommandGetTopicsOfNamespaceResponse:
    fields = {"namespace": "public/default", **fields}
    found: pb.CommandGetTopicsOfNamespaceResponse = await wire.ask(Type.GET_TOPICS_OF_NAMESPACE, **fields)
    return found


@pytest.fixture
async def three_topics(bed: Bed, wire: Wire) -> list[str]:
    partition(bed, f"{TOPIC}-parts", 2)
    await wire.producer(f"{TOPIC}-plain")
    await wire.producer("non-persistent://public/default/loose", producer_id=1)
    return [f"{TOPIC}-parts-partition-0", f"{TOPIC}-parts-partition-1", f"{TOPIC}-plain"]


@pytest.mark.req("B-38")
async def test_topics_by_kind(wire: Wire, three_topics: list[str]) -> None:
    loose = ["non-persistent://public/default/loose"]
    assert sorted((await topics_of(wire)).topics) == three_topics
    assert sorted((await topics_of(wire, mode=Mode.PERSISTENT)).topics) == three_topics
    assert sorted((await topics_of(wire, mode=Mode.NON_PERSISTENT)).topics) == loose
    assert sorted((await topics_of(wire, mode=Mode.ALL)).topics) == sorted(three_topics + loose)
    assert (await topics_of(wire, namespace="public/none")).topics == []


@pytest.mark.req("B-38")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("persistent://public/default/t-.*", [0, 1, 2]),
        ("public/default/t-.*", [0, 1, 2]),
        ("non-persistent://public/default/t-pl.*", [2]),
        ("public/default/t-parts", [0, 1]),  # partitions match by the name of their topic
        ("public/default/t-parts-partition-0", []),
        ("t-plain", []),
        ("public/default/T-.*", []),
        ("public/default/(?!t-pl).*", [0, 1]),
        (r"public/default/t-.*(?<!s)", [2]),
        (r"public/default/t-[a-p]*+\p{Alpha}+", [0, 1]),
        ("^persistent://public/default/t-pl.*", [2]),
        ("", []),
    ],
)
async def test_topics_by_pattern(wire: Wire, three_topics: list[str], pattern: str, expected: list[int]) -> None:
    found = await topics_of(wire, topics_pattern=pattern)
    assert sorted(found.topics) == [three_topics[i] for i in expected]
    assert found.filtered
    assert found.changed


@pytest.mark.req("B-38")
async def test_long_patterns_are_left_to_the_client(wire: Wire, three_topics: list[str]) -> None:
    found = await topics_of(wire, topics_pattern="x" * 51)
    assert not found.filtered
    assert sorted(found.topics) == three_topics
    found = await topics_of(wire, topics_pattern="x" * 50)
    assert found.filtered
    assert found.topics == []


@pytest.mark.req("B-38")
@pytest.mark.serving(Config(enableBrokerSideSubscriptionPatternEvaluation=False))
async def test_patterns_are_left_to_the_client_where_the_broker_may_not(wire: Wire) -> None:
    await wire.producer()
    found = await topics_of(wire, topics_pattern="nothing")
    assert (found.filtered, list(found.topics)) == (False, [TOPIC])


async def test_a_pattern_that_needs_backtracking_is_left_to_the_client(wire: Wire, three_topics: list[str]) -> None:
    found = await topics_of(wire, topics_pattern=r"public/default/(t)\1-parts")
    assert not found.filtered
    assert sorted(found.topics) == three_topics


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("ns/(", "java.util.regex.PatternSyntaxException: Unclosed group near index 4\nns/("),
        ("foo://ns/t", "java.lang.IllegalArgumentException: Does not support topic domain: foo"),
    ],
)
async def test_a_pattern_that_is_none_is_refused_with_the_text_of_java(wire: Wire, pattern: str, expected: str) -> None:
    """Pulsar 4.2.4 answered with these texts."""
    code, text = await wire.refused(Type.GET_TOPICS_OF_NAMESPACE, namespace="public/default", topics_pattern=pattern)
    assert (code, text) == (pb.MetadataError, expected)


@pytest.mark.serving(Config(topicsPatternRegexImplementation="RE2J"))
async def test_re2j_alone_refuses_lookaround(wire: Wire) -> None:
    code, text = await wire.refused(Type.GET_TOPICS_OF_NAMESPACE, namespace="public/default", topics_pattern="(?!a).*")
    expected = "error parsing regexp: invalid or unsupported Perl syntax: `(?!`"
    assert (code, text) == (pb.MetadataError, f"com.google.re2j.PatternSyntaxException: {expected}")


@pytest.mark.serving(Config(topicsPatternRegexImplementation="JDK"))
async def test_jdk_reads_a_class_with_an_intersection(wire: Wire) -> None:
    await wire.producer()
    assert (await topics_of(wire, topics_pattern="public/default/[s-u&&t]")).topics == [TOPIC]
    assert (await topics_of(wire, topics_pattern="public/default/[s&&t]")).topics == []


@pytest.mark.req("B-38")
async def test_a_known_list_is_not_sent_again(wire: Wire, three_topics: list[str]) -> None:
    first = await topics_of(wire)
    assert first.topics_hash == hash_of_names(three_topics)
    again = await topics_of(wire, topics_hash=first.topics_hash)
    assert (again.changed, list(again.topics), again.topics_hash) == (False, [], first.topics_hash)
    await wire.producer(f"{TOPIC}-new", producer_id=2)
    changed = await topics_of(wire, topics_hash=first.topics_hash)
    assert changed.changed
    assert len(changed.topics) == 4


def test_hashes_of_names() -> None:
    assert hash_of_names([]) == "00000000"
    names = ["persistent://public/default/b", "persistent://public/default/a"]
    assert hash_of_names(names) == "c7559e98"


@pytest.mark.parametrize("namespace", ["", "public", "a/b/c/d"])
async def test_a_namespace_that_is_none_closes(wire: Wire, namespace: str) -> None:
    await wire.write(wire.numbered(Type.GET_TOPICS_OF_NAMESPACE, namespace=namespace))
    assert await wire.closed() == []


@pytest.mark.req("B-38")
async def test_a_non_persistent_topic_that_nobody_uses_is_not_listed(wire: Wire) -> None:
    loose = "non-persistent://public/default/loose"
    await wire.producer(loose)
    assert list((await topics_of(wire, mode=pb.CommandGetTopicsOfNamespace.ALL)).topics) == [loose]
    await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    assert list((await topics_of(wire, mode=pb.CommandGetTopicsOfNamespace.ALL)).topics) == []
    await wire.subscribe(loose)
    assert list((await topics_of(wire, mode=pb.CommandGetTopicsOfNamespace.ALL)).topics) == [loose]
