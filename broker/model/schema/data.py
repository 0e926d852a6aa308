"""One schema as a topic has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsarium.broker.model.schema.definition import Definition, DefinitionError, read_definition
from pulsarium.proto.generated import PulsarApi_pb2 as pb

# the wire's types in the words of Java's SchemaType, in order
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
    """A schema: `type` is a SchemaType, `data` its definition."""

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
        """Of an Avro type. Raises DefinitionError."""
        return read_definition(self.data)

    def is_defined_as(self, kind: str, definition: Definition) -> bool:
        """Whether it is of this Avro type, and another text of this definition."""
        if self.type != kind:
            return False
        try:
            return self.definition().equals(definition)
        except DefinitionError:  # it came when nobody judged it
            return False
