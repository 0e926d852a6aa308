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
    """A schema: `type` is a SchemaType, and `data` its definition."""

    type: str
    data: bytes = b""
    properties: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_proto(cls, sent: pb.Schema) -> SchemaData:
        pairs: Iterable[Any] = sent.properties  # Schema.Type.KeyValue hides the message from the type checker
        return cls(TYPES[sent.type], sent.schema_data, tuple((pair.key, pair.value) for pair in pairs))

    def to_proto(self, name: str) -> pb.Schema:
        schema = pb.Schema(name=name, schema_data=self.data)
        schema.type = TYPES.index("NONE" if self.type == "BYTES" else self.type)  # type: ignore[assignment]
        for key, value in self.properties:
            schema.properties.add(key=key, value=value)
        return schema

    @property
    def texts(self) -> Mapping[str, str]:
        return dict(self.properties)

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
