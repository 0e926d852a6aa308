"""Key-value schemas: the two halves of a pair as columns."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructType

from pulsarium.client import (
    AvroSchema,
    BytesSchema,
    Int32Schema,
    JsonSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    Schema,
    StringSchema,
)
from pulsarium.client.producer.draft import draft_of
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.kinds import BadMessage, BadRow
from pulsarium.pipeline.columns.names import METADATA
from tests.pipeline.columns.messages import add_all, logical, message, record

INLINE, SEPARATED = KeyValueEncodingType.INLINE, KeyValueEncodingType.SEPARATED
BOTH = pytest.mark.parametrize("encoding", [INLINE, SEPARATED])
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 6000, UTC)
AVRO = AvroSchema(record(("at", logical("long", "timestamp-millis")), ("choice", ["string", "int"])))
JSON = JsonSchema(record(("at", logical("long", "timestamp-millis")), ("data", "bytes")))
STRUCT = {"at": MOMENT, "choice": {"member0": None, "member1": 3}}


def sent(schema: KeyValueSchema[Any, Any], pair: KeyValue[Any, Any] | None) -> Any:
    """Return the message of a pair, as a consumer of the columns gets it."""
    made = draft_of(schema, pair, {})
    key = base64.b64decode(made.metadata.partition_key) if made.metadata.HasField("partition_key") else None
    content = None if made.metadata.null_value else made.content
    return message(content, {"partition_key": key}, schema=Columns.of(schema.info).client_schema())


def read(schema: KeyValueSchema[Any, Any], *pairs: KeyValue[Any, Any] | None) -> pa.RecordBatch:
    columns = Columns.of(schema.info)
    return add_all(columns.for_reading(columns.schema), [sent(schema, each) for each in pairs]).take()


@BOTH
@pytest.mark.parametrize(
    ("half", "value", "shown", "spark"),
    [
        (AVRO, {"at": MOMENT, "choice": 3}, STRUCT, "struct<at:timestamp,choice:struct<member0:string,member1:int>>"),
        (
            JSON,
            {"at": 1704164645006, "data": "/w=="},
            {"at": MOMENT, "data": b"\xff"},
            "struct<at:timestamp,data:binary>",
        ),
        (Int32Schema(), 7, 7, "int"),
        (BytesSchema(), b"\xff", b"\xff", "binary"),
    ],
    ids=["avro", "json", "int", "bytes"],
)
def test_each_half_of_a_pair_is_a_column_and_a_pair_again(
    encoding: KeyValueEncodingType, half: Schema[Any], value: Any, shown: Any, spark: str
) -> None:
    schema = KeyValueSchema(half, half, encoding)
    columns = Columns.of(schema.info)
    assert columns.schema.names == ["key", "value", *METADATA.names]
    assert {columns.schema[name].dataType.simpleString() for name in ("key", "value")} == {spark}
    pairs = [KeyValue(value, value), KeyValue(None, value), None]
    batch = read(schema, *pairs)
    assert batch.column("key").to_pylist() == [shown, None, None]
    assert batch.column("value").to_pylist() == [shown, shown, None]
    back = columns.for_writing(columns.schema).messages(batch)
    for row, pair in enumerate(pairs):
        expected = draft_of(schema, pair, {})
        assert back.content(row) == (None if expected.metadata.null_value else expected.content)
        key = back.options(row, 0).get("partition_key")
        assert key == (half.encode(value) if encoding is SEPARATED and pair and pair.key is not None else None)


def test_a_separated_key_stays_where_its_value_is_missing() -> None:
    schema = KeyValueSchema(StringSchema(), Int32Schema(), SEPARATED)
    batch = read(schema, KeyValue("k", None))
    assert [batch.column(name).to_pylist() for name in ("key", "value", "__key")] == [["k"], [None], [b"k"]]
    columns = Columns.of(schema.info)
    back = columns.for_writing(columns.schema).messages(batch)
    assert (back.content(0), back.options(0, 0)["partition_key"]) == (None, b"k")


def test_a_broken_pair_is_named() -> None:
    columns = Columns.of(KeyValueSchema(StringSchema(), Int32Schema()).info)
    builder = add_all(columns.for_reading(columns.schema), [message(b"\0", schema=columns.client_schema())])
    with pytest.raises(BadMessage, match="a length is greater than the bytes that follow"):
        builder.take()


@BOTH
def test_a_row_that_fits_no_half_is_named(encoding: KeyValueEncodingType) -> None:
    schema = KeyValueSchema(StringSchema(), AvroSchema(record(("a", "int"))), encoding)
    given = StructType().add("key", StringType()).add("value", StructType().add("a", IntegerType()))
    batch = pa.RecordBatch.from_pylist(
        [{"key": "k", "value": {"a": 1}}, {"key": "k", "value": {"a": None}}], schema=to_arrow_schema(given)
    )
    with pytest.raises(BadRow, match=r"column value\.a is null") as raised:
        Columns.of(schema.info).for_writing(given).messages(batch)
    assert raised.value.row == 1


@BOTH
def test_a_pair_inside_a_pair_is_bytes(encoding: KeyValueEncodingType) -> None:
    inner = KeyValueSchema(StringSchema(), StringSchema(), encoding)
    columns = Columns.of(KeyValueSchema(StringSchema(), inner).info)
    assert [columns.schema[name].dataType.simpleString() for name in ("key", "value")] == ["string", "binary"]
