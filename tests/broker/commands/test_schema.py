"""GET_SCHEMA, GET_OR_CREATE_SCHEMA, and the schemas that producers bring."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest
import trio

from pulsarium.broker.commands import schema as commands
from pulsarium.broker.config.keys import Config
from pulsarium.broker.config.profile import PULSAR_4_2
from pulsarium.broker.model.schema import registry
from pulsarium.broker.model.schema.data import SchemaData
from pulsarium.broker.model.topic import joining
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.commands.schema import AVRO, ONE, REFUSED, STRING, TWO, WRONG, schema
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Type, Wire, frame_of, plain, serving

JSON = pb.Schema.Type.Value("Json")
NONE = pb.Schema.Type.Value("None")
AUTO = pb.Schema.Type.Value("AutoConsume")
EXTERNAL = pb.Schema.Type.Value("External")
KEY_VALUE = pb.Schema.Type.Value("KeyValue")


def pairs_of(schema: pb.Schema) -> list[tuple[str, str]]:
    pairs: Iterable[Any] = schema.properties  # Schema.Type.KeyValue hides the message KeyValue from the type checker
    return [(pair.key, pair.value) for pair in pairs]


def version(number: int) -> bytes:
    return number.to_bytes(8, "big")


async def get(wire: Wire, topic: str = TOPIC, **fields: Any) -> pb.CommandGetSchemaResponse:
    found: pb.CommandGetSchemaResponse = await wire.ask(Type.GET_SCHEMA, topic=topic, **fields)
    return found


async def create(wire: Wire, schema: dict[str, Any], topic: str = TOPIC) -> pb.CommandGetOrCreateSchemaResponse:
    made: pb.CommandGetOrCreateSchemaResponse = await wire.ask(Type.GET_OR_CREATE_SCHEMA, topic=topic, schema=schema)
    return made


async def test_a_schema_gets_a_version(wire: Wire) -> None:
    await wire.producer()
    first, second = schema(JSON, ONE, a="b"), schema(JSON, TWO)
    assert (await create(wire, first)).schema_version == version(0)
    assert (await create(wire, second)).schema_version == version(1)
    assert (await create(wire, first)).schema_version == version(0)
    found = await get(wire)
    assert (found.schema_version, found.schema.schema_data) == (version(1), TWO)
    found = await get(wire, schema_version=version(0))
    assert (found.schema_version, found.schema.schema_data, found.schema.type) == (version(0), ONE, JSON)
    assert found.schema.name == "public/default/t"
    assert pairs_of(found.schema) == [("a", "b")]


async def test_the_schema_of_a_producer(bed: Bed, wire: Wire) -> None:
    assert (await wire.producer(schema=schema(STRING, a="b"))).schema_version == version(0)
    found = (await get(wire)).schema
    assert (found.type, pairs_of(found)) == (STRING, [("a", "b")])
    assert (await wire.producer(producer_id=2)).schema_version == b""
    bed.broker.topics.create_partitions(TopicName.parse(f"{TOPIC}-parts"), 2)
    for index in range(2):
        topic = f"{TOPIC}-parts-partition-{index}"
        success = await wire.producer(topic, 3 + index, schema=schema(STRING))
        assert success.schema_version == version(0)
    assert (await get(wire, f"{TOPIC}-parts")).schema_version == version(0)


async def test_schemas_that_are_not_there(wire: Wire) -> None:
    await wire.producer()
    versions: list[dict[str, Any]] = [{}, {"schema_version": version(0)}, {"schema_version": version(2**63 - 1)}]
    for fields in versions:
        found = await get(wire, **fields)
        assert found.error_code == pb.TopicNotFound
        assert TOPIC in found.error_message
        assert not found.HasField("schema_version")
    found = await get(wire, "http://public/default/t")
    assert found.error_code == pb.InvalidTopicName


async def test_versions_that_are_none(wire: Wire) -> None:
    await wire.producer(schema=schema(STRING))
    found = await get(wire, schema_version=b"")
    assert (found.error_code, found.error_message) == (pb.IncompatibleSchema, "Empty schema version")
    await wire.write(wire.numbered(Type.GET_SCHEMA, topic=TOPIC, schema_version=b"\0\1"))
    assert await wire.closed() == []


async def test_no_topic_is_made_for_a_schema(bed: Bed, wire: Wire) -> None:
    made = await create(wire, schema(STRING))
    assert (made.error_code, made.error_message) == (pb.TopicNotFound, f"Topic not found {TOPIC}")
    assert not bed.broker.topics.exists(TopicName.parse(TOPIC))


async def test_a_schema_of_a_topic_that_can_be_none_is_refused(wire: Wire) -> None:
    made = await wire.ask(Type.GET_OR_CREATE_SCHEMA, topic="http://a/b/c", schema=schema(STRING))
    assert made.error_code == pb.InvalidTopicName


@pytest.mark.serving(profile=PULSAR_4_2)
async def test_in_4_2_a_schema_of_a_topic_that_can_be_none_closes_the_connection(wire: Wire) -> None:
    await wire.write(wire.numbered(Type.GET_OR_CREATE_SCHEMA, topic="http://a/b/c", schema=schema(STRING)))
    assert await wire.closed() == []


async def test_schemas_outlive_the_broker(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        for number in range(12):  # as text, 10 would come before 2
            await create(wire, schema(EXTERNAL, b"%d" % number, number=str(number)))
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        for number in range(12):
            found = await get(wire, schema_version=version(number))
            assert found.schema.schema_data == b"%d" % number
            assert pairs_of(found.schema) == [("number", str(number))]
        assert (await create(wire, schema(EXTERNAL, b"5"))).schema_version == version(5)
        assert (await create(wire, schema(EXTERNAL, b"new"))).schema_version == version(12)


async def test_a_schema_that_cannot_be_kept(store: HeldStorage, wire: Wire) -> None:
    await wire.producer()
    store.holding = True
    await wire.write(wire.numbered(Type.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema=schema(STRING)))
    await wire.quiet()
    store.fail()
    assert (await wire.expect(Type.ERROR)).error == pb.PersistenceError


# schemas that are refused


async def test_a_producer_that_does_not_fit(wire: Wire) -> None:
    await wire.producer(schema=schema(AVRO, ONE))
    code, text = await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, schema=schema(AVRO, WRONG))
    assert code == pb.IncompatibleSchema
    assert text.startswith(f"{REFUSED}Error during schema compatibility check with strategy FULL:")
    assert text.count("Unable to read schema: ") == 2
    same = REFUSED + "Incompatible schema: exists schema type AVRO, new schema type STRING"
    refused = await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1, schema=schema(STRING))
    assert refused == (pb.IncompatibleSchema, f"{same} caused by {same}")
    assert (await wire.producer(producer_id=1, schema=schema(AVRO, TWO))).schema_version == version(1)


async def test_a_schema_that_is_none_is_refused(wire: Wire) -> None:
    text = "Invalid schema definition data for AVRO schema"
    cause = "org.apache.avro.SchemaParseException: No type: {}"
    expected = (pb.IncompatibleSchema, f"{text} caused by {cause}")
    assert await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=0, schema=schema(AVRO, b"{}")) == expected
    made = await create(wire, schema(AVRO, b"{}"))
    assert (made.error_code, made.error_message) == expected
    made = await create(wire, schema(AUTO))
    assert made.error_message == "Schema AUTO_CONSUME is a client-side schema type"
    made = await create(wire, schema(KEY_VALUE, b"x"))
    assert (made.error_code, made.error_message) == (pb.UnknownError, "java.nio.BufferUnderflowException")
    refused = await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=0, schema=schema(KEY_VALUE, b"x"))
    assert refused == (pb.UnknownError, "java.nio.BufferUnderflowException")
    assert (await get(wire)).error_code == pb.TopicNotFound


@pytest.mark.req("B-30")
async def test_a_producer_says_that_it_has_none(wire: Wire) -> None:
    """Clients leave the schema out instead. The broker treats NONE as a schema like others."""
    assert (await wire.producer(schema=schema(NONE))).schema_version == version(0)
    assert (await get(wire)).schema.type == NONE
    assert (await create(wire, schema(NONE))).schema_version == b""


@pytest.mark.serving(Config(isSchemaValidationEnforced=True))
async def test_producers_must_have_a_schema_where_the_topic_has(wire: Wire) -> None:
    assert (await wire.producer()).schema_version == b""
    await create(wire, schema(STRING))
    code, text = await wire.refused(Type.PRODUCER, topic=TOPIC, producer_id=1)
    assert code == pb.IncompatibleSchema
    assert text.startswith(f"{REFUSED}Producers cannot connect or send message without a schema to topics with a")
    made = await create(wire, schema(NONE))
    assert (made.error_code, made.error_message) == (code, text)


@pytest.mark.req("B-30")
@pytest.mark.serving(Config(isAllowAutoUpdateSchemaEnabled=False))
async def test_no_new_schemas(bed: Bed, wire: Wire) -> None:
    await wire.producer()
    made = await create(wire, schema(AVRO, ONE))
    text = f"{REFUSED}Schema not found and schema auto updating is disabled."
    assert (made.error_code, made.error_message) == (pb.IncompatibleSchema, f"{text} caused by {text}")
    bed.broker.schemas.get_or_create(TopicName.parse(TOPIC), SchemaData("AVRO", ONE), 0)
    assert (await create(wire, schema(AVRO, ONE))).schema_version == version(0)
    assert (await create(wire, schema(AVRO, TWO))).error_code == pb.IncompatibleSchema


@pytest.mark.req("B-30")
async def test_the_strategy_of_system_topics(autojump_clock: object) -> None:
    never = Config(schemaCompatibilityStrategy="ALWAYS_INCOMPATIBLE", isAllowAutoUpdateSchemaEnabled=False)
    async with serving(never) as bed:
        wire = await bed.connect()
        topic = "persistent://public/default/__change_events"
        first = await wire.producer(topic, 0, schema=schema(AVRO, ONE))
        second = await wire.producer(topic, 1, schema=schema(AVRO, WRONG))
        assert first.schema_version < second.schema_version


# consumers


async def test_a_consumer_brings_the_schema_of_an_idle_topic(wire: Wire) -> None:
    await wire.subscribe(schema=schema(AUTO))  # reads all messages as they are
    await wire.subscribe(consumer_id=1, name="s1", schema=schema(AVRO, ONE, a="b"))
    found = (await get(wire)).schema
    assert (found.schema_data, pairs_of(found)) == (ONE, [("a", "b")])
    await wire.subscribe(consumer_id=2, name="s2", schema=schema(AVRO, TWO))  # TWO can read messages of ONE
    refused = await wire.refused(
        Type.SUBSCRIBE, topic=TOPIC, subscription="s", subType=0, consumer_id=3, schema=schema(AVRO, WRONG)
    )
    assert refused[0] == pb.IncompatibleSchema
    assert refused[1].startswith("Error during schema compatibility check with strategy BACKWARD: org.apache.avro.")
    assert (await get(wire)).schema_version == version(0)


async def test_an_idle_topic_ignores_a_broken_avro_schema_of_a_consumer(wire: Wire) -> None:
    await wire.subscribe(schema=schema(AVRO, b"{}"))
    assert (await get(wire)).error_code == pb.TopicNotFound


async def test_an_idle_topic_refuses_a_broken_key_value_schema_of_a_consumer(wire: Wire) -> None:
    asked = {"topic": TOPIC, "subscription": "s", "subType": 0, "consumer_id": 1}
    assert await wire.refused(Type.SUBSCRIBE, **asked, schema=schema(KEY_VALUE, b"x")) == (pb.UnknownError, "")


@pytest.mark.req("B-30")
@pytest.mark.parametrize("used", ["producer", "consumer", "messages"])
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_a_schema_is_refused_on_a_topic_that_is_used_without(wire: Wire, used: str, domain: str) -> None:
    topic = f"{domain}://public/default/t"
    if used == "consumer":
        await wire.subscribe(topic)
    else:
        await wire.producer(topic)
    if used == "messages":
        await wire.send(Type.SEND, plain(b"x"), producer_id=0, sequence_id=0)
        await wire.expect(Type.SEND_RECEIPT)
        await wire.ask(Type.CLOSE_PRODUCER, producer_id=0)
    refused = await wire.refused(
        Type.SUBSCRIBE, topic=topic, subscription="s", subType=0, consumer_id=1, schema=schema(STRING)
    )
    text = "Failed to add schema to an active topic with empty(BYTES) schema: new schema type STRING"
    assert refused == (pb.IncompatibleSchema, text)
    assert (await wire.producer(topic, 1, schema=schema(STRING))).schema_version == version(0)
    await wire.subscribe(topic, "s", consumer_id=1, schema=schema(STRING))


# large schemas, which a thread judges


@pytest.fixture
def any_schema_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LARGE", -1)


async def until_settled(bed: Bed, judged: threading.Event) -> None:
    """Wait for a thread without letting the test's clock jump."""
    while not (judged.is_set() and bed.broker.turn.is_settled):
        await trio.lowlevel.checkpoint()


