"""Pairs of a key and a value, each with a schema of its own."""

from __future__ import annotations

import enum
import json
import re
import struct
from typing import Any, Generic, NamedTuple, cast

from typing_extensions import TypeVar

from pulsarium.client.choices import check_choice
from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.schema import Schema, SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb

K = TypeVar("K")
V = TypeVar("V")

_LENGTH = struct.Struct(">i")
_NONE = -1  # the length of a missing part
_NOTHING = pb.Schema.Type.Value("None")
_NAMES: dict[int, str] = {
    number: re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper() for name, number in pb.Schema.Type.items()
}
_NAMES |= {pb.Schema.Bool: "BOOLEAN", _NOTHING: "BYTES"}
"""The names of schema types in Java's SchemaType."""
_TYPES = {name: cast("pb.Schema.Type", number) for number, name in _NAMES.items()}


class KeyValue(NamedTuple, Generic[K, V]):
    """A pair, whose key or value may be None."""

    key: K | None
    value: V | None


class KeyValueEncodingType(enum.Enum):
    """The place of the key."""

    INLINE = "INLINE"
    """The key stands in the payload, before the value."""
    SEPARATED = "SEPARATED"
    """The key is the message's partition key, which orders, routes and compacts. The payload is the value alone."""


class KeyValueSchema(Schema[KeyValue[K, V]]):
    """A schema of pairs, from a schema for keys and one for values."""

    def __init__(
        self,
        key: Schema[K],
        value: Schema[V],
        encoding: KeyValueEncodingType = KeyValueEncodingType.INLINE,
    ) -> None:
        """Combine two schemas.

        Args:
            key: The schema of keys.
            value: The schema of values.
            encoding: The place of the key: in the payload (INLINE), or in the message's partition key (SEPARATED).
        """
        check_choice("encoding", encoding, KeyValueEncodingType)
        self.info: SchemaInfo = joined(key.info or _BYTES, value.info or _BYTES, encoding)
        self.separates_key: bool = encoding is KeyValueEncodingType.SEPARATED
        self.reads_by_writer: bool = key.reads_by_writer or value.reads_by_writer
        self._key = key
        self._value = value

    def encode(self, value: KeyValue[K, V]) -> bytes:
        """Return the bytes of a pair. Raise `InvalidMessage` when a part does not fit, or with SEPARATED."""
        if self.separates_key:
            raise InvalidMessage("KeyValueSchema: the bytes do not contain the key, which is SEPARATED")
        return b"".join(
            _LENGTH.pack(_NONE if part is None else len(part)) + (part or b"") for part in self.encode_apart(value)
        )

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> KeyValue[K, V]:
        """Return the pair in these bytes. Raise `InvalidMessage` when the bytes are no pair, or with SEPARATED."""
        if self.separates_key:
            raise InvalidMessage("KeyValueSchema: the bytes do not contain the key, which is SEPARATED")
        return self.decode_apart(*_split(data), writer)

    def encode_apart(self, value: KeyValue[K, V]) -> tuple[bytes | None, bytes | None]:
        """Return the key and the value in bytes, each None where the pair has None.

        Raise `InvalidMessage` for another type.
        """
        if not isinstance(value, KeyValue):
            raise InvalidMessage(f"KeyValueSchema takes KeyValue, not {type(value).__name__}")
        key, content = value
        return (
            None if key is None else self._key.encode(key),
            None if content is None else self._value.encode(content),
        )

    def decode_apart(self, key: bytes | None, data: bytes | None, writer: SchemaInfo | None = None) -> KeyValue[K, V]:
        """Return the pair of a message's key and payload. Raise `InvalidMessage` when one of them does not fit."""
        of_key, of_value = (None, None) if writer is None else halves(writer)
        return KeyValue(
            None if key is None else self._key.decode(key, of_key),
            None if data is None else self._value.decode(data, of_value),
        )


def joined(key: SchemaInfo, value: SchemaInfo, encoding: KeyValueEncodingType) -> SchemaInfo:
    """Return the schema of pairs, in the form of Java's KeyValueSchemaInfo."""
    properties = {"kv.encoding.type": encoding.value}
    for what, info in (("key", key), ("value", value)):
        properties[f"{what}.schema.name"] = info.name
        properties[f"{what}.schema.type"] = _NAMES[info.type]
        properties[f"{what}.schema.properties"] = json.dumps(dict(info.properties), separators=(",", ":"))
    data = b"".join(_LENGTH.pack(len(part)) + part for part in (key.data, value.data))
    return SchemaInfo(pb.Schema.KeyValue, data, "KeyValue", properties)


def halves(info: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """Return the schemas of keys and of values. Raise `InvalidMessage` when `info` is no schema of pairs."""
    if info.type != pb.Schema.KeyValue:
        raise InvalidMessage("KeyValueSchema: the message was written with a schema of another type")
    key, value = _split(info.data)
    return _half(info, "key", key), _half(info, "value", value)


def encoding_of(info: SchemaInfo) -> KeyValueEncodingType:
    """Return the encoding of a KeyValue schema: INLINE or SEPARATED."""
    separated = info.properties.get("kv.encoding.type") == KeyValueEncodingType.SEPARATED.value
    return KeyValueEncodingType.SEPARATED if separated else KeyValueEncodingType.INLINE


def _half(info: SchemaInfo, what: str, data: bytes | None) -> SchemaInfo:
    name = info.properties.get(f"{what}.schema.type", "BYTES")
    kind = _TYPES.get(name)
    if kind is None:
        raise InvalidMessage(f"KeyValueSchema: the {what} has the unknown type {name[:100]}")
    try:
        properties: Any = json.loads(info.properties.get(f"{what}.schema.properties") or "{}")
    except (ValueError, RecursionError):
        properties = None
    if not isinstance(properties, dict):
        raise InvalidMessage(f"KeyValueSchema: the properties of the {what}'s schema are no JSON object")
    return SchemaInfo(kind, data or b"", info.properties.get(f"{what}.schema.name", ""), properties)


def _split(data: bytes) -> tuple[bytes | None, bytes | None]:
    """Return two pieces of bytes, each of which stands behind its length."""
    found: list[bytes | None] = []
    for _ in range(2):
        size = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else None
        data = data[_LENGTH.size :]
        if size is None or not _NONE <= size <= len(data):
            raise InvalidMessage("KeyValueSchema: a length is greater than the bytes that follow")
        found.append(None if size == _NONE else data[:size])
        data = data[max(size, 0) :]
    return found[0], found[1]


_BYTES = SchemaInfo(_TYPES["BYTES"], name="Bytes")
