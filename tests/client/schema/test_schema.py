"""Schemas that clients and brokers exchange, and bytes without a schema."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.schema import BYTES, BytesSchema, SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb


def test_schema_infos_come_back_from_the_wire() -> None:
    info = SchemaInfo(pb.Schema.Avro, b"{}", "ä", {"a": "b", "c": ""})
    assert SchemaInfo.from_proto(pb.Schema.FromString(info.to_proto().SerializeToString())) == info


def test_names_that_are_no_text() -> None:
    """A field 1 of three bytes, a type without a name, and a property; protobuf hands the first out as bytes."""
    encoded = b"\x0a\x03a\xffb" + pb.Schema(schema_data=b"x", type=pb.Schema.Json).SerializePartialToString()
    found = SchemaInfo.from_proto(pb.Schema.FromString(encoded + b"\x2a\x06\x0a\x01\xff\x12\x01\xfe"))
    assert found == SchemaInfo(pb.Schema.Json, b"x", "a\ufffdb", {"\ufffd": "\ufffd"})


def test_bytes_are_the_applications_own() -> None:
    """Like Java and the official Python client, the client sends no schema for bytes."""
    assert BytesSchema().info is None
    assert BYTES.decode(BYTES.encode(b"\xff")) == b"\xff"


@pytest.mark.parametrize("value", ["x", 3, bytearray(b"x"), {}])
def test_a_value_that_is_no_bytes_is_refused(value: Any) -> None:
    with pytest.raises(InvalidMessage, match=f"content is bytes, not {type(value).__name__}"):
        BYTES.encode(value)
