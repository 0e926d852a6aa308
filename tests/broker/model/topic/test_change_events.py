"""The topic `__change_events`: REST writes policy changes there, and policy events of clients take effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from pulsarium.broker.config import Config
from pulsarium.broker.model.policy.event import EVENT_SCHEMA, PolicyEvent, decode, encode
from pulsarium.broker.net import slices
from pulsarium.proto import batch
from pulsarium.proto.compression import compress
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.web.admin.rest import NAMESPACES, TOPICS, Rest, rest_of
from tests.broker.wire import TOPIC, Bed, Earliest, Type, Wire, batch_of, plain, serving

CHANGES = "persistent://public/default/__change_events"
NAME = TopicName.parse(TOPIC)
KEY: dict[str, Any] = {"partition_key": TOPIC}


async def seen(wire: Wire, count: int) -> list[tuple[str, PolicyEvent | None]]:
    """Read `__change_events`, and return the keys and events of its messages."""
    await wire.subscribe(CHANGES, "reader", durable=False, initialPosition=Earliest)
    await wire.flow()
    found: list[tuple[str, PolicyEvent | None]] = []
    for message in await wire.messages(count):
        metadata = parse_metadata(message.entry)
        assert metadata.schema_version == bytes(8)
        assert metadata.uncompressed_size == len(message.payload)
        assert metadata.null_value is not bool(message.payload)
        assert list(metadata.replicate_to) == ([] if metadata.partition_key.startswith("__G__") else ["standalone"])
        event = decode(message.payload, "standalone") if message.payload else None
        found.append((metadata.partition_key, event))
    await wire.quiet()
    return found


def update(policies: dict[str, Any], *, action: str = "UPDATE", is_global: bool = False) -> PolicyEvent:
    return PolicyEvent(NAME, action, is_global, policies)


def payload(policies: dict[str, Any], **fields: Any) -> bytes:
    return encode(update(policies, **fields), "standalone")


@pytest.fixture
async def rest(bed: Bed) -> Rest:
    found = rest_of(bed)
    await found.done("PUT", f"{TOPICS}/t")
    return found


@pytest.mark.req("B-39")
async def test_each_change_of_a_topic_policy_is_an_event(rest: Rest, wire: Wire) -> None:
    await rest.done("POST", f"{TOPICS}/t/maxProducers", 5)
    await rest.done("POST", f"{TOPICS}/t/messageTTL?messageTTL=60&isGlobal=true")
    await rest.done("POST", f"{TOPICS}/t/messageTTL?messageTTL=70")
    await rest.done("DELETE", f"{TOPICS}/t/maxProducers")
    await rest.done("DELETE", f"{TOPICS}/t/messageTTL")
    assert await seen(wire, 5) == [
        (TOPIC, update({"max_producers_per_topic": 5})),
        (f"__G__{TOPIC}", update({"message_ttl_in_seconds": 60}, is_global=True)),
        (TOPIC, update({"max_producers_per_topic": 5, "message_ttl_in_seconds": 70})),
        (TOPIC, update({"message_ttl_in_seconds": 70})),
        (TOPIC, update({})),
    ]


@pytest.mark.req("B-39")
@pytest.mark.parametrize("path", ["t", "t/policies"])
async def test_policies_that_go_leave_a_message_without_a_value(rest: Rest, wire: Wire, path: str) -> None:
    await rest.done("POST", f"{TOPICS}/t/maxProducers", 5)
    await rest.done("POST", f"{TOPICS}/t/maxProducers?isGlobal=true", 6)
    await rest.done("DELETE", f"{TOPICS}/{path}")
    assert (await seen(wire, 4))[2:] == [(TOPIC, None), (f"__G__{TOPIC}", None)]


@pytest.mark.req("B-39")
async def test_the_topic_comes_with_the_first_policy_and_is_hidden(rest: Rest, wire: Wire) -> None:
    await wire.ask(Type.WATCH_TOPIC_LIST, watcher_id=0, namespace="public/default", topics_pattern=".*")
    everything = "?includeSystemTopic=true"
    assert await rest.get(f"{TOPICS}{everything}") == [TOPIC]
    await rest.done("POST", f"{TOPICS}/t/maxProducers", 5)
    assert await rest.get(TOPICS) == await rest.get(f"{NAMESPACES}/public/default/topics") == [TOPIC]
    assert await rest.get(f"{TOPICS}{everything}") == [CHANGES, TOPIC]
    assert await rest.get(f"{NAMESPACES}/public/default/topics{everything}&mode=ALL") == [CHANGES, TOPIC]
    listed = await wire.ask(Type.GET_TOPICS_OF_NAMESPACE, namespace="public/default", topics_pattern=".*")
    assert listed.topics == [TOPIC]
    await wire.quiet()  # watchers are not told of the topic


@pytest.mark.req("B-39")
async def test_change_events_have_their_schema(rest: Rest, wire: Wire) -> None:
    await rest.done("POST", f"{TOPICS}/t/maxProducers", 5)
    await rest.done("POST", f"{TOPICS}/t/maxProducers", 6)
    answer = await wire.ask(Type.GET_SCHEMA, topic=CHANGES)
    assert (answer.schema.type, answer.schema.schema_data) == (pb.Schema.Avro, EVENT_SCHEMA)
    assert answer.schema_version == bytes(8)


@pytest.mark.req("B-39")
async def test_an_event_of_a_client_takes_effect(bed: Bed, rest: Rest, wire: Wire) -> None:
    await wire.producer(CHANGES)  # creates the topic, even without automatic creation of topics
    topic = bed.broker.topics.find(NAME)
    ttl = {"message_ttl_in_seconds": 9}
    await wire.publish(plain(payload(ttl), **KEY))
    assert topic.policies.message_ttl_seconds == 9
    assert await rest.get(f"{TOPICS}/t/messageTTL") == 9
    await wire.publish(plain(payload({"max_producers_per_topic": 3}, action="INSERT")))  # this topic has policies
    assert (topic.policies.message_ttl_seconds, topic.policies.max_producers) == (9, 0)
    await wire.publish(plain(payload({"max_producers_per_topic": 3}, action="NONE")))
    assert topic.policies.max_producers == 0
    await wire.publish(plain(payload({"max_producers_per_topic": 3}, is_global=True)))
    assert (topic.policies.message_ttl_seconds, topic.policies.max_producers) == (9, 3)
    await wire.publish(plain(b"", null_value=True, partition_key=f"__G__{TOPIC}"))
    assert topic.policies.max_producers == 0
    await wire.publish(plain(b"", null_value=True, **KEY))
    assert topic.policies.message_ttl_seconds == 0
    await wire.publish(plain(payload(ttl, action="INSERT")))
    assert topic.policies.message_ttl_seconds == 9
    await wire.publish(plain(payload({}, action="DELETE")))
    assert topic.policies.message_ttl_seconds == 0


@pytest.mark.req("B-39")
async def test_events_may_come_compressed_and_in_batches(bed: Bed, rest: Rest, wire: Wire) -> None:
    await wire.producer(CHANGES)
    first, second = payload({"message_ttl_in_seconds": 9}), payload({"max_producers_per_topic": 2})
    await wire.publish(batch_of(first, second), num_messages=2)
    assert bed.broker.metadata.topic_policies[TOPIC] == {"max_producers_per_topic": 2}
    packed = compress(pb.LZ4, first)
    await wire.publish(plain(packed, compression=pb.LZ4, uncompressed_size=len(first)))
    assert bed.broker.metadata.topic_policies[TOPIC] == {"message_ttl_in_seconds": 9}


@pytest.mark.req("B-39")
@pytest.mark.parametrize(
    "entry",
    [
        plain(b"garbage", **KEY),
        plain(b"", partition_key="a/b"),
        plain(b"garbage", compression=pb.ZLIB, uncompressed_size=9),
        plain(encode(PolicyEvent(TopicName.parse("pulsar/system/t"), "UPDATE", False, {"max_message_size": 1}), "x")),
    ],
    ids=["garbage", "no name of a topic", "not compressed", "of another namespace"],
)
async def test_a_message_that_is_no_change_event_changes_nothing(
    bed: Bed, rest: Rest, wire: Wire, entry: bytes
) -> None:
    await rest.done("POST", f"{TOPICS}/t/maxProducers", 5)
    await wire.producer(CHANGES)
    await wire.publish(entry)
    assert bed.broker.metadata.topic_policies == {TOPIC: {"max_producers_per_topic": 5}}
    await wire.alive()


@pytest.mark.req("B-39")
async def test_change_events_are_compacted_and_never_deleted(bed: Bed, rest: Rest, wire: Wire) -> None:
    for number in range(5):
        await rest.done("POST", f"{TOPICS}/t/maxProducers", number)
    topic: Any = bed.topic(CHANGES)
    assert not topic.policies.inactivity.delete
    topic.compaction.trigger_when_due()
    await wire.quiet()
    assert topic.compaction.status == "SUCCESS"
    await wire.subscribe(CHANGES, "reader", durable=False, initialPosition=Earliest, read_compacted=True)
    await wire.flow()
    last = await wire.message()
    assert decode(last.payload, "standalone") == update({"max_producers_per_topic": 4})


@pytest.mark.req("B-39")
async def test_policies_outlive_a_restart_and_events_go_on(tmp_path: Path) -> None:
    async with serving(data=tmp_path) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t")
        await rest.done("POST", f"{TOPICS}/t/maxProducers", 5)
    async with serving(data=tmp_path) as bed:
        rest = rest_of(bed)
        assert await rest.get(f"{TOPICS}/t/maxProducers") == 5
        await rest.done("POST", f"{TOPICS}/t/maxProducers", 6)
        events = await seen(await bed.connect(), 2)
    assert [event.policies for _, event in events if event] == [{"max_producers_per_topic": n} for n in (5, 6)]


@pytest.mark.req("B-39")
async def test_a_namespace_is_deleted_with_its_change_events(bed: Bed, rest: Rest) -> None:
    await rest.done("PUT", f"{NAMESPACES}/public/n")
    await rest.done("PUT", f"{TOPICS.replace('default', 'n')}/A")
    await rest.done("POST", f"{TOPICS.replace('default', 'n')}/A/maxProducers", 5)
    await rest.done("DELETE", f"{TOPICS.replace('default', 'n')}/A")
    await rest.done("DELETE", f"{NAMESPACES}/public/n")  # the namespace has no topics except its events
    assert not bed.broker.topics.names("public/n")


@pytest.mark.req("B-39")
@pytest.mark.parametrize("key", ["systemTopicEnabled", "topicLevelPoliciesEnabled"])
async def test_without_system_topics_there_are_no_topic_policies(key: str) -> None:
    off: dict[str, Any] = {key: False}
    async with serving(Config(**off)) as bed:
        rest = rest_of(bed)
        await rest.done("PUT", f"{TOPICS}/t")
        refused = (405, "Topic level policies is disabled, to enable the topic level policy and retry.")
        assert await rest.refused("POST", f"{TOPICS}/t/maxProducers", 5) == refused
        assert await rest.refused("GET", f"{TOPICS}/t/maxProducers") == refused
        assert await rest.get(f"{TOPICS}?includeSystemTopic=true") == [TOPIC]


NO_SCHEMAS: dict[str, bytes] = {
    "nested": b"[" * 100_000,
    "no JSON": b"\xff",
    "no Avro": b"{}",
    "no fields": b'{"type":"record","name":"R","fields":[5]}',
}


@pytest.mark.req("B-39")
@pytest.mark.parametrize("definition", NO_SCHEMAS.values(), ids=NO_SCHEMAS)
async def test_a_schema_that_cannot_be_read(
    bed: Bed, rest: Rest, wire: Wire, caplog: pytest.LogCaptureFixture, definition: bytes
) -> None:
    """The broker accepts a schema of type External unchecked, so its definition may be any bytes."""
    await wire.producer(CHANGES, schema=pb.Schema(name="s", type=pb.Schema.Type.External, schema_data=definition))
    with caplog.at_level("WARNING"):
        await wire.publish(plain(payload({"max_message_size": 1}), schema_version=bytes(8)))
    assert bed.broker.metadata.topic_policies == {}
    assert "no policy event" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.req("B-39")
async def test_change_events_are_not_deduplicated(bed: Bed, rest: Rest, wire: Wire) -> None:
    """Pulsar deduplicates no system topic: an event that a client sends again takes effect again."""
    await rest.done("POST", f"{NAMESPACES}/public/default/deduplication", True)
    await wire.producer(CHANGES, producer_name="p")
    for ttl in (1, 2):
        await wire.publish(plain(payload({"message_ttl_in_seconds": ttl}), producer_name="p", sequence_id=ttl))
    wire.sequences[0] = 0
    await wire.publish(plain(payload({"message_ttl_in_seconds": 1}), producer_name="p", sequence_id=1))
    assert bed.broker.metadata.topic_policies[TOPIC] == {"message_ttl_in_seconds": 1}


def batch_with(*events: bytes) -> bytes:
    """Return the payload of a batch of events."""
    return batch.pack([(pb.SingleMessageMetadata(partition_key=TOPIC, payload_size=0), event) for event in events])


async def test_events_of_a_batch_are_applied_in_slices_and_in_their_order(
    bed: Bed, rest: Rest, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand events in one step of the event loop would hold other clients up."""
    monkeypatch.setattr(slices, "SLICE", 0)  # after each event
    await wire.producer(CHANGES)
    events = batch_with(*(payload({"message_ttl_in_seconds": ttl}) for ttl in range(1, 4)))
    applied: list[int] = []
    take = bed.broker.metadata.take_topic_policies
    turns = 0

    def noted(name: TopicName, policies: dict[str, Any]) -> None:
        applied.append(turns)
        take(name, policies)

    async def others() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    monkeypatch.setattr(bed.broker.metadata, "take_topic_policies", noted)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        await wire.publish(plain(events, num_messages_in_batch=3))
        while bed.broker.metadata.topic_policies.get(TOPIC) != {"message_ttl_in_seconds": 3}:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert len(applied) == 3
    assert applied[0] < applied[-1]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (plain(compress(pb.ZLIB, bytes(2 << 20)), compression=pb.ZLIB, uncompressed_size=2 << 20), "over the limit"),
        (plain(batch_with(*[b""] * 1001), num_messages_in_batch=1001), "1001 messages in a batch"),
    ],
    ids=["long", "many"],
)
async def test_an_entry_that_takes_long_to_apply_is_no_policy_event(
    bed: Bed, rest: Rest, wire: Wire, caplog: pytest.LogCaptureFixture, event: bytes, reason: str
) -> None:
    await wire.producer(CHANGES)
    with caplog.at_level("WARNING"):
        await wire.publish(event)
    assert "no policy event" in caplog.text
    assert reason in caplog.text


async def test_a_schema_that_takes_long_to_parse_is_not_parsed(
    bed: Bed, rest: Rest, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    schema = pb.Schema(name="s", type=pb.Schema.Type.External, schema_data=b" " * 300_000)
    await wire.producer(CHANGES, schema=schema)
    with caplog.at_level("WARNING"):
        await wire.publish(plain(payload({"max_message_size": 1}), schema_version=bytes(8)))
    assert "the stored version has 300000 bytes" in caplog.text
