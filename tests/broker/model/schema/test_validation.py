"""Validation of schema data by the type of the schema."""

from __future__ import annotations

import pytest

from pulsarium.broker.model.schema.data import InvalidSchemaDataError, MalformedSchemaError, SchemaData, joined
from pulsarium.broker.model.schema.validation import root_name, validate
from tests.broker.model.schema.descriptors import descriptor

RECORD = b'{"type":"record","name":"R","fields":[]}'
FAILED = "deserialize ProtobufNative Schema failed"


@pytest.mark.parametrize(
    "schema",
    [
        *(SchemaData(kind, RECORD) for kind in ("AVRO", "JSON", "PROTOBUF")),
        SchemaData("AVRO", b'"int"'),
        SchemaData("JSON", b'["null","int"]'),
        SchemaData("STRING"),
        SchemaData("STRING", b"null"),
        SchemaData("EXTERNAL", b"x"),
        SchemaData("NONE", b"x"),
        SchemaData("PROTOBUF_NATIVE", descriptor()),
        SchemaData("KEY_VALUE", bytes(8)),
        SchemaData("KEY_VALUE", b"\xff\xff\xff\xff" * 2),
        SchemaData.of("KEY_VALUE", joined(b"", RECORD), {"value.schema.type": "AVRO", "key.schema.type": "INT8"}),
    ],
    ids=str,
)
def test_a_valid_schema_is_taken(schema: SchemaData) -> None:
    validate(schema)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (SchemaData("AVRO", b"{nope"), "Invalid schema definition data for AVRO schema"),
        (SchemaData("JSON", b"{}"), "Invalid schema definition data for JSON schema"),
        (SchemaData("PROTOBUF"), "Invalid schema definition data for PROTOBUF schema"),
        (SchemaData("AVRO", b'["null","int"]'), r"Avro schema typed \[UNION\] is not supported"),
        (SchemaData("STRING", b"x"), "Invalid schema definition data for string schema : 'x'"),
        (SchemaData("DATE", b"xy"), "length of schema data should be zero, but 2 bytes is found"),
        (SchemaData("AUTO_CONSUME"), "Schema AUTO_CONSUME is a client-side schema type"),
        (SchemaData("AUTO_PUBLISH"), "Schema AUTO_PUBLISH is a client-side schema type"),
        (SchemaData("PROTOBUF_NATIVE", b"{}"), FAILED),
        (SchemaData.of("KEY_VALUE", joined(b"", b"x"), {"value.schema.type": "AVRO"}), "AVRO schema"),
    ],
    ids=str,
)
def test_an_invalid_schema_is_refused(schema: SchemaData, text: str) -> None:
    with pytest.raises(InvalidSchemaDataError, match=text):
        validate(schema)


@pytest.mark.parametrize(
    ("data", "properties"),
    [
        (b"", {}),
        (b"\0\0\0\2x", {}),
        (b"\xff\xff\xff\xfe", {}),
        (bytes(8), {"key.schema.type": "WRONG"}),
        (bytes(8), {"value.schema.properties": "{"}),
    ],
)
def test_a_key_value_schema_whose_halves_cannot_be_told_apart_is_refused(
    data: bytes, properties: dict[str, str]
) -> None:
    with pytest.raises(MalformedSchemaError):
        validate(SchemaData.of("KEY_VALUE", data, properties))


@pytest.mark.parametrize("root", ["p.M", "p.M.Inner", "p.N"])
def test_the_root_message_of_a_descriptor_is_found(root: str) -> None:
    assert root_name(descriptor(root)) == root


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"{}", 'because "data" is null'),
        (descriptor("p.X"), 'because "descriptor" is null'),
        (descriptor(file="x"), 'because "fileDescriptorProto" is null'),
        (b"{nope", "was expecting double-quote to start field name"),
        (b"", "No content to map due to end-of-input"),
        (b"[]", "MismatchedInputException"),
        (b'{"fileDescriptorSet":"AAAA"}', "contained an invalid tag"),
        (b'{"fileDescriptorSet":1}', "contained an invalid tag"),
    ],
)
def test_a_descriptor_that_is_none_is_refused_with_javas_cause(data: bytes, cause: str) -> None:
    with pytest.raises(InvalidSchemaDataError, match=FAILED) as refused:
        root_name(data)
    assert cause in refused.value.java_text
