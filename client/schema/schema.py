"""What a schema is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

from pulsarium.client.errors import InvalidMessage
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

T = TypeVar("T", default=bytes)
"""What the values of a topic are; bytes where no schema is given."""


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema as brokers keep it."""

    type: pb.Schema.Type
    data: bytes = b""
    """Its definition: for Avro and JSON an Avro schema as JSON."""
    name: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    def to_proto(self) -> pb.Schema:
        """For a command."""
        schema = pb.Schema(name=self.name, schema_data=self.data, type=self.type)
        for key, value in self.properties.items():
            schema.properties.add(key=key, value=value)
        return schema

    @staticmethod
    def from_proto(schema: pb.Schema) -> SchemaInfo:
        """From a command."""
        pairs: Iterable[Any] = schema.properties  # Schema.Type.KeyValue hides the message KeyValue from type checkers
        properties = {text_of(pair.key): text_of(pair.value) for pair in pairs}
        return SchemaInfo(schema.type, bytes(schema.schema_data), text_of(schema.name), properties)


class Schema(ABC, Generic[T]):
    """Base of the schemas. `info` is what the broker is told; None: nothing, the bytes are the application's own."""

    info: SchemaInfo | None = None
    reads_by_writer: bool = False
    """Whether `decode` wants the schema that a message was written with, where it has another version."""
    separates_key: bool = False
    """Whether a value holds the message's key as well: then producers `encode_apart`, and messages `decode_apart`."""

    @abstractmethod
    def encode(self, value: T) -> bytes:
        """The bytes of a value; InvalidMessage for a value that does not fit."""

    @abstractmethod
    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> T:
        """The value of these bytes, written with the schema `writer` (None: with this one). InvalidMessage if they are
        none."""

    def encode_apart(self, value: T) -> tuple[bytes | None, bytes | None]:
        """A message's key and content; None is none. Raises as `encode`."""
        return None, self.encode(value)

    def decode_apart(self, key: bytes | None, data: bytes | None, writer: SchemaInfo | None = None) -> T:
        """The value of these. Raises as `decode`."""
        return self.decode(data or b"", writer)


class BytesSchema(Schema[bytes]):
    """Bytes as they are."""

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, bytes):
            raise InvalidMessage(f"content is bytes, not {type(value).__name__}: other values need a schema")
        return value

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> bytes:
        return data


BYTES: Schema[bytes] = BytesSchema()
"""Where no other is given."""
