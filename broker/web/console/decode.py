"""Decode a payload by its schema, for a reader of the console."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from functools import lru_cache
from typing import Any, Final

from pulsarium.broker.model.schema.data import SchemaData, split
from pulsarium.proto.avro import AvroCodec
from pulsarium.proto.errors import AvroError

NUMBERS: Final = {
    "INT8": ">b",
    "INT16": ">h",
    "INT32": ">i",
    "INT64": ">q",
    "FLOAT": ">f",
    "DOUBLE": ">d",
    "BOOLEAN": "?",
    "DATE": ">q",
    "TIME": ">q",
    "TIMESTAMP": ">q",
    "LOCAL_DATE": ">q",
    "LOCAL_TIME": ">q",
}
MOST_SCHEMA: Final = 1 << 18  # bytes of a schema, which is parsed at once
MOST_DEPTH: Final = 100  # of a value
SCHEMAS: Final = 8  # that are remembered after they were parsed
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
            return _codec(schema.data).decode(payload)
        case "PROTOBUF_NATIVE":
            return _protobuf(schema.data, payload)
        case "KEY_VALUE":
            return _pair(schema, payload, key)
        case "STRING":
            return payload.decode()
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


@lru_cache(maxsize=SCHEMAS)
def _codec(schema: bytes) -> AvroCodec:
    return AvroCodec(json.loads(schema))


@lru_cache(maxsize=SCHEMAS)
def _message_class(schema: bytes) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    told = json.loads(schema)
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(b64decode(told["fileDescriptorSet"]))
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(told["rootMessageTypeName"]))


def _protobuf(schema: bytes, payload: bytes) -> Any:
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError

    try:
        return json_format.MessageToDict(_message_class(schema).FromString(payload), preserving_proto_field_name=True)
    except (DecodeError, TypeError, KeyError) as error:
        raise ValueError(str(error)) from None
