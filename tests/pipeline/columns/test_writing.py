"""Writing of rows as messages. Serialize many message ids as `MessageId.serialize` does."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pulsarium.client import (
    AvroSchema,
    DoubleSchema,
    InstantSchema,
    Int8Schema,
    Int64Schema,
    JsonSchema,
    MessageId,
    Schema,
    StringSchema,
)
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.kinds import BadColumns, BadRow
from pulsarium.pipeline.columns.metadata import serialized
from tests.pipeline.columns.messages import logical, message, record
from tests.pipeline.columns.writing import Made, struct, write


def value_of(schema: Schema[Any], kind: DataType, value: Any) -> Any:
    (made,) = write(schema, struct(a=kind), {"a": value})
    return made.value["a"]


def test_all_of_a_message() -> None:
    given = struct(
        __KEY=StringType(),
        value=StringType(),
        __topic=StringType(),
        __eventTime=TimestampType(),
        __messageProperties=MapType(StringType(), StringType()),
    )
    moment = datetime(2024, 1, 2, 3, 4, 5, 678999, UTC)
    full = {
        "__KEY": "k",
        "value": "é",
        "__topic": "t",
        "__eventTime": moment,
        "__messageProperties": [("a", "b"), ("c", "d")],
    }
    first, second = write(None, given, full, {})
    assert first == Made("é".encode(), "k", int(moment.timestamp() * 1000), {"a": "b", "c": "d"})
    assert second == Made(None)


def test_no_more_than_a_value() -> None:
    (made,) = write(None, struct(VALUE=BinaryType()), {"VALUE": b""})
    assert made == Made(b"")


def test_keys_in_bytes_are_text_where_they_can_be() -> None:
    made = write(
        None, struct(value=BinaryType(), __key=BinaryType()), *({"__key": key} for key in (b"k", b"\xff", b""))
    )
    assert [each.key for each in made] == ["k", b"\xff", ""]


def test_no_event_time_before_the_epoch() -> None:
    times = [
        datetime(1969, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    ]
    made = write(
        None, struct(value=BinaryType(), __eventTime=TimestampType()), *({"__eventTime": each} for each in times)
    )
    assert [each.event_time for each in made] == [None, None, 1000]


def test_an_event_time_in_milliseconds() -> None:
    columns = struct(value=BinaryType(), __eventTime=LongType())
    made = write(None, columns, *({"__eventTime": each} for each in (1_700_000_000_123, -1, None)))
    assert [each.event_time for each in made] == [1_700_000_000_123, None, None]


@pytest.mark.parametrize("schema", [AvroSchema, JsonSchema])
def test_the_bytes_of_a_record_are_sent_as_they_are(schema: type[AvroSchema[Any] | JsonSchema[Any]]) -> None:
    info = schema({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}).info
    columns = struct(VALUE=BinaryType(), __key=StringType())
    rows = pa.RecordBatch.from_pylist([{"VALUE": b"\x02"}, {"VALUE": None}], schema=to_arrow_schema(columns))
    made = Columns.of(info).for_writing(columns).messages(rows)
    assert [made.content(0), made.content(1)] == [b"\x02", None]


def test_columns_of_nothing() -> None:
    given = struct(value=NullType(), __key=NullType(), __topic=NullType(), __eventTime=NullType())
    assert write(StringSchema(), given, {}) == [Made(None)]


def test_read_only_columns_are_left_out() -> None:
    given = struct(value=BinaryType(), __messageId=BinaryType(), __publishTime=TimestampType(), __index=LongType())
    assert write(None, given, {"value": b"x", "__index": 5}) == [Made(b"x")]


def test_a_property_is_a_text() -> None:
    given = struct(value=BinaryType(), __messageProperties=MapType(StringType(), StringType()))
    with pytest.raises(BadRow, match="the property a is null"):
        write(None, given, {"__messageProperties": [("a", None)]})


@pytest.mark.parametrize(
    ("schema", "given", "reason"),
    [
        (None, struct(a=BinaryType()), "values are binary, in the column value: it has no column a"),
        (None, struct(value=BinaryType(), a=LongType()), "in the column value: it has no column a"),
        (None, struct(__key=BinaryType()), "column value is missing: the topic's schema has values of binary"),
        (None, struct(value=LongType()), "column value is bigint, but the topic's schema has binary"),
        (StringSchema(), struct(value=BinaryType()), "column value is binary, but the topic's schema has string"),
        (Int8Schema(), struct(value=ShortType()), "column value is smallint, but the topic's schema has tinyint"),
        (InstantSchema(), struct(value=TimestampNTZType()), "column value is timestamp_ntz"),
        (None, struct(value=BinaryType(), VALUE=BinaryType()), "the DataFrame has 'value' and 'VALUE'"),
        (
            None,
            struct(value=BinaryType(), __offset=LongType()),
            "column __offset is unknown: metadata columns of a message are __key, __topic, __eventTime",
        ),
        (None, struct(value=BinaryType(), __key=LongType()), "column __key must be binary or string, not bigint"),
        (None, struct(value=BinaryType(), __topic=BinaryType()), "column __topic must be string, not binary"),
        (
            None,
            struct(value=BinaryType(), __eventTime=StringType()),
            "column __eventTime must be timestamp or long, not string",
        ),
        (
            None,
            struct(value=BinaryType(), __messageProperties=MapType(StringType(), LongType())),
            "column __messageProperties must be map<string,string>, not map<string,bigint>",
        ),
        (
            None,
            struct(value=BinaryType(), __messageProperties=StringType()),
            "column __messageProperties must be map<string,string>, not string",
        ),
    ],
)
def test_columns_that_do_not_fit(schema: Schema[Any] | None, given: StructType, reason: str) -> None:
    with pytest.raises(BadColumns, match=reason):
        Columns.of(None if schema is None else schema.info).for_writing(given)


@pytest.mark.parametrize("kind", [LongType(), IntegerType(), ShortType(), ByteType()])
def test_narrower_numbers_become_the_number_of_the_schema(kind: DataType) -> None:
    (made,) = write(Int64Schema(), struct(value=kind), {"value": 5})
    assert made.value == 5


def test_floats_of_whole_numbers() -> None:
    (made,) = write(DoubleSchema(), struct(value=IntegerType()), {"value": 5})
    assert DoubleSchema().encode(made.value) == DoubleSchema().encode(5.0)


# ---- records

FORMS = pytest.mark.parametrize("form", [AvroSchema, JsonSchema])
NESTED = record(
    ("a", "long"),
    ("b", ["null", "string"], None),
    ("c", ["null", {"type": "array", "items": record(("x", "int"), ("y", ["null", "int"]), name="Item")}]),
)


@FORMS
def test_columns_are_written_as_records(form: type[AvroSchema[Any]]) -> None:
    given = struct(A=ShortType(), __key=StringType(), c=ArrayType(struct(X=ByteType())), B=StringType())
    rows: list[Any] = [{"A": 3, "B": "x", "c": [{"X": 1}, {"X": 2}], "__key": "k"}, {"A": 4}, {"__key": "gone"}]
    made = write(form(NESTED), given, *rows)
    assert made[0].value == {"a": 3, "b": "x", "c": [{"x": 1, "y": None}, {"x": 2, "y": None}]}
    assert [each.value for each in made[1:]] == [{"a": 4, "b": None, "c": None}, None]
    assert [each.key for each in made] == ["k", None, "gone"]
    for each in made[:2]:
        form(NESTED).encode(each.value)


@FORMS
def test_a_struct_as_the_value(form: type[AvroSchema[Any]]) -> None:
    schema = form(record(("a", ["null", "int"]), ("b", ["null", "int"])))
    given = struct(value=struct(a=IntegerType(), b=IntegerType()))
    rows: list[Any] = [{"value": {"a": 1, "b": 2}}, {"value": {"a": None, "b": None}}, {"value": None}]
    expected = [{"a": 1, "b": 2}, {"a": None, "b": None}, None]
    assert [each.value for each in write(schema, given, *rows)] == expected


@FORMS
def test_a_field_called_value(form: type[AvroSchema[Any]]) -> None:
    schema = form(record(("value", record(("a", "int"), name="Inner"))))
    (made,) = write(schema, struct(value=struct(a=IntegerType())), {"value": {"a": 1}})
    assert made.value == {"value": {"a": 1}}


@FORMS
def test_no_column_but_a_key(form: type[AvroSchema[Any]]) -> None:
    """A row without value columns deletes its key, as a row with all columns null does."""
    schema = form(record(("a", ["null", "int"], None)))
    made = write(schema, struct(__key=StringType()), {"__key": "x"}, {"__key": "y"})
    assert [(one.key, one.value) for one in made] == [("x", None), ("y", None)]


@FORMS
def test_fields_with_a_default_need_no_column(form: type[AvroSchema[Any]]) -> None:
    schema = form(record(("a", "int"), ("b", "string", "none"), ("c", ["null", "int"])))
    (made,) = write(schema, struct(a=IntegerType()), {"a": 1})
    assert made.value == {"a": 1, "c": None}
    if form is AvroSchema:
        assert schema.decode(schema.encode(made.value)) == {"a": 1, "b": "none", "c": None}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (struct(b=StringType()), "column a is missing: the topic's schema has this field as bigint"),
        (
            struct(a=LongType(), d=LongType()),
            "the DataFrame has d, which the topic's schema does not have: its fields are a, b, c",
        ),
        (struct(a=StringType()), r"column a is string, but the topic's schema has bigint \(long\)"),
        (struct(a=DoubleType()), "column a is double"),
        (struct(a=LongType(), c=StringType()), "column c is string, but the topic's schema has array"),
        (struct(a=LongType(), c=ArrayType(LongType())), r"column c\[\] is bigint, but .* struct<x:int,y:int>"),
        (struct(a=LongType(), c=ArrayType(struct(y=IntegerType()))), r"column c\[\]\.x is missing"),
        (struct(a=LongType(), c=ArrayType(struct(x=LongType()))), r"column c\[\]\.x is bigint, but .* int \(int\)"),
        (struct(a=LongType(), c=ArrayType(struct(x=ByteType(), z=ByteType()))), r"column c\[\] has z, which"),
        (
            struct(a=LongType(), __index2=LongType()),
            "column __index2 is unknown: metadata columns of a message are __key",
        ),
        (struct(value=ByteType()), "column a is missing"),
    ],
)
@FORMS
def test_records_that_do_not_fit(form: type[AvroSchema[Any]], given: StructType, reason: str) -> None:
    with pytest.raises(BadColumns, match=reason):
        Columns.of(form(NESTED).info).for_writing(given)


@FORMS
def test_nulls_where_there_are_none(form: type[AvroSchema[Any]]) -> None:
    given = struct(a=LongType(), b=StringType(), c=ArrayType(struct(x=IntegerType())))
    with pytest.raises(BadRow, match="column a is null"):
        write(form(NESTED), given, {"b": "x"})
    with pytest.raises(BadRow, match=r"column c\[\] is null"):
        write(form(NESTED), given, {"a": 1, "c": [None]})
    with pytest.raises(BadRow, match=r"column c\[\]\.x is null"):
        write(form(NESTED), given, {"a": 1, "c": [{"x": None}]})


@FORMS
def test_enums_and_fixed(form: type[AvroSchema[Any]]) -> None:
    enum = form(record(("a", {"type": "enum", "name": "E", "symbols": ["RED"]})))
    assert value_of(enum, StringType(), "RED") == "RED"
    with pytest.raises(BadRow, match="column a: not a symbol of the enum"):
        value_of(enum, StringType(), "BLUE")
    fixed = form(record(("a", {"type": "fixed", "name": "F", "size": 2})))
    assert value_of(fixed, BinaryType(), b"\xff\xff") == (b"\xff\xff" if form is AvroSchema else "//8=")
    with pytest.raises(BadRow, match="column a: not 2 bytes"):
        value_of(fixed, BinaryType(), b"\xff")


@FORMS
def test_a_decimal_is_written_if_its_scale_and_precision_fit(form: type[AvroSchema[Any]]) -> None:
    schema = form(record(("a", logical("bytes", "decimal", precision=6, scale=3))))
    found = value_of(schema, DecimalType(5, 2), Decimal("-1.20"))
    assert found == (Decimal("-1.20") if form is AvroSchema else "-1.20")
    for wrong in (DecimalType(6, 2), DecimalType(6, 4), DoubleType()):
        with pytest.raises(BadColumns, match="column a is"):
            Columns.of(schema.info).for_writing(struct(a=wrong))


@FORMS
def test_the_member_that_is_set_chooses_the_branch_of_a_union(form: type[AvroSchema[Any]]) -> None:
    branches = ["null", "string", record(("x", "int"), name="One"), record(("x", "int"), name="Two")]
    schema = form(record(("a", branches), ("b", "int")))
    members = struct(member0=StringType(), member1=struct(x=IntegerType()), member2=struct(x=IntegerType()))
    given = struct(a=members, b=IntegerType())
    choices: list[Any] = [{"member0": "s"}, {"member1": {"x": 1}}, {"member2": {"x": 2}}, {}, None]
    made = write(schema, given, *({"a": each, "b": 0} for each in choices))
    found = [schema.decode(schema.encode(each.value))["a"] for each in made]
    assert found == ["s", {"x": 1}, {"x": 2}, None, None]
    if form is AvroSchema:
        assert [schema.encode(each.value)[0] >> 1 for each in made] == [1, 2, 3, 0, 0], "the branch that was set"
    with pytest.raises(BadRow, match="column a: 2 members of a union are set"):
        write(schema, given, {"a": {"member0": "s", "member1": {"x": 1}}, "b": 0})
    with pytest.raises(BadColumns, match="column a has member3"):
        Columns.of(schema.info).for_writing(struct(a=struct(member3=StringType()), b=IntegerType()))


@FORMS
def test_a_union_needs_a_member(form: type[AvroSchema[Any]]) -> None:
    schema = form(record(("a", ["string", "int"])))
    with pytest.raises(BadRow, match="column a: 0 members"):
        value_of(schema, struct(member0=StringType(), member1=IntegerType()), {})


def test_floats_in_json() -> None:
    schema = JsonSchema(record(("a", "float")))
    values = [value_of(schema, FloatType(), each) for each in (1.5, float("nan"), float("inf"), -float("inf"))]
    assert values == [1.5, "NaN", "Infinity", "-Infinity"]
    assert value_of(schema, ByteType(), 3) == 3.0


def test_days_in_json() -> None:
    schema = JsonSchema(record(("a", logical("int", "date"))))
    assert value_of(schema, DateType(), datetime(1969, 12, 31, tzinfo=UTC).date()) == -1


numbers = st.integers(0, 300) | st.integers(-1, 2**63 - 1)
small = st.integers(-1, 200) | st.integers(-1, 2**31 - 1)
sizes = st.integers(0, 2**20)


@st.composite
def ids(draw: st.DrawFn) -> MessageId:
    first = MessageId(draw(numbers), draw(numbers)) if draw(st.integers(0, 5)) == 0 else None
    return MessageId(draw(numbers), draw(numbers), draw(small), draw(small), draw(sizes), first)


@given(st.lists(ids(), max_size=4))
def test_ids_are_serialized_as_the_client_does(found: list[MessageId]) -> None:
    # Adjacent ids of one entry, because these share a part that is computed only once.
    found = [other for each in found for other in (each, MessageId(each.ledger_id, each.entry_id, each.partition, 5))]
    assert serialized([message(b"", id=each) for each in found]) == [each.serialize() for each in found]
