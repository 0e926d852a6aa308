"""The form of a message: shapes and examples of schemas."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, struct_pb2, timestamp_pb2

from pulsarium.broker.model.schema.data import SchemaData, split
from pulsarium.broker.web.console.form import MOST_SHAPES, form_of, shape_of
from pulsarium.proto.json_values import encode_json
from tests.broker.web.admin.rest import TOPICS, Rest
from tests.broker.web.console.schemas import ORDER, PERSON, avro, json_schema, native, pair
from tests.broker.wire import Wire

URL = "/pulsarium/form/persistent/public/default/t"
NOW_MS = 1_800_000_000_000
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "left", "type": ["null", "Tree"]},
        {"name": "others", "type": {"type": "array", "items": "Tree"}},
    ],
}
ALL = {
    "type": "record",
    "name": "All",
    "namespace": "n",
    "fields": [
        *(
            {"name": f"a_{kind}", "type": kind}
            for kind in ("int", "long", "float", "double", "boolean", "bytes", "null")
        ),
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "again", "type": "Hash"},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "some", "type": ["null", "int", "string"]},
        {"name": "tree", "type": TREE},
    ],
}


def encode(schema: SchemaData, value: Any) -> bytes:
    return encode_json(schema.type, schema.data, value)


def all_of_protobuf() -> SchemaData:
    """Return the schema of a message with a field of each kind."""
    file = descriptor_pb2.FileDescriptorProto(name="all.proto", syntax="proto3")
    file.dependency.extend(("google/protobuf/timestamp.proto", "google/protobuf/struct.proto"))
    file.enum_type.add(name="Color").value.add(name="RED", number=0)
    message = file.message_type.add(name="All")
    entry = message.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    for number, (name, kind) in enumerate((("key", 9), ("value", 5)), 1):
        entry.field.add(name=name, number=number, type=kind, label=1)
    for number, kind in enumerate((1, 2, 3, 4, 5, 8, 9, 12, 13, 14, 11, 11), 1):
        field = message.field.add(name=f"f{number}", number=number, type=kind, label=1)
        if number in (10, 11, 12):
            field.type_name = {10: ".Color", 11: ".google.protobuf.Timestamp", 12: ".google.protobuf.Struct"}[number]
    message.field.add(name="counts", number=20, type=11, label=3, type_name=".All.CountsEntry")
    message.field.add(name="names", number=21, type=9, label=3)
    files = [file]
    for imported in (timestamp_pb2, struct_pb2):
        files.append(descriptor_pb2.FileDescriptorProto())
        imported.DESCRIPTOR.CopyToProto(files[-1])
    encoded = descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
    told = {"fileDescriptorSet": base64.b64encode(encoded).decode(), "rootMessageTypeName": "All"}
    return SchemaData("PROTOBUF_NATIVE", json.dumps(told).encode())


async def test_the_form_has_the_fields_of_the_newest_schema(rest: Rest, wire: Wire) -> None:
    await wire.producer(schema=avro(ORDER).to_proto("s"))
    form = await rest.get(URL)
    assert (form["type"], form["version"], form["value"]["kind"], form["value"]["name"]) == (
        "AVRO",
        0,
        "record",
        "shop.Order",
    )
    shapes = {each["name"]: each["shape"] for each in form["value"]["fields"]}
    assert shapes["state"] == {"kind": "enum", "name": "shop.State", "symbols": ["NEW", "PAID"]}
    assert shapes["note"] == {"kind": "union", "branches": [{"kind": "null"}, {"kind": "string"}]}
    assert shapes["customer"]["fields"][1]["shape"] == {"kind": "array", "items": {"kind": "string"}}
    assert form["example"] == {"id": 0, "customer": {"name": "text", "tags": ["text"]}, "state": "NEW", "note": None}


async def test_a_topic_without_a_schema_takes_bytes(rest: Rest) -> None:
    await rest.done("PUT", f"{TOPICS}/t")
    assert await rest.get(URL) == {"type": "BYTES", "version": None, "value": {"kind": "bytes"}, "example": ""}


@pytest.mark.parametrize(
    "schema",
    [
        avro(ORDER),
        avro(PERSON),
        avro(TREE),
        avro(ALL),
        json_schema(ALL),
        native(),
        all_of_protobuf(),
        *(SchemaData(kind) for kind in ("STRING", "INT8", "INT64", "FLOAT", "BOOLEAN", "TIMESTAMP", "LOCAL_DATE")),
        *(SchemaData(kind) for kind in ("INSTANT", "LOCAL_DATE_TIME", "BYTES")),
    ],
    ids=lambda schema: schema.type,
)
def test_the_schema_accepts_its_example(schema: SchemaData) -> None:
    example = form_of(schema, NOW_MS)["example"]
    assert encode(schema, json.loads(json.dumps(example))) is not None


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_a_pair_has_a_form_of_its_key_and_one_of_its_value(encoding: str) -> None:
    schema = pair(encoding)
    form = form_of(schema, NOW_MS)
    assert (form["encoding"], form["key"]["kind"], form["value"]["kind"]) == (encoding, "string", "record")
    for half, name in zip(split(schema), ("key", "value"), strict=True):
        assert encode(half, form["example"][name])


def test_the_form_of_protobuf_has_a_shape_for_each_field() -> None:
    shapes = {each["name"]: each["shape"] for each in shape_of(all_of_protobuf())["fields"]}
    kinds = [
        "double",
        "float",
        "long",
        "long",
        "int",
        "boolean",
        "string",
        "bytes",
        "int",
        "enum",
        "string",
        "recursive",
    ]
    assert [shape["kind"] for shape in shapes.values()] == [*kinds, "map", "array"]
    assert shapes["counts"]["values"] == {"kind": "int"}


def test_a_record_that_contains_itself_is_cut() -> None:
    left = shape_of(avro(TREE))["fields"][0]["shape"]
    assert left["branches"] == [{"kind": "null"}, {"kind": "recursive", "name": "Tree"}]


def test_a_form_is_no_longer_than_its_limit() -> None:
    inner: Any = {"type": "record", "name": "r0", "fields": [{"name": "f", "type": "int"}]}
    for number in range(1, 10):
        fields = [
            {"name": "f0", "type": inner},
            *({"name": f"f{each}", "type": f"r{number - 1}"} for each in range(1, 9)),
        ]
        inner = {"type": "record", "name": f"r{number}", "fields": fields}
    assert json.dumps(shape_of(avro(inner))).count('"kind"') < 10 * MOST_SHAPES


def test_a_schema_that_is_no_definition_has_no_form() -> None:
    with pytest.raises(ValueError, match="the Protobuf definition cannot be used"):
        form_of(SchemaData("PROTOBUF_NATIVE", b"{}"), NOW_MS)
