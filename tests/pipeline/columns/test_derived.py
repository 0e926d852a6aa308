"""Schemas of topics, derived from the columns of a DataFrame."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.derived import info_for
from pulsarium.pipeline.columns.kinds import BadColumns
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.pipeline.columns.derived import EVERYTHING, ROW
from tests.pipeline.columns.messages import add_all, message
from tests.pipeline.columns.writing import struct, write


@pytest.mark.parametrize(
    ("spark", "kind"),
    [
        (StringType(), pb.Schema.String),
        (BooleanType(), pb.Schema.Bool),
        (ByteType(), pb.Schema.Int8),
        (ShortType(), pb.Schema.Int16),
        (IntegerType(), pb.Schema.Int32),
        (LongType(), pb.Schema.Int64),
        (FloatType(), pb.Schema.Float),
        (DoubleType(), pb.Schema.Double),
        (TimestampType(), pb.Schema.Instant),
        (TimestampNTZType(), pb.Schema.LocalDateTime),
        (DateType(), pb.Schema.LocalDate),
        (TimeType(6), pb.Schema.LocalTime),
    ],
)
def test_a_column_derives_a_primitive_schema(spark: DataType, kind: int) -> None:
    info = info_for(struct(__key=StringType(), VALUE=spark))
    assert info is not None
    assert info.type == kind
    assert Columns.of(info).schema["value"].dataType == spark


def test_a_binary_column_derives_bytes() -> None:
    assert info_for(struct(value=BinaryType(), __topic=StringType())) is None


def definition(schema: StructType) -> Any:
    info = info_for(schema)
    assert info is not None
    assert info.type == pb.Schema.Avro
    return json.loads(info.data)


def test_columns_derive_a_record() -> None:
    schema = StructType(
        [
            StructField("__key", StringType()),
            StructField("id", LongType(), nullable=False),
            StructField("at", TimestampType()),
            StructField("in", ArrayType(struct(x=NullType()), containsNull=False), nullable=False),
        ]
    )
    inner: dict[str, Any] = {"type": "record", "name": "in", "namespace": "topLevelRecord", "fields": []}
    inner["fields"] = [{"name": "x", "type": ["null", "string"], "default": None}]
    assert definition(schema) == {
        "type": "record",
        "name": "topLevelRecord",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
            {"name": "in", "type": {"type": "array", "items": inner}},
        ],
    }


def test_a_struct_is_its_fields() -> None:
    fields = struct(a=LongType(), b=StringType())
    assert definition(struct(value=fields, __key=StringType())) == definition(fields)


def test_a_value_of_a_type_without_a_schema_becomes_a_field() -> None:
    assert [each["name"] for each in definition(struct(value=ArrayType(LongType())))["fields"]] == ["value"]


def test_columns_derive_a_json_schema() -> None:
    info = info_for(struct(a=LongType()), as_json=True)
    avro = info_for(struct(a=LongType()))
    assert info is not None
    assert avro is not None
    assert (info.type, info.data) == (pb.Schema.Json, avro.data)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (struct(__key=StringType()), "no column for the value of messages: it has __key"),
        (StructType([]), "no column for the value"),
        (
            struct(a=ArrayType(StructType([]), containsNull=False)),
            "not a valid record: the Avro definition has an array whose items take no bytes",
        ),
        (struct(a=DayTimeIntervalType()), "column a is interval .*, and Avro has no such type"),
        (struct(a=struct(b=MapType(LongType(), LongType()))), r"column a\.b is map<bigint,bigint>"),
        (StructType([StructField("a b", LongType())]), "column a b: Avro's names"),
        (struct(a=LongType(), A=LongType()), "the DataFrame has 'a' and 'A'"),
        (struct(a=struct(b=LongType(), B=LongType())), "column a has 'b' and 'B'"),
        (
            struct(a=LongType(), __other=LongType()),
            "column __other is unknown: metadata columns of a message are __key",
        ),
    ],
)
def test_a_dataframe_with_unsupported_columns_is_refused(schema: StructType, reason: str) -> None:
    with pytest.raises(BadColumns, match=reason):
        info_for(schema)


@pytest.mark.parametrize("as_json", [False, True])
def test_everything_comes_back(as_json: bool) -> None:
    columns = Columns.of(info_for(EVERYTHING, as_json=as_json))
    schema = columns.client_schema()
    assert schema is not None
    rows = [ROW, dict.fromkeys(ROW) | {"int": 1}]
    contents = [schema.encode(each.value) for each in write(schema, EVERYTHING, *rows)]
    wanted = StructType([columns.schema[name] for name in EVERYTHING.names])
    batch = add_all(columns.for_reading(wanted), [message(each, schema=schema) for each in contents]).take()
    assert batch.to_pylist() == rows
