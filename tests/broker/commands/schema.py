"""Helpers for the tests of schemas."""

from __future__ import annotations

import json
from typing import Any

from pulsarium.proto.generated import PulsarApi_pb2 as pb

STRING = pb.Schema.Type.Value("String")


AVRO = pb.Schema.Type.Value("Avro")


def record(*fields: dict[str, Any]) -> bytes:
    return json.dumps({"type": "record", "name": "R", "fields": fields}).encode()


INT: dict[str, Any] = {"name": "a", "type": "int"}


MORE: dict[str, Any] = {"name": "b", "type": "int", "default": 1}


OTHER: dict[str, Any] = {"name": "a", "type": "string"}


ONE, TWO, WRONG = record(INT), record(INT, MORE), record(OTHER)


REFUSED = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException: "


def schema(type: int, data: bytes = b"", **properties: str) -> dict[str, Any]:
    pairs = [{"key": key, "value": value} for key, value in properties.items()]
    return {"name": "mine", "schema_data": data, "type": type, "properties": pairs}
