"""Decode a payload by its schema, for a reader of the console."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
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
ENCODING: Final = "kv.encoding.type"


def decoded(schema: SchemaData, payload: bytes, key: str | None = None) -> Any:
    """Return a value for JSON. Raise `AvroError` or ValueError for a payload that is no value of the schema.

    `key` is the message's partition key, which holds the key of a pair that is stored apart.
    """
    match schema.type:
        case "JSON":
            return json.loads(payload)
        case "AVRO":
            try:
                return AvroCodec(json.loads(schema.data)).decode(payload)
            except RecursionError:
                raise AvroError("nested too deeply") from None
        case "PROTOBUF_NATIVE":
            return _protobuf(schema, payload)
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
    if schema.texts.get(ENCODING) == "SEPARATED":
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


def _protobuf(schema: SchemaData, payload: bytes) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
    from google.protobuf.message import DecodeError

    told = json.loads(schema.data)
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(b64decode(told["fileDescriptorSet"]))
        for file in files.file:
            pool.Add(file)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(told["rootMessageTypeName"]))
        return json_format.MessageToDict(kind.FromString(payload), preserving_proto_field_name=True)
    except (DecodeError, TypeError, KeyError) as error:
        raise ValueError(str(error)) from None
