"""Schemas of keys and values as one: two definitions in a row, each behind its length (KeyValueSchemaInfo)."""

from __future__ import annotations

import json
import struct

from pulsarium.broker.model.schema.data import SCHEMA_TYPES, SchemaData
from pulsarium.broker.model.schema.errors import MalformedSchemaError

NOTHING = b"\xff\xff\xff\xff"  # the length of a definition that is null


def split(schema: SchemaData) -> tuple[SchemaData, SchemaData]:
    """The schemas of key and value. Raises MalformedSchemaError."""
    rest = schema.data
    parts = []
    for what in ("key", "value"):
        size = int.from_bytes(rest[:4], "big", signed=True)
        if rest[:4] == NOTHING:
            size = 0
        if len(rest) < 4 or not 0 <= size <= len(rest) - 4:
            raise MalformedSchemaError("java.nio.BufferUnderflowException")
        parts.append(_part(schema, what, rest[4 : 4 + size]))
        rest = rest[4 + size :]
    return parts[0], parts[1]


def joined(key: bytes, value: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in (key, value))


def _part(schema: SchemaData, what: str, data: bytes) -> SchemaData:
    texts = schema.texts
    kind = texts.get(f"{what}.schema.type", "BYTES")
    if kind not in SCHEMA_TYPES:
        text = f"No enum constant org.apache.pulsar.common.schema.SchemaType.{kind}"
        raise MalformedSchemaError(f"java.lang.IllegalArgumentException: {text}")
    properties = {}
    try:
        properties = json.loads(texts.get(f"{what}.schema.properties") or "{}")
    except (ValueError, RecursionError):
        raise MalformedSchemaError("com.google.gson.JsonSyntaxException") from None
    pairs = properties.items() if isinstance(properties, dict) else ()
    return SchemaData(kind, data, tuple((str(name), str(value)) for name, value in pairs))
