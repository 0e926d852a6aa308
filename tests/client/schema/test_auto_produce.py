"""Producers of bytes that are values already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.api_pb2 import Api
from trio.testing import MockClock

from pulsarium.client import (
    AutoProduceBytesSchema,
    AvroSchema,
    BooleanSchema,
    BytesSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InitialPosition,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    JsonSchema,
    KeyValueSchema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    ProtobufNativeSchema,
    Schema,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)
from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.key_value import halves
from pulsarium.client.schema.of_info import schema_of
from pulsarium.client.schema.schema import SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.consumer.started import received, started


@dataclass
class User:
    name: str


SCHEMAS: list[Schema[Any]] = [
    StringSchema(), BooleanSchema(), Int8Schema(), Int16Schema(), Int32Schema(), Int64Schema(), FloatSchema(),
    DoubleSchema(), DateSchema(), TimeSchema(), TimestampSchema(), InstantSchema(), LocalDateSchema(),
    LocalTimeSchema(), LocalDateTimeSchema(), AvroSchema(User), JsonSchema(User), ProtobufNativeSchema(Api),
    KeyValueSchema(StringSchema(), AvroSchema(User)),
]  # fmt: skip


@pytest.mark.req("B-30")
@pytest.mark.parametrize("partitions", [0, 2])
async def test_bytes_are_held_against_the_schema_of_the_topic(autojump_clock: MockClock, partitions: int) -> None:
    schema = AvroSchema(User)
    async with started() as (inside, client):
        if partitions:
            inside.partitioned("t", partitions)
        async with (
            client.create_producer("t", schema=schema),
            client.create_producer("t", schema=AutoProduceBytesSchema()) as producer,
            client.subscribe("t", "s", schema=schema, initial_position=InitialPosition.Earliest) as consumer,
        ):
            await producer.send(schema.encode(User("Ada")))
            (message,) = await received(consumer, 1)
            assert message.value() == User("Ada")
            assert message.schema_version() == bytes(8)
            with pytest.raises(InvalidMessage):
                await producer.send(b"\xff")


@pytest.mark.req("B-30")
async def test_a_topic_without_a_schema_takes_any_bytes(autojump_clock: MockClock) -> None:
    async with (
        started() as (_, client),
        client.create_producer("t", schema=AutoProduceBytesSchema()) as producer,
        client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer,
    ):
        await producer.send(b"\xff")
        (message,) = await received(consumer, 1)
        assert (message.value(), message.schema_version()) == (b"\xff", b"")


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_schema_of_what_a_broker_keeps(schema: Schema[Any]) -> None:
    assert schema.info is not None
    again = schema_of(schema.info)
    assert type(again) is type(schema)
    assert again.info is not None
    assert (again.info.type, again.info.data) == (schema.info.type, schema.info.data)


def test_types_that_we_have_not() -> None:
    with pytest.raises(InvalidMessage):
        schema_of(SchemaInfo(pb.Schema.External))
    assert schema_of(halves(KeyValueSchema(BytesSchema(), BytesSchema()).info)[0]).info is None
