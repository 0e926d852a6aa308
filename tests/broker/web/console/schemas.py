"""Schemas of topics for tests."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf import descriptor_pb2

from pulsarium.broker.model.schema.data import SchemaData, joined

PERSON: dict[str, Any] = {"type": "record", "name": "Person", "fields": [{"name": "name", "type": "string"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "doc": "What a customer bought.",
    "fields": [
        {"name": "id", "type": "int"},
        {
            "name": "customer",
            "type": {
                "type": "record",
                "name": "Customer",
                "fields": [
                    {"name": "name", "type": "string"},
                    {"name": "tags", "type": {"type": "array", "items": "string"}},
                ],
            },
        },
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


def avro(definition: Any) -> SchemaData:
    return SchemaData("AVRO", json.dumps(definition).encode())


def json_schema(definition: Any) -> SchemaData:
    return SchemaData("JSON", json.dumps(definition).encode())


def pair(encoding: str) -> SchemaData:
    """Return the schema of pairs of a text and a person."""
    kinds = {"key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": encoding}
    return SchemaData.of("KEY_VALUE", joined(b"", avro(PERSON).data), kinds)


def native() -> SchemaData:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    person = file.message_type.add(name="Person")
    field = person.field.add(name="full_name", number=1)
    field.type, field.label = field.TYPE_STRING, field.LABEL_OPTIONAL
    friend = person.field.add(name="friends", number=2, type_name=".Person")
    friend.type, friend.label = field.TYPE_MESSAGE, field.LABEL_REPEATED
    files = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    told = {
        "fileDescriptorSet": base64.b64encode(files).decode(),
        "rootMessageTypeName": "Person",
        "rootFileDescriptorName": "a.proto",
    }
    return SchemaData("PROTOBUF_NATIVE", json.dumps(told).encode())
