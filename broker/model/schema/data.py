"""Schemas of topics, including pairs for key and value, and the errors that refuse a schema."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.schema.definition import Definition, DefinitionError, read_definition
from pulsarium.proto.generated import PulsarApi_pb2 as pb

# the wire's types by their names in Java's SchemaType, in order
TYPES: Final = (
    *("NONE", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE"),
    *("DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME"),
    *("PROTOBUF_NATIVE", "AUTO_CONSUME", "EXTERNAL"),
)
CLIENT_SIDE: Final = frozenset({"AUTO", "AUTO_CONSUME", "AUTO_PUBLISH"})
SCHEMA_TYPES: Final = frozenset({*TYPES, *CLIENT_SIDE, "BYTES"})
AVRO_TYPES: Final = frozenset({"AVRO", "JSON", "PROTOBUF"})  # defined in Avro's JSON


@dataclass(frozen=True, slots=True)
class SchemaData:
    """A schema: `type` is a SchemaType, and `data` its definition.

    The properties stay encoded, because one schema may have hundreds of thousands, and most commands only pass them on.
    """

    type: str
    data: bytes = b""
    encoded_properties: bytes = b""

    @classmethod
    def of(cls, kind: str, data: bytes, properties: Mapping[str, str]) -> SchemaData:
        return cls(kind, data, encoded(properties.items()))

    @classmethod
    def taken_from(cls, sent: pb.Schema) -> SchemaData:
        """Return the schema of a message, and leave the message empty: a copy of its properties would take long."""
        kind, data = TYPES[sent.type], sent.schema_data
        for name in ("name", "schema_data", "type"):
            sent.ClearField(name)
        properties = sent.SerializePartialToString()
        sent.Clear()
        return cls(kind, data, properties)

    def to_proto(self, name: str) -> pb.Schema:
        schema = pb.Schema()
        self.fill(schema, name)
        return schema

    def fill(self, schema: pb.Schema, name: str) -> None:
        """Set all fields of a message."""
        schema.name, schema.schema_data = name, self.data
        schema.type = TYPES.index("NONE" if self.type == "BYTES" else self.type)  # type: ignore[assignment]
        schema.MergeFromString(self.encoded_properties)

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties, decoded."""
        pairs: Iterable[Any] = pb.Schema.FromString(self.encoded_properties).properties
        return {pair.key: pair.value for pair in pairs}

    @property
    def size(self) -> int:
        """Return the bytes of definition and properties."""
        return len(self.data) + len(self.encoded_properties)

    def definition(self) -> Definition:
        """Return the definition of an Avro type. Raise `DefinitionError` when `data` is none."""
        return read_definition(self.data)

    def is_defined_as(self, kind: str, definition: Definition) -> bool:
        """Return whether the schema has this Avro type, and an equal definition."""
        if self.type != kind:
            return False
        try:
            return self.definition().equals(definition)
        except DefinitionError:  # the schema was stored without validation
            return False


def encoded(properties: Iterable[tuple[str, str]]) -> bytes:
    """Return properties as a `pb.Schema` has them, for `SchemaData`."""
    schema = pb.Schema()
    for key, value in properties:
        schema.properties.add(key=key, value=value)
    return schema.SerializePartialToString()


EXCEPTIONS = "org.apache.pulsar.broker.service.schema.exceptions"


class SchemaError(BrokerServiceError):
    """A refused schema. PRODUCER and GET_OR_CREATE_SCHEMA answer with `java_text`, SUBSCRIBE and REST with `text`."""

    code: pb.ServerError = pb.IncompatibleSchema

    @property
    def java_text(self) -> str:
        return self.text


class IncompatibleSchemaError(SchemaError):
    """A schema that does not fit those of the topic, or a topic that accepts no schemas."""

    @property
    def java_text(self) -> str:
        named = f"{EXCEPTIONS}.IncompatibleSchemaException: {self.text}"
        return f"{named} caused by {named}"


class NoSchemaError(IncompatibleSchemaError):
    """A topic without a schema to compare with (NotExistSchemaException)."""

    def __init__(self) -> None:
        super().__init__("Topic does not have schema to check")


class MalformedSchemaError(SchemaError):
    """A schema on which Pulsar fails with an exception. `java` is the exception as text, with its class."""

    code = pb.UnknownError

    def __init__(self, java: str) -> None:
        super().__init__("")
        self._java = java

    @property
    def java_text(self) -> str:
        return self._java

    @property
    def message(self) -> str:
        """Return the message of the exception, without its class."""
        return self._java.partition(": ")[2] or "null"


class InvalidSchemaDataError(SchemaError):
    """Bytes that are no schema of their type. `cause` is Java's exception as text, or ""."""

    def __init__(self, text: str, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause

    @property
    def java_text(self) -> str:
        return f"{self.text} caused by {self.cause}" if self.cause else self.text


NULL_LENGTH = b"\xff\xff\xff\xff"  # the length of a null definition


def split(schema: SchemaData) -> tuple[SchemaData, SchemaData]:
    """Return the schemas of key and value. Raise `MalformedSchemaError` when the bytes are damaged."""
    rest = schema.data
    parts = []
    for what in ("key", "value"):
        size = int.from_bytes(rest[:4], "big", signed=True)
        if rest[:4] == NULL_LENGTH:
            size = 0
        if len(rest) < 4 or not 0 <= size <= len(rest) - 4:
            raise MalformedSchemaError("java.nio.BufferUnderflowException")
        parts.append(_part(schema, what, rest[4 : 4 + size]))
        rest = rest[4 + size :]
    return parts[0], parts[1]


def joined(key: bytes, value: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in (key, value))


def _part(schema: SchemaData, what: str, data: bytes) -> SchemaData:
    texts = schema.properties
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
    return SchemaData.of(kind, data, {str(name): str(value) for name, value in pairs})
