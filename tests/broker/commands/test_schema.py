"""GET_SCHEMA, GET_OR_CREATE_SCHEMA, and the schemas that producers bring."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName
from tests.broker.held import HeldStorage
from tests.broker.wire import TOPIC, Bed, Type, Wire, serving

STRING = pb.Schema.Type.Value("String")
JSON = pb.Schema.Type.Value("Json")
NONE = pb.Schema.Type.Value("None")


def schema(type: int, data: bytes = b"", **properties: str) -> dict[str, Any]:
    pairs = [{"key": key, "value": value} for key, value in properties.items()]
    return {"name": "mine", "schema_data": data, "type": type, "properties": pairs}


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
    first, second = schema(JSON, b"{1}", a="b"), schema(JSON, b"{2}")
    assert (await create(wire, first)).schema_version == version(0)
    assert (await create(wire, second)).schema_version == version(1)
    assert (await create(wire, first)).schema_version == version(0)
    found = await get(wire)
    assert (found.schema_version, found.schema.schema_data) == (version(1), b"{2}")
    found = await get(wire, schema_version=version(0))
    assert (found.schema_version, found.schema.schema_data, found.schema.type) == (version(0), b"{1}", JSON)
    assert found.schema.name == "public/default/t"
    assert pairs_of(found.schema) == [("a", "b")]


async def test_the_schema_of_a_producer(bed: Bed, wire: Wire) -> None:
    assert (await wire.producer(schema=schema(STRING))).schema_version == version(0)
    assert (await get(wire)).schema.type == STRING
    assert (await wire.producer(producer_id=1, schema=schema(NONE))).schema_version == b""
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
    await wire.write(wire.numbered(Type.GET_OR_CREATE_SCHEMA, topic="http://a/b/c", schema=schema(STRING)))
    assert await wire.closed() == []


async def test_schemas_outlive_the_broker(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        for number in range(12):  # as text, 10 would come before 2
            await create(wire, schema(JSON, b"%d" % number, number=str(number)))
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        for number in range(12):
            found = await get(wire, schema_version=version(number))
            assert found.schema.schema_data == b"%d" % number
            assert pairs_of(found.schema) == [("number", str(number))]
        assert (await create(wire, schema(JSON, b"5"))).schema_version == version(5)
        assert (await create(wire, schema(JSON, b"new"))).schema_version == version(12)


async def test_a_schema_that_cannot_be_kept(autojump_clock: object) -> None:
    store = HeldStorage()
    async with serving(storage=store) as bed:
        wire = await bed.connect()
        await wire.producer()
        store.holding = True
        await wire.write(wire.numbered(Type.GET_OR_CREATE_SCHEMA, topic=TOPIC, schema=schema(STRING)))
        await wire.quiet()
        store.fail()
        assert (await wire.expect(Type.ERROR)).error == pb.PersistenceError
