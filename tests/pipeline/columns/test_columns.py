"""Columns of a topic, from its schema."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime, time
from typing import Any

import pytest
from pyspark.sql.types import StructType

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
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    Schema,
    SchemaInfo,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.kinds import BadColumns
from pulsarium.pipeline.columns.names import METADATA
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.pipeline.columns.messages import add_all, message, record
from tests.pipeline.columns.writing import messages

MOMENT = datetime(2024, 2, 29, 12, 30, 1, 123456, UTC)
MILLIS = MOMENT.replace(microsecond=123000)


def test_metadata_are_columns() -> None:
    assert METADATA.simpleString() == (
        "struct<__key:binary,__topic:string,__messageId:binary,__publishTime:timestamp,__eventTime:timestamp,"
        "__messageProperties:map<string,string>,__index:bigint>"
    )
    assert all(field.nullable for field in METADATA.fields)


@pytest.mark.parametrize(
    ("schema", "spark", "value"),
    [
        (StringSchema(), "string", "héllo"),
        (StringSchema(), "string", ""),
        (BooleanSchema(), "boolean", True),
        (Int8Schema(), "tinyint", -128),
        (Int16Schema(), "smallint", -32768),
        (Int32Schema(), "int", -(2**31)),
        (Int64Schema(), "bigint", 2**63 - 1),
        (FloatSchema(), "float", 1.5),
        (DoubleSchema(), "double", 0.1),
        (TimestampSchema(), "timestamp", MILLIS),
        (DateSchema(), "timestamp", MILLIS),
        (InstantSchema(), "timestamp", MOMENT),
        (TimeSchema(), "time(6)", time(23, 59, 59, 999000)),
        (LocalDateSchema(), "date", date(1969, 12, 31)),
        (LocalTimeSchema(), "time(6)", time(1, 2, 3, 4)),
        (LocalDateTimeSchema(), "timestamp_ntz", MOMENT.replace(tzinfo=None)),
    ],
)
def test_primitives_are_a_column(schema: Schema[Any], spark: str, value: Any) -> None:
    columns = pickle.loads(pickle.dumps(Columns.of(schema.info)))
    assert columns.schema["value"].dataType.simpleString() == spark
    assert columns.schema.fields[1:] == METADATA.fields
    used = columns.client_schema()
    assert type(used) is type(schema)
    builder = columns.for_reading(columns.schema)
    batch = add_all(builder, [message(schema.encode(value), schema=used), message(None, schema=used)]).take()
    assert batch.column("value").to_pylist() == [value, None]
    back = messages(columns.for_writing(columns.schema), batch)
    assert [each.value for each in back] == [value, None]
    assert schema.encode(back[0].value) == schema.encode(value)


@pytest.mark.parametrize(
    "info",
    [
        None,
        SchemaInfo(getattr(pb.Schema, "None")),
        SchemaInfo(pb.Schema.KeyValue, b"\0"),
        SchemaInfo(pb.Schema.Protobuf, json.dumps(record(("a", "int"))).encode()),
        SchemaInfo(pb.Schema.ProtobufNative, b"{}"),
        SchemaInfo(pb.Schema.Avro, b'"string"'),
        SchemaInfo(pb.Schema.Avro, b"\xff"),
        SchemaInfo(pb.Schema.Avro, json.dumps(record(("next", ["null", "R"]))).encode()),
        SchemaInfo(pb.Schema.Json, b'{"type":"object","id":"of an old Java client"}'),
        SchemaInfo(pb.Schema.Json, json.dumps(record()).encode()),
    ],
)
def test_bytes_are_a_binary_column(info: SchemaInfo | None) -> None:
    columns = Columns.of(info)
    assert columns.info is None
    assert columns.client_schema() is None
    assert columns.schema.names == ["value", *METADATA.names]
    batch = add_all(columns.for_reading(columns.schema), [message(b"\xff"), message(b""), message(None)]).take()
    assert batch.column("value").to_pylist() == [b"\xff", b"", None]


@pytest.mark.parametrize("schema", [AvroSchema, JsonSchema])
def test_the_fields_of_records_are_columns(schema: type[AvroSchema[Any]]) -> None:
    text = json.dumps(record(("a", "int"), ("b", ["null", "string"], None)), indent=1)
    columns = pickle.loads(pickle.dumps(Columns.of(schema(text).info)))
    assert columns.schema.names == ["a", "b", *METADATA.names]
    used = columns.client_schema()
    assert used is not None
    assert used.info is not None
    assert used.info.type == schema(text).info.type
    assert used.info.data == text.encode(), "the text must be unchanged, or the registry adds a new version"


@pytest.mark.parametrize("name", ["__key", "__MESSAGEID", "__undecodable"])
def test_fields_like_metadata(name: str) -> None:
    info = AvroSchema(record((name, "int"))).info
    with pytest.raises(BadColumns, match=f"the field {name} of the topic's schema"):
        Columns.of(info)


def test_other_fields_may_begin_like_metadata() -> None:
    columns = Columns.of(AvroSchema(record(("__typename", "string"))).info)
    writer = columns.for_writing(StructType([columns.schema["__typename"]]))
    batch = add_all(
        columns.for_reading(StructType([columns.schema["__typename"]])),
        [message(b"\x02x", schema=columns.client_schema())],
    ).take()
    assert [each.value for each in messages(writer, batch)] == [{"__typename": "x"}]
