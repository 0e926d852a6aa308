"""The base class of schemas, and the definition that a broker stores."""

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
"""The type of a topic's values, bytes without a schema."""


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema as brokers store it."""

    type: pb.Schema.Type
    data: bytes = b""
    """The definition. For Avro and JSON, this is an Avro schema in JSON."""
    name: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    def to_proto(self) -> pb.Schema:
        """Return the schema in the form of a command."""
        schema = pb.Schema(name=self.name, schema_data=self.data, type=self.type)
        for key, value in self.properties.items():
            schema.properties.add(key=key, value=value)
        return schema

    @staticmethod
    def from_proto(schema: pb.Schema) -> SchemaInfo:
        """Return the schema of a command."""
        pairs: Iterable[Any] = schema.properties  # Schema.Type.KeyValue hides the message KeyValue from type checkers
        properties = {text_of(pair.key): text_of(pair.value) for pair in pairs}
        return SchemaInfo(schema.type, bytes(schema.schema_data), text_of(schema.name), properties)


class Schema(ABC, Generic[T]):
    """The base class of schemas. `info` is the definition that the broker stores, or None for plain bytes."""

    info: SchemaInfo | None = None
    reads_by_writer: bool = False
    """True where `decode` needs the schema with which a message was written, when that is another version."""
    separates_key: bool = False
    """True where a value contains the message's key.

    Producers then call `encode_apart`, and consumers `decode_apart`.
    """

    @abstractmethod
    def encode(self, value: T) -> bytes:
        """Return the bytes of a value. Raise `InvalidMessage` when the value does not fit the schema."""

    @abstractmethod
    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> T:
        """Return the value in these bytes. Raise `InvalidMessage` when the bytes do not fit the schema.

        Args:
            data: The payload of a message.
            writer: The schema with which the message was written, or None for this schema.
        """

    def encode_apart(self, value: T) -> tuple[bytes | None, bytes | None]:
        """Return the message's key and payload, each None when the value has none.

        Raise `InvalidMessage` as `encode` does.
        """
        return None, self.encode(value)

    def decode_apart(self, key: bytes | None, data: bytes | None, writer: SchemaInfo | None = None) -> T:
        """Return the value of a message's key and payload. Raise `InvalidMessage` as `decode` does."""
        return self.decode(data or b"", writer)


class BytesSchema(Schema[bytes]):
    """Plain bytes, without a schema."""

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, bytes):
            raise InvalidMessage(f"content is bytes, not {type(value).__name__}: other values need a schema")
        return value

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> bytes:
        return data


BYTES: Schema[bytes] = BytesSchema()
"""The default schema of producers, consumers and readers."""