@pytest.mark.usefixtures("any_schema_is_large")
@pytest.mark.parametrize(
    ("type", "fields"),
    [
        (Type.GET_OR_CREATE_SCHEMA, {}),
        (Type.PRODUCER, {"producer_id": 1}),
        (Type.SUBSCRIBE, {"subscription": "s", "consumer_id": 1, "subType": pb.CommandSubscribe.Shared}),
    ],
)
async def test_others_are_served_while_a_large_schema_is_judged(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, type: int, fields: dict[str, Any]
) -> None:
    others_were_served = threading.Event()

    def judge_then(*about: Any) -> None:
        assert others_were_served.wait(30)
        joining.judge_alone(*about)

    monkeypatch.setattr(commands, "judge_alone", judge_then)
    wire, polite = await bed.connect(), await bed.connect()
    if type == Type.GET_OR_CREATE_SCHEMA:
        await wire.producer()
    await wire.write(wire.numbered(type, topic=TOPIC, schema=schema(AVRO, ONE), **fields) + frame_of(Type.PING))
    await polite.alive()
    assert await wire.rest(0) == []
    others_were_served.set()
    await until_settled(bed, others_were_served)
    answers = {(await wire.next()).command.type for _ in range(2)}
    assert Type.PONG in answers
    assert Type.ERROR not in answers
    found = await get(wire)
    assert found.schema.schema_data == ONE


@pytest.mark.usefixtures("any_schema_is_large")
async def test_a_schema_that_came_while_a_large_one_was_judged_counts(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = await bed.connect()
    await wire.producer()

    judged = threading.Event()

    def judge_then(*about: Any) -> None:
        joining.judge_alone(*about)
        trio.from_thread.run_sync(bed.broker.schemas.add, *other)
        judged.set()

    other = TopicName.parse(TOPIC), SchemaData("AVRO", WRONG), "FULL", 1
    monkeypatch.setattr(commands, "judge_alone", judge_then)
    await wire.write(wire.numbered(Type.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema=schema(AVRO, ONE)))
    await until_settled(bed, judged)
    assert (await wire.expect(Type.GET_OR_CREATE_SCHEMA_RESPONSE)).error_code == pb.IncompatibleSchema
