"""Typed values of messages, by schema."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from google.protobuf.api_pb2 import Api

from pulsarium.client import (
    AvroSchema,
    BooleanSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    JsonSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    MessageId,
    ProtobufNativeSchema,
    Schema,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)
from pulsarium.client.schema.of_info import schema_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb

from .scenario import scenario
from .world import World, available, opening


@dataclass
class Reading:
    sensor: str
    value: float
    note: str | None = None


@dataclass
class Later:
    """The same record with more fields, a later version of the schema."""

    sensor: str
    value: float
    note: str | None = None
    unit: str = "m"


MOMENT = datetime(2026, 11, 22, 1, 2, 3, 456000, UTC)
PRIMITIVES: list[tuple[Schema[Any], Any]] = [
    (StringSchema(), "Straße"),
    (BooleanSchema(), True),
    (Int8Schema(), -8),
    (Int16Schema(), -16000),
    (Int32Schema(), -(2**31)),
    (Int64Schema(), 2**63 - 1),
    (FloatSchema(), 0.5),
    (DoubleSchema(), 0.1),
    (DateSchema(), MOMENT),
    (TimestampSchema(), MOMENT),
    (TimeSchema(), time(1, 2, 3)),
    (InstantSchema(), MOMENT),
    (LocalDateSchema(), date(2026, 11, 22)),
    (LocalTimeSchema(), time(1, 2, 3, 4)),
    (LocalDateTimeSchema(), datetime(2026, 11, 22, 1, 2, 3)),  # noqa: DTZ001
]


async def there_and_back(world: World, topic: str, schema: Schema[Any], *values: object) -> list[Any]:
    async with world.client.create_producer(topic, schema=schema) as producer:
        for value in values:
            await producer.send(value)
    async with world.client.create_reader(topic, MessageId.earliest, schema=schema) as reader:
        return [message.value() for message in await available(reader)]


@scenario(
    expected=[
        *(["String", "Bool", "Int8", "Int16", "Int32", "Int64", "Float", "Double", "Date", "Timestamp"]),
        *(["Time", "Instant", "LocalDate", "LocalTime", "LocalDateTime"]),
    ]
)
async def primitives(world: World) -> object:
    found = []
    for schema, value in PRIMITIVES:
        topic = world.topic(type(schema).__name__)
        assert await there_and_back(world, topic, schema, value) == [value]
        found.append(pb.Schema.Type.Name((await world.client.get_schema(topic)).type))
    return found


@scenario(expected=[["a", 1.5, None], ["b", -2.0, "odd"]])
async def json_records(world: World) -> object:
    found = await there_and_back(
        world, world.topic(), JsonSchema(Reading), Reading("a", 1.5), Reading("b", -2.0, "odd")
    )
    return [[one.sensor, one.value, one.note] for one in found]


@scenario(expected={"values": [["a", 1.5, None, "m"], ["b", 2.5, None, "ft"]], "versions": [0, 1]})
async def avro_that_evolves(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, schema=AvroSchema(Reading)) as producer:
        await producer.send(Reading("a", 1.5))
    async with world.client.create_producer(topic, schema=AvroSchema(Later)) as other:
        await other.send(Later("b", 2.5, unit="ft"))
    async with world.client.create_reader(topic, MessageId.earliest, schema=AvroSchema(Later)) as reader:
        messages = await available(reader)
        return {
            "values": [[v.sensor, v.value, v.note, v.unit] for v in (message.value() for message in messages)],
            "versions": [int.from_bytes(message.schema_version(), "big") for message in messages],
        }


@scenario(expected={"number": "IncompatibleSchema", "text": "ok"})
async def another_kind(world: World) -> object:
    topic = world.topic()
    async with world.client.create_producer(topic, schema=StringSchema()):
        return {
            "number": await opening(world.client.create_producer(topic, schema=Int32Schema())),
            "text": await opening(world.client.create_producer(topic, schema=StringSchema())),
        }


@scenario(
    expected={
        "INLINE": {"values": [["k", 1], ["k", None], [None, 2]], "keys": ["", "", ""], "stored": "INLINE"},
        "SEPARATED": {
            "values": [["k", 1], ["k", None], [None, 2]],
            "keys": ["aw==", "aw==", ""],
            "stored": "SEPARATED",
        },
    }
)
async def keys_and_values(world: World) -> object:
    found = {}
    for encoding in KeyValueEncodingType:
        schema = KeyValueSchema(StringSchema(), Int32Schema(), encoding)
        topic = world.topic(encoding.value)
        values: list[KeyValue[str, int]] = [KeyValue("k", 1), KeyValue("k", None), KeyValue(None, 2)]
        async with world.client.create_producer(topic, schema=schema) as producer:
            for value in values:
                await producer.send(value)
        async with world.client.create_reader(topic, MessageId.earliest, schema=schema) as reader:
            messages = await available(reader)
        found[encoding.value] = {
            "values": [list(message.value()) for message in messages],
            "keys": [message.partition_key() for message in messages],
            "stored": (await world.client.get_schema(topic)).properties["kv.encoding.type"],
        }
    return found


@scenario(expected={"names": ["one", "two"], "type": "ProtobufNative", "made": "one"})
async def protobuf_messages(world: World) -> object:
    topic = world.topic()
    back = await there_and_back(world, topic, ProtobufNativeSchema(Api), Api(name="one"), Api(name="two"))
    info = await world.client.get_schema(topic)
    made = schema_of(info).decode(Api(name="one").SerializeToString())
    return {"names": [one.name for one in back], "type": pb.Schema.Type.Name(info.type), "made": made.name}
