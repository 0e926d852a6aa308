"""Decode a payload by its schema, for a reader of the console."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from typing import Any, Final

from pulsarium.broker.model.schema.data import SchemaData, split
from pulsarium.proto.errors import AvroError
from pulsarium.proto.json_values import (
    FRACTIONS,
    MOST_SCHEMA,
    WHOLE,
    avro_codec,
    instant_of,
    local_date_time_of,
    protobuf_class,
)

NUMBERS: Final = {**WHOLE, **FRACTIONS, "BOOLEAN": "?"}
MOST_DEPTH: Final = 100  # of a value
ENCODING: Final = "kv.encoding.type"


def decoded(schema: SchemaData, payload: bytes, key: str | None = None) -> Any:
    """Return a value for JSON. Raise `AvroError` or ValueError for a payload that is no value of the schema.

    `key` is the message's partition key, which holds the key of a pair that is stored apart.
    """
    try:
        value = _decoded(schema, payload, key)
    except RecursionError:
        raise AvroError("nested too deeply") from None
    if _is_deep(value):
        raise AvroError("nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    """Return whether a value is nested so deeply that the encoder of the answer would fail."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inner = [each for each in level if isinstance(each, dict | list)]
        if not inner:
            return False
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
    return True


def _decoded(schema: SchemaData, payload: bytes, key: str | None) -> Any:
    if len(schema.data) > MOST_SCHEMA:
        raise ValueError(f"the schema has {len(schema.data)} bytes, more than {MOST_SCHEMA}")
    match schema.type:
        case "JSON":
            return json.loads(payload)
        case "AVRO":
            return avro_codec(schema.data).decode(payload)
        case "PROTOBUF_NATIVE":
            from pulsarium.proto.protobuf_native import to_json

            return to_json(protobuf_class(schema.data), payload)
        case "KEY_VALUE":
            return _pair(schema, payload, key)
        case "STRING":
            return payload.decode()
        case "INSTANT":
            return instant_of(payload)
        case "LOCAL_DATE_TIME":
            return local_date_time_of(payload)
        case kind if kind in NUMBERS:
            try:
                return struct.unpack(NUMBERS[kind], payload)[0]
            except struct.error as error:
                raise ValueError(str(error)) from None
    return payload.hex(" ")


def _pair(schema: SchemaData, payload: bytes, key: str | None) -> dict[str, Any]:
    of_key, of_value = split(schema)
    if schema.properties.get(ENCODING) == "SEPARATED":
        raw = None if key is None else b64decode(key)
        return {"key": None if raw is None else decoded(of_key, raw), "value": decoded(of_value, payload)}
    parts = []
    for each in (of_key, of_value):
        size = int.from_bytes(payload[:4], "big", signed=True)
        if len(payload) < 4 or size > len(payload) - 4:
            raise ValueError("the pair ends inside a length")
        parts.append(None if size < 0 else decoded(each, payload[4 : 4 + size]))
        payload = payload[4 + max(0, size) :]
    return {"key": parts[0], "value": parts[1]}
