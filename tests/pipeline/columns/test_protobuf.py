"""Protobuf messages as columns, and rows as Protobuf messages."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructType

from pulsarium.client import ProtobufNativeSchema
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.kinds import BadColumns, BadMessage, BadRow
from pulsarium.pipeline.columns.names import METADATA
from tests.pipeline.columns.messages import ID, TOPIC, add_all, message
from tests.pipeline.columns.writing import messages

F = FieldDescriptorProto
ONE, MANY, NEEDED = F.LABEL_OPTIONAL, F.LABEL_REPEATED, F.LABEL_REQUIRED


def a_file() -> FileDescriptorProto:
    file = FileDescriptorProto(
        name="order.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    state = file.enum_type.add(name="State")
    state.options.allow_alias = True
    for name, number in (("NEW", 0), ("PAID", 1), ("SETTLED", 1)):
        state.value.add(name=name, number=number)
    line = file.message_type.add(name="Line")
    line.field.add(name="item", number=1, type=F.TYPE_STRING, label=ONE)
    line.field.add(name="count", number=2, type=F.TYPE_UINT32, label=ONE)
    order = file.message_type.add(name="Order")
    order.oneof_decl.add(name="payment")
    order.oneof_decl.add(name="_note")
    simple: list[tuple[str, Any]] = [
        ("id", F.TYPE_INT64),
        ("small", F.TYPE_SINT32),
        ("huge", F.TYPE_UINT64),
        ("real", F.TYPE_FLOAT),
        ("exact", F.TYPE_DOUBLE),
        ("is_new", F.TYPE_BOOL),
        ("name", F.TYPE_STRING),
        ("data", F.TYPE_BYTES),
    ]
    for number, (name, kind) in enumerate(simple, 1):
        order.field.add(name=name, number=number, type=kind, label=ONE)
    order.field.add(name="state", number=11, type=F.TYPE_ENUM, type_name=".shop.State", label=ONE)
    order.field.add(name="lines", number=12, type=F.TYPE_MESSAGE, type_name=".shop.Line", label=MANY)
    order.field.add(name="first", number=13, type=F.TYPE_MESSAGE, type_name=".shop.Line", label=ONE)
    order.field.add(name="tags", number=14, type=F.TYPE_STRING, label=MANY)
    order.field.add(name="at", number=15, type=F.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=ONE)
    order.field.add(name="card", number=16, type=F.TYPE_STRING, label=ONE, oneof_index=0)
    order.field.add(name="cash", number=17, type=F.TYPE_INT32, label=ONE, oneof_index=0)
    order.field.add(name="note", number=18, type=F.TYPE_STRING, label=ONE, oneof_index=1, proto3_optional=True)
    _map(order, "by_number", 19, F.TYPE_INT32, F.TYPE_MESSAGE, ".shop.Line")
    _map(order, "states", 20, F.TYPE_STRING, F.TYPE_ENUM, ".shop.State")
    return file


def _map(around: DescriptorProto, name: str, number: int, key: Any, value: Any, of: str) -> None:
    entry = around.nested_type.add(name="".join(part.title() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=key, label=ONE)
    entry.field.add(name="value", number=2, type=value, type_name=of, label=ONE)
    around.field.add(name=name, number=number, type=F.TYPE_MESSAGE, type_name=f".shop.Order.{entry.name}", label=MANY)


def class_of(file: FileDescriptorProto, name: str) -> Any:
    pool = DescriptorPool()
    needed = FileDescriptorProto()
    Timestamp.DESCRIPTOR.file.CopyToProto(needed)
    pool.Add(needed)
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name))


ORDER = class_of(a_file(), "shop.Order")
SCHEMA = ProtobufNativeSchema(ORDER)
COLUMNS = Columns.of(SCHEMA.info)
FULL = {
    "id": -(2**63),
    "small": -1,
    "huge": Decimal(2**64 - 1),
    "real": 1.5,
    "exact": 0.1,
    "is_new": True,
    "name": "é",
    "data": b"\xff",
    "state": "PAID",
    "lines": [{"item": "pear", "count": 2**32 - 1}, {"item": "", "count": 0}],
    "first": {"item": "", "count": 0},
    "tags": ["a", "b"],
    "at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
    "card": None,
    "cash": 0,
    "note": "",
    "by_number": [(7, {"item": "x", "count": 1})],
    "states": [("a", "PAID"), ("b", "9")],
}


def full() -> Any:
    made = ORDER(
        id=-(2**63), small=-1, huge=2**64 - 1, real=1.5, exact=0.1, is_new=True, name="é", data=b"\xff", state=1
    )
    made.lines.add(item="pear", count=2**32 - 1)
    made.lines.add()
    made.first.SetInParent()
    made.tags.extend(["a", "b"])
    made.at.FromDatetime(FULL["at"])
    made.cash, made.note = 0, ""
    made.by_number[7].item, made.by_number[7].count = "x", 1
    made.states["a"], made.states["b"] = 1, 9
    return made


def read(*contents: bytes | None) -> pa.RecordBatch:
    schema = COLUMNS.client_schema()
    return add_all(COLUMNS.for_reading(COLUMNS.schema), [message(each, schema=schema) for each in contents]).take()


def values(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [{name: row[name] for name in FULL} for row in batch.to_pylist()]


def test_the_fields_of_a_message_are_columns() -> None:
    assert COLUMNS.schema.names == [*FULL, *METADATA.names]
    assert COLUMNS.schema["huge"].dataType.simpleString() == "decimal(20,0)"
    assert COLUMNS.schema["by_number"].dataType.simpleString() == "map<int,struct<item:string,count:bigint>>"
    assert COLUMNS.schema["at"].dataType.simpleString() == "timestamp"


def test_a_message_becomes_a_row_and_the_same_message_again() -> None:
    batch = read(full().SerializeToString(), b"", None)
    assert values(batch)[0] == FULL
    back = COLUMNS.for_writing(COLUMNS.schema).messages(batch)
    assert ORDER.FromString(back.content(0) or b"") == full()
    assert [back.content(1), back.content(2)] == [b"", None]


def test_only_a_field_that_may_be_absent_is_null() -> None:
    empty, nothing = values(read(b"", None))
    assert {name for name, value in empty.items() if value is None} == {"first", "at", "card", "cash", "note"}
    assert (empty["id"], empty["state"], empty["lines"], empty["states"]) == (0, "NEW", [], [])
    assert set(nothing.values()) == {None}


def test_a_number_with_several_names_is_read_as_the_first() -> None:
    given = StructType().add("state", StringType())
    batch = pa.RecordBatch.from_pylist([{"state": "SETTLED"}], schema=to_arrow_schema(given))
    assert values(read(COLUMNS.for_writing(given).messages(batch).content(0)))[0]["state"] == "PAID"


def test_columns_that_are_missing_leave_their_fields_at_the_default() -> None:
    given = StructType().add("name", StringType())
    batch = pa.RecordBatch.from_pylist([{"name": "Ada"}], schema=to_arrow_schema(given))
    (made,) = messages(COLUMNS.for_writing(given), batch)
    assert made.value["name"] == "Ada"
    assert COLUMNS.for_writing(given).messages(batch).content(0) == ORDER(name="Ada").SerializeToString()


def test_a_binary_value_is_sent_as_it_is() -> None:
    given = StructType().add("value", BinaryType())
    batch = pa.RecordBatch.from_pylist([{"value": b"\x08\x01"}], schema=to_arrow_schema(given))
    assert COLUMNS.for_writing(given).messages(batch).content(0) == b"\x08\x01"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"card": "1", "cash": 1}, "several fields of the oneof payment are set: set at most one"),
        ({"state": "LOST"}, "'LOST' is no value of the enum shop.State"),
        ({"huge": Decimal(-1)}, "out of range"),
        ({"tags": [None]}, r"column tags\[\] is null"),
    ],
)
def test_a_row_that_is_no_message_is_refused(change: dict[str, Any], match: str) -> None:
    batch = pa.RecordBatch.from_pylist(
        [FULL, FULL | change], schema=to_arrow_schema(StructType(COLUMNS.schema.fields[: len(FULL)]), timezone="UTC")
    )
    writer = COLUMNS.for_writing(StructType(COLUMNS.schema.fields[: len(FULL)]))
    with pytest.raises(BadRow, match=match) as raised:
        writer.messages(batch)
    assert raised.value.row == 1


def test_a_field_that_a_message_requires_needs_a_column() -> None:
    file = FileDescriptorProto(name="old.proto", syntax="proto2")
    file.message_type.add(name="Old").field.add(name="id", number=1, type=F.TYPE_INT32, label=NEEDED)
    columns = Columns.of(ProtobufNativeSchema(class_of(file, "Old")).info)
    with pytest.raises(BadColumns, match="column id is missing"):
        columns.for_writing(StructType())


def test_bytes_that_are_no_message_are_named() -> None:
    with pytest.raises(BadMessage, match=re.escape(f"message {ID} of {TOPIC}: shop.Order: ")):
        read(b"\xff")


def test_a_message_that_contains_itself_is_bytes() -> None:
    assert Columns.of(ProtobufNativeSchema(Struct).info).schema.names == ["value", *METADATA.names]


@pytest.mark.parametrize(("levels", "fields"), [(101, 1), (14, 2)])
def test_a_message_with_too_many_levels_or_fields_is_bytes(levels: int, fields: int) -> None:
    """A short definition has 2 ** 13 messages, each within another."""
    file = FileDescriptorProto(name="deep.proto", syntax="proto3")
    for level in range(levels):
        made = file.message_type.add(name=f"M{level}")
        for number in range(fields if level < levels - 1 else 0):
            made.field.add(
                name=f"f{number}", number=number + 1, type=F.TYPE_MESSAGE, type_name=f".M{level + 1}", label=ONE
            )
    assert Columns.of(ProtobufNativeSchema(class_of(file, "M0")).info).schema.names == ["value", *METADATA.names]


def text_message(name: str) -> Columns:
    """Return the columns of a message with one field, which may be absent."""
    file = FileDescriptorProto(name="text.proto", syntax="proto3")
    made = file.message_type.add(name="Text")
    made.oneof_decl.add(name="_one")
    made.field.add(name=name, number=1, type=F.TYPE_BYTES, label=ONE, oneof_index=0, proto3_optional=True)
    return Columns.of(ProtobufNativeSchema(class_of(file, "Text")).info)


@pytest.mark.parametrize("name", ["value", "DESCRIPTOR", "HasField", "SerializeToString", "WhichOneof"])
def test_a_field_may_have_any_name(name: str) -> None:
    columns = text_message(name)
    sent = b"\n\x01x"
    builder = columns.for_reading(StructType([columns.schema[name]]))
    batch = add_all(builder, [message(sent, schema=columns.client_schema())]).take()
    assert batch.to_pylist() == [{name: b"x"}]
    assert columns.for_writing(StructType([columns.schema[name]])).messages(batch).content(0) == sent


def test_a_timestamp_of_another_form_is_bytes() -> None:
    file = FileDescriptorProto(name="mine.proto", package="google.protobuf", syntax="proto3")
    file.message_type.add(name="Timestamp").field.add(name="at", number=1, type=F.TYPE_STRING, label=ONE)
    around = file.message_type.add(name="Around")
    around.field.add(name="at", number=1, type=F.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=ONE)
    pool = DescriptorPool()
    pool.Add(file)
    made = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.Around"))
    assert Columns.of(ProtobufNativeSchema(made).info).schema.names == ["value", *METADATA.names]
