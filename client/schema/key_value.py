"""Keys and values as one, each with a schema of its own."""

from __future__ import annotations

import enum
import json
import re
import struct
from typing import Any, Generic, NamedTuple, cast

from typing_extensions import TypeVar

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.schema import Schema, SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb

K = TypeVar("K")
V = TypeVar("V")

_LENGTH = struct.Struct(">i")
_NONE = -1  # as a length
_NOTHING = pb.Schema.Type.Value("None")
_NAMES: dict[int, str] = {
    number: re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper() for name, number in pb.Schema.Type.items()
}
_NAMES |= {pb.Schema.Bool: "BOOLEAN", _NOTHING: "BYTES"}
"""The wire's types as Java's SchemaType calls them."""
_TYPES = {name: cast("pb.Schema.Type", number) for number, name in _NAMES.items()}


class KeyValue(NamedTuple, Generic[K, V]):
    """A pair, of which either may be missing."""

    key: K | None
    value: V | None


class KeyValueEncodingType(enum.Enum):
    """Where the key stands."""

    INLINE = "INLINE"
    """In the content, in front of the value."""
    SEPARATED = "SEPARATED"
    """It is the message's partition key, and orders, routes and compacts as such; the content is the value alone."""


class KeyValueSchema(Schema[KeyValue[K, V]]):
    """A schema for keys, and one for values."""

    def __init__(
        self,
        key: Schema[K],
        value: Schema[V],
        encoding: KeyValueEncodingType = KeyValueEncodingType.INLINE,
    ) -> None:
        self.info: SchemaInfo = joined(key.info or _BYTES, value.info or _BYTES, encoding)
        self.separates_key: bool = encoding is KeyValueEncodingType.SEPARATED
        self.reads_by_writer: bool = key.reads_by_writer or value.reads_by_writer
        self._key = key
        self._value = value

    def encode(self, value: KeyValue[K, V]) -> bytes:
        """InvalidMessage also where the key stands elsewhere: only producers know where."""
        if self.separates_key:
            raise InvalidMessage("KeyValueSchema: bytes alone do not hold a separated key")
        return b"".join(
            _LENGTH.pack(_NONE if part is None else len(part)) + (part or b"") for part in self.encode_apart(value)
        )

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> KeyValue[K, V]:
        """InvalidMessage as `encode`."""
        if self.separates_key:
            raise InvalidMessage("KeyValueSchema: bytes alone do not hold a separated key")
        return self.decode_apart(*_split(data), writer)

    def encode_apart(self, value: KeyValue[K, V]) -> tuple[bytes | None, bytes | None]:
        if not isinstance(value, KeyValue):
            raise InvalidMessage(f"KeyValueSchema takes KeyValue, not {type(value).__name__}")
        key, content = value
        return (
            None if key is None else self._key.encode(key),
            None if content is None else self._value.encode(content),
        )

    def decode_apart(self, key: bytes | None, data: bytes | None, writer: SchemaInfo | None = None) -> KeyValue[K, V]:
        of_key, of_value = (None, None) if writer is None else halves(writer)
        return KeyValue(
            None if key is None else self._key.decode(key, of_key),
            None if data is None else self._value.decode(data, of_value),
        )


def joined(key: SchemaInfo, value: SchemaInfo, encoding: KeyValueEncodingType) -> SchemaInfo:
    """The schema of pairs, as Java's KeyValueSchemaInfo has it."""
    properties = {"kv.encoding.type": encoding.value}
    for what, info in (("key", key), ("value", value)):
        properties[f"{what}.schema.name"] = info.name
        properties[f"{what}.schema.type"] = _NAMES[info.type]
        properties[f"{what}.schema.properties"] = json.dumps(dict(info.properties), separators=(",", ":"))
    data = b"".join(_LENGTH.pack(len(part)) + part for part in (key.data, value.data))
    return SchemaInfo(pb.Schema.KeyValue, data, "KeyValue", properties)


def halves(info: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """The schemas of key and value; InvalidMessage if it is no schema of pairs."""
    if info.type != pb.Schema.KeyValue:
        raise InvalidMessage("KeyValueSchema: the message was written with a schema of something else")
    key, value = _split(info.data)
    return _half(info, "key", key), _half(info, "value", value)


def encoding_of(info: SchemaInfo) -> KeyValueEncodingType:
    """Where a schema of pairs has the key."""
    separated = info.properties.get("kv.encoding.type") == KeyValueEncodingType.SEPARATED.value
    return KeyValueEncodingType.SEPARATED if separated else KeyValueEncodingType.INLINE


def _half(info: SchemaInfo, what: str, data: bytes | None) -> SchemaInfo:
    name = info.properties.get(f"{what}.schema.type", "BYTES")
    kind = _TYPES.get(name)
    if kind is None:
        raise InvalidMessage(f"KeyValueSchema: a {what} of the unknown type {name[:100]}")
    try:
        properties: Any = json.loads(info.properties.get(f"{what}.schema.properties") or "{}")
    except (ValueError, RecursionError):
        properties = None
    if not isinstance(properties, dict):
        raise InvalidMessage(f"KeyValueSchema: the properties of its {what} are no JSON object")
    return SchemaInfo(kind, data or b"", info.properties.get(f"{what}.schema.name", ""), properties)


def _split(data: bytes) -> tuple[bytes | None, bytes | None]:
    """Two pieces, each behind its length."""
    found: list[bytes | None] = []
    for _ in range(2):
        size = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else None
        data = data[_LENGTH.size :]
        if size is None or not _NONE <= size <= len(data):
            raise InvalidMessage("KeyValueSchema: a length that the bytes have not")
        found.append(None if size == _NONE else data[:size])
        data = data[max(size, 0) :]
    return found[0], found[1]


_BYTES = SchemaInfo(_TYPES["BYTES"], name="Bytes")
