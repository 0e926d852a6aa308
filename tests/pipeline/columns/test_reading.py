"""Reading of messages into record batches."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pulsarium.client import AvroSchema, Int32Schema, JsonSchema, Message, MessageId, Schema, SchemaInfo, StringSchema
from pulsarium.client.errors import Timeout
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.kinds import BadColumns, BadMessage
from pulsarium.pipeline.columns.names import MESSAGE_ID_PARTS, METADATA
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.pipeline.columns.messages import TOPIC, add_all, logical, message, record


def read(columns: Columns, messages: list[Message[Any]], wanted: StructType | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = add_all(columns.for_reading(wanted or columns.schema), messages).take().to_pylist()
    return rows


def test_metadata_are_read_with_each_message() -> None:
    full_id = MessageId(5, 6, 1, 2, 4)
    full = message(
        b"x",
        {"partition_key": "k", "event_timestamp": 1500, "properties": {"a": "b", "c": ""}},
        id=full_id,
        published=2500,
        index=13,
    )
    bare = message(b"", id=MessageId(5, 7))
    first, second = read(Columns.of(None), [full, bare])
    assert first == {
        "value": b"x",
        "__key": b"k",
        "__topic": TOPIC,
        "__messageId": full_id.serialize(),
        "__publishTime": datetime(1970, 1, 1, 0, 0, 2, 500000, UTC),
        "__eventTime": datetime(1970, 1, 1, 0, 0, 1, 500000, UTC),
        "__messageProperties": [("a", "b"), ("c", "")],
        "__index": 13 - 4 + 1 + 2,
    }
    assert second["value"] == b""
    assert second["__messageProperties"] == []
    assert [second[name] for name in ("__key", "__eventTime", "__index")] == [None] * 3


def test_keys_are_bytes_whether_or_not_in_base64() -> None:
    options: list[Any] = [{"partition_key": key} for key in ("é", "", b"\xff", b"text", None)]
    rows = read(Columns.of(None), [message(b"", each) for each in options])
    assert [row["__key"] for row in rows] == ["é".encode(), b"", b"\xff", b"text", None]
    claimed = message(b"", {"partition_key": "no base64!"})
    claimed._own.partition_key_b64_encoded = True
    assert read(Columns.of(None), [claimed])[0]["__key"] == b"no base64!"


def test_a_time_beyond_the_range_of_timestamps_is_null() -> None:
    messages = [message(b"", published=2**64 - 1), message(b"", published=2**63 // 1000 + 1), message(b"", published=1)]
    rows = read(Columns.of(None), messages, StructType([METADATA["__publishTime"]]))
    assert [row["__publishTime"] for row in rows] == [None, None, datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)]


def test_texts_that_are_none() -> None:
    single = pb.SingleMessageMetadata.FromString(
        pb.SingleMessageMetadata(payload_size=0, properties=[pb.KeyValue(key="aXb", value="cXd")], partition_key="eXf")
        .SerializeToString()
        .replace(b"X", b"\xff")
    )
    entry = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1)
    row = read(Columns.of(None), [Message(TOPIC, MessageId(1, 1), entry, single, b"")])[0]
    assert row["__messageProperties"] == [("a\ufffdb", "c\ufffdd")]
    assert row["__key"] == b"e\xfff"


def test_rows_and_size() -> None:
    builder = Columns.of(None).for_reading(METADATA)
    assert (builder.rows, builder.size) == (0, 0)
    add_all(builder, [message(b"abc"), message(b"")])
    assert (builder.rows, builder.size) == (2, 3)
    assert builder.take().num_rows == 2
    assert (builder.rows, builder.size) == (0, 0)
    empty = builder.take()
    assert empty.num_rows == 0
    assert empty.schema.names == METADATA.names


def test_only_what_is_wanted() -> None:
    columns = Columns.of(Int32Schema().info)
    broken = message(b"no int", schema=columns.client_schema())
    wanted = StructType([StructField("__INDEX", LongType()), StructField("__topic", StringType())])
    assert read(columns, [broken], wanted) == [{"__INDEX": None, "__topic": TOPIC}], "order and names are as wanted"
    assert read(columns, [message(b"\0\0\0\5", schema=columns.client_schema())], StructType([columns.schema["value"]]))


def test_other_types_of_spark() -> None:
    wanted = StructType([StructField("value", StringType()), StructField("__key", StringType(), nullable=False)])
    columns = Columns.of(None)
    assert read(columns, [message("é".encode(), {"partition_key": "k"})], wanted) == [{"value": "é", "__key": "k"}]
    with pytest.raises(BadMessage, match=r"\(1,9,-1,-1\) of .*/t: column value"):
        read(columns, [message(b"x"), message(b"\xff", id=MessageId(1, 9))], StructType([wanted["value"]]))
    with pytest.raises(BadColumns, match="column __key has nulls"):
        read(columns, [message(b"x")], wanted)


def test_parts_of_a_struct() -> None:
    inner = record(("b", "int"), ("c", "string"), name="Inner")
    columns = Columns.of(JsonSchema(record(("a", inner))).info)
    wanted = StructType([StructField("a", StructType([StructField("c", StringType())]))])
    content = message(b'{"a":{"b":1,"c":"x"}}', schema=columns.client_schema())
    assert read(columns, [content], wanted) == [{"a": {"c": "x"}}]
    wanted = StructType([StructField("a", StructType([StructField("C", StringType())]))])
    with pytest.raises(BadColumns, match="column a of the topic has no C: it has b, c"):
        columns.for_reading(wanted)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (StructField("nobody", StringType()), "the topic has no column nobody: its columns are value, __key"),
        (StructField("__index", BinaryType()), "column __index of the topic is bigint, and cannot be read as binary"),
        (StructField("value", TimestampType()), "column value of the topic is binary, and cannot be read as timestamp"),
    ],
)
def test_an_unsupported_reader_schema_is_refused(wanted: StructField, reason: str) -> None:
    with pytest.raises(BadColumns, match=reason):
        Columns.of(None).for_reading(StructType([wanted]))


def test_written_with_an_older_schema() -> None:
    old = AvroSchema(record(("a", "int")))
    columns = Columns.of(AvroSchema(record(("a", "long"), ("b", "string", "none"))).info)
    versioned = message(old.encode({"a": 3}), schema=columns.client_schema())
    versioned._written_with(old.info)
    assert read(columns, [versioned], StructType(columns.schema.fields[:2])) == [{"a": 3, "b": "none"}]


AVRO = AvroSchema(record(("a", "int"), ("b", "string")))


@pytest.mark.parametrize("content", [b"", b"\x02", b"\x02\x02\xff"])
def test_a_value_that_is_no_record_fails_with_the_id_of_its_message(content: bytes) -> None:
    columns = Columns.of(AVRO.info)
    schema = columns.client_schema()
    good, bad = (
        message(AVRO.encode({"a": 1, "b": ""}), schema=schema),
        message(content, id=MessageId(8, 9, 0, 1, 5), schema=schema),
    )
    with pytest.raises(BadMessage, match=rf"message \(8,9,0,1\) of {TOPIC}: .*AvroSchema of R"):
        read(columns, [good, bad])


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (AVRO, AVRO.encode({"a": 1, "b": "x"}), b"\x02"),
        (JsonSchema(record(("a", "int"))), b'{"a": 1}', b'{"a": "one"}'),
        (StringSchema(), b"x", b"\xff"),
    ],
)
def test_a_message_that_does_not_fit_may_be_a_row(schema: Schema[Any], good: bytes, bad: bytes) -> None:
    columns = Columns.of(schema.info).with_undecodable()
    sent = [message(each, schema=columns.client_schema()) for each in (good, bad, None, good)]
    rows = read(columns, sent)
    assert [row["__undecodable"] for row in rows] == [None, bad, None, None]
    own = columns.schema.names[0]
    assert [row[own] is None for row in rows] == [False, True, True, False]
    assert rows[1]["__messageId"] == sent[1].message_id().serialize()


def test_messages_between_those_that_do_not_fit_keep_their_values() -> None:
    schema = JsonSchema(record(("a", "int"), ("b", "string")))
    columns = Columns.of(schema.info).with_undecodable()
    bad = {3: b"{", 4: b'{"a": "one"}', 11: b'{"a": 4294967296}', 19: b"[]"}
    contents = [bad.get(number, b'{"a": %d, "b": "x"}' % number) for number in range(20)]
    rows = read(columns, [message(each, schema=columns.client_schema()) for each in contents])
    assert {number: row["__undecodable"] for number, row in enumerate(rows) if row["__undecodable"] is not None} == bad
    assert [row["a"] for row in rows] == [None if number in bad else number for number in range(20)]
    assert [row["b"] for row in rows] == [None if number in bad else "x" for number in range(20)]


def test_a_message_that_does_not_fit_costs_no_second_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[Message[Any]] = []
    value = Message.value

    def watched(self: Message[Any]) -> Any:
        decoded.append(self)
        return value(self)

    monkeypatch.setattr(Message, "value", watched)
    schema = JsonSchema(record(("a", "int")))
    columns = Columns.of(schema.info).with_undecodable()
    contents = [b'{"a": 1}', b'{"a": 4294967296}', b"{", b'{"a": 2}']
    sent = [message(each, schema=columns.client_schema()) for each in contents]
    assert [row["a"] for row in read(columns, sent)] == [1, None, None, 2]
    assert decoded == sent


def test_bytes_that_do_not_fit_may_be_read_alone() -> None:
    columns = Columns.of(AVRO.info).with_undecodable()
    sent = [message(each, schema=columns.client_schema()) for each in (AVRO.encode({"a": 1, "b": "x"}), b"\x02")]
    wanted = StructType([columns.schema["__undecodable"]])
    assert read(columns, sent, wanted) == [{"__undecodable": None}, {"__undecodable": b"\x02"}]


def test_a_key_that_does_not_fit_its_column_is_an_error_all_the_same() -> None:
    columns = Columns.of(AVRO.info).with_undecodable()
    sent = message(b"", {"partition_key": b"\xff"}, schema=columns.client_schema())
    with pytest.raises(BadMessage, match="column __key"):
        read(columns, [sent], StructType().add("__key", "string"))


def test_a_schema_that_the_broker_does_not_tell_makes_no_row() -> None:
    columns = Columns.of(AVRO.info).with_undecodable()
    unknown = message(AVRO.encode({"a": 1, "b": "x"}), schema=columns.client_schema())
    unknown._written_with(Timeout("no answer"))
    with pytest.raises(BadMessage, match="the schema of the message is unknown"):
        read(columns, [unknown])


def test_numbers_that_do_not_fit() -> None:
    columns = Columns.of(AvroSchema(record(("a", "int"))).info)
    content = AvroSchema(record(("a", "long"))).encode({"a": 2**40})
    with pytest.raises(BadMessage, match=rf"\(1,2,-1,3\) of {TOPIC}: column a: "):
        read(columns, [message(content, schema=columns.client_schema())])


def test_a_message_id_may_be_read_as_a_struct() -> None:
    columns = Columns.of(None)
    wanted = StructType().add("__messageId", MESSAGE_ID_PARTS)
    (row,) = read(columns, [message(b"", id=MessageId(5, 6, 1, 2, 4))], wanted)
    assert row["__messageId"] == {"ledgerId": 5, "entryId": 6, "partition": 1, "batchIndex": 2}
    with pytest.raises(BadColumns, match="column __messageId of the topic has no ledger: it has ledgerId, entryId"):
        columns.for_reading(StructType().add("__messageId", StructType().add("ledger", "long")))


@pytest.mark.parametrize("kind", ["string", ["string", "null"], {"type": "map", "values": "int"}])
def test_a_field_that_the_writer_lacks_is_null(kind: Any) -> None:
    columns = Columns.of(AvroSchema(record(("a", "int"), ("b", kind))).info)
    older = AvroSchema(record(("a", "int")))
    written = message(older.encode({"a": 1}), schema=columns.client_schema())
    written._written_with(older.info)
    (row,) = read(columns, [written])
    assert (row["a"], row["b"]) == (1, None)


def test_a_record_without_a_field_in_common_is_refused() -> None:
    columns = Columns.of(AvroSchema(record(("a", "int"))).info)
    other = AvroSchema(record(("b", "int")))
    written = message(other.encode({"b": 1}), schema=columns.client_schema())
    written._written_with(other.info)
    with pytest.raises(BadMessage, match="No default value for field a"):
        read(columns, [written])


@pytest.mark.parametrize("field", [{"type": "int"}, "a", {"name": ["a"], "type": "int"}])
def test_a_broken_definition_of_the_writer_names_the_message(field: Any) -> None:
    columns = Columns.of(AvroSchema(record(("a", "int"))).info)
    written = message(b"\x02", schema=columns.client_schema())
    data = json.dumps({"type": "record", "name": "R", "fields": [field]}).encode()
    written._written_with(SchemaInfo(pb.Schema.Avro, data))
    with pytest.raises(BadMessage, match=r"message .* of "):
        read(columns, [written])


def test_writers_that_nobody_knows() -> None:
    columns = Columns.of(AVRO.info)
    lost = message(AVRO.encode({"a": 1, "b": ""}), schema=columns.client_schema())
    lost._written_with(SchemaInfo(pb.Schema.Avro, b"nonsense"))
    with pytest.raises(BadMessage, match=TOPIC):
        read(columns, [lost])


def test_strings_that_are_none() -> None:
    columns = Columns.of(StringSchema().info)
    with pytest.raises(BadMessage, match=TOPIC):
        read(columns, [message(b"\xff", schema=columns.client_schema())])


# ---- JSON, which Pulsar does not check against its definition


def json_value(kind: Any, value: Any) -> Any:
    columns = Columns.of(JsonSchema(record(("a", kind))).info)
    content = json.dumps({"a": value, "unknown": 1}).encode()
    (row,) = read(columns, [message(content, schema=columns.client_schema())], StructType([columns.schema["a"]]))
    return row["a"]


MOMENT = datetime(2024, 1, 2, 3, 4, 5, 600000, UTC)
MILLIS = int(MOMENT.timestamp() * 1000)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 3.0, 3),
        ("long", -5, -5),
        ("double", 3, 3.0),
        ("double", "Infinity", float("inf")),
        ("string", {"a": 1}, '{"a":1}'),
        ("string", 3, "3"),
        ("bytes", "/w==", b"\xff"),
        (logical("int", "date"), 1, datetime(1970, 1, 2).date()),  # noqa: DTZ001
        (logical("int", "date"), [2024, 1, 2], MOMENT.date()),
        (logical("int", "date"), "2024-01-02", MOMENT.date()),
        (logical("int", "time-millis"), 3_600_000, MOMENT.time().replace(1, 0, 0, 0)),
        (logical("long", "time-micros"), [3, 4], MOMENT.time().replace(second=0, microsecond=0)),
        (logical("long", "time-micros"), [3, 4, 5, 600_000_000], MOMENT.time()),
        (logical("long", "time-micros"), "03:04:05.6", MOMENT.time()),
        (logical("long", "timestamp-millis"), MILLIS, MOMENT),
        (logical("long", "timestamp-micros"), MILLIS * 1000, MOMENT),
        (logical("long", "timestamp-millis"), MILLIS / 1000, MOMENT),
        (logical("long", "timestamp-millis"), "2024-01-02T04:04:05.6+01:00", MOMENT),
        (logical("long", "local-timestamp-millis"), MILLIS, MOMENT.replace(tzinfo=None)),
        (logical("long", "local-timestamp-micros"), [2024, 1, 2, 3, 4, 5, 600_000_000], MOMENT.replace(tzinfo=None)),
        (logical("long", "local-timestamp-micros"), "2024-01-02T03:04:05.6", MOMENT.replace(tzinfo=None)),
        (logical("bytes", "decimal", precision=4, scale=2), 1.5, Decimal("1.50")),
        (logical("bytes", "decimal", precision=4, scale=2), "1.25", Decimal("1.25")),
        (["int", "string", {"type": "array", "items": "int"}], "x", {"member0": None, "member1": "x", "member2": None}),
        (["string", "double"], 3, {"member0": None, "member1": 3.0}),
        (["double", "long"], 3, {"member0": None, "member1": 3}),
        (["null", "int"], None, None),
        ("int", None, None),
    ],
)
def test_json_is_read_into_columns(kind: Any, value: Any, expected: Any) -> None:
    assert json_value(kind, value) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", 1.5),
        ("int", "1"),
        ("int", True),
        ("int", 2**31),
        ("long", 2**63),
        ("double", "x"),
        ("boolean", 1),
        ("bytes", "no base64"),
        ("bytes", 3),
        (logical("int", "date"), 10**9),
        (logical("int", "date"), "yesterday"),
        (logical("int", "time-millis"), 86_400_000),
        (logical("long", "timestamp-millis"), 10**18),
        (logical("long", "timestamp-millis"), 1e300),
        (logical("long", "timestamp-millis"), {}),
        (logical("bytes", "decimal", precision=4, scale=2), "1.255"),
        (logical("bytes", "decimal", precision=4, scale=2), "NaN"),
        (logical("bytes", "decimal", precision=4, scale=2), 1000),
        ({"type": "array", "items": "int"}, "abc"),
        ({"type": "map", "values": "int"}, [1]),
        (record(("b", "int"), name="Inner"), 3),
        (["int", "boolean"], "x"),
    ],
)
def test_json_that_does_not_fit(kind: Any, value: Any) -> None:
    with pytest.raises(BadMessage, match=rf"\(1,2,-1,3\) of {TOPIC}: column a: "):
        json_value(kind, value)


def test_missing_fields_are_null() -> None:
    columns = Columns.of(JsonSchema(record(("a", "int"), ("b", "string"))).info)
    schema = columns.client_schema()
    rows = read(columns, [message(b"{}", schema=schema), message(b'{"b":"x"}', schema=schema)])
    assert [(row["a"], row["b"]) for row in rows] == [(None, None), (None, "x")]


def test_integers_keep_their_type() -> None:
    columns = Columns.of(JsonSchema(record(("a", "int"))).info)
    assert columns.schema["a"].dataType == IntegerType()
