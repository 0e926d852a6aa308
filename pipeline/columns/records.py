"""Records of the schemas of the registry, and schemas of the client for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarium.client import AvroSchema, JsonSchema, KeyValue, KeyValueSchema, Schema, SchemaInfo
from pulsarium.client.bulk import BYTES, DataForm, encoding_of, halves, read_definition
from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.pipeline.columns import protobuf
from pulsarium.pipeline.columns.kinds import ColumnType, NoKind, RecordField, check_extent, record_kind
from pulsarium.pipeline.columns.names import VALUE
from pulsarium.pipeline.columns.primitives import PRIMITIVES
from pulsarium.proto.generated import PulsarApi_pb2 as pb

KEY_OF_PAIR = "key"
"""Column of the keys of pairs. Their values are in the column `VALUE`."""


def form_of(info: SchemaInfo) -> DataForm:
    """Return the form of a schema's records. For a schema without records, the form has no meaning."""
    return DataForm.JSON if info.type == pb.Schema.Json else DataForm.AVRO


def record_of(info: SchemaInfo | None) -> ColumnType | None:
    """Return the record of a schema, or None when the schema is not a readable record.

    Raise `BadColumns` for fields that Spark cannot tell from each other.
    """
    try:
        if info is None or info.type not in _RECORDS:
            return None
        kind = _RECORDS[info.type](info)
        check_extent(kind)
        schema_of(info)
    except (NoKind, InvalidMessage, InvalidConfiguration, UnicodeDecodeError):
        return None
    return kind


def schema_of(info: SchemaInfo | None) -> Schema[Any] | None:
    """Return the schema of the client, or None when messages are bytes.

    A record has the registry's definition to the letter, so that a producer adds no new version.
    """
    if info is None:
        return None
    if info.type in PRIMITIVES:
        return PRIMITIVES[info.type].schema()
    if info.type == pb.Schema.ProtobufNative:
        return protobuf.ProtobufRecords(info)
    if info.type == pb.Schema.KeyValue:
        return PairRecords(info)
    definition = info.data.decode()
    return AvroRecords(definition) if info.type == pb.Schema.Avro else JsonSchema(definition)


class AvroRecords(Schema[dict[str, Any]]):
    """A schema of records in which a field is null where the writer's definition lacks it.

    Avro's rules refuse such a message when the field has no default, but a column may always be null. Definitions
    without a field in common are of different records, and stay refused.
    """

    reads_by_writer = True

    def __init__(self, definition: str) -> None:
        self._own: AvroSchema[dict[str, Any]] = AvroSchema(definition)
        self.info: SchemaInfo = self._own.info
        self._by_writer: dict[bytes, AvroSchema[dict[str, Any]]] = {}

    def encode(self, value: dict[str, Any]) -> bytes:
        return self._own.encode(value)

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> dict[str, Any]:
        if writer is None or writer.data == self.info.data:
            return self._own.decode(data, writer)
        if writer.data not in self._by_writer:
            self._by_writer[writer.data] = AvroSchema(self._nullable_for(writer))
        return self._by_writer[writer.data].decode(data, writer)

    def _nullable_for(self, writer: SchemaInfo) -> dict[str, Any]:
        """Return the definition with a default for each field that only this schema has."""
        own = self._own.definition
        try:
            there = {field["name"] for field in read_definition(writer.data)["fields"]}
        except (KeyError, TypeError):
            return own  # broken, as `decode` then says
        if there.isdisjoint(field["name"] for field in own["fields"]):
            return own
        fields = [
            field
            if "default" in field or there.intersection((field["name"], *field.get("aliases", ())))
            else {**field, "type": _or_null(field["type"]), "default": None}
            for field in own["fields"]
        ]
        return {**own, "fields": fields}


def _or_null(kind: Any) -> list[Any]:
    return ["null", *(each for each in (kind if isinstance(kind, list) else [kind]) if each != "null")]


class PairRecords(KeyValueSchema[Any, Any]):
    """A schema of pairs whose values are dicts of `key` and `value`."""

    def __init__(self, info: SchemaInfo) -> None:
        """Prepare the definition of the registry. Raise `InvalidMessage` when it cannot be used."""
        key, value = (schema_of(_known(half)) or BYTES for half in halves(info))
        super().__init__(key, value, encoding_of(info))
        self.info = info

    def encode_apart(self, value: Any) -> tuple[bytes | None, bytes | None]:
        return super().encode_apart(KeyValue(value[KEY_OF_PAIR], value[VALUE]))

    def decode_apart(self, key: bytes | None, data: bytes | None, writer: SchemaInfo | None = None) -> Any:
        return super().decode_apart(key, data, writer)._asdict()


def _known(half: SchemaInfo) -> SchemaInfo | None:
    """Return the schema of one half of a pair, or None when the half is bytes."""
    return half if half.type in PRIMITIVES or _record_of_half(half) else None


def _record_of_half(half: SchemaInfo) -> ColumnType | None:
    """Return the record of one half of a pair, or None. A pair inside a pair is bytes."""
    return None if half.type == pb.Schema.KeyValue else record_of(half)


def _avro(info: SchemaInfo) -> ColumnType:
    return record_kind(read_definition(info.data))


def _pair(info: SchemaInfo) -> ColumnType:
    key, value = map(_half, halves(info))
    struct = StructType([StructField(KEY_OF_PAIR, key.spark), StructField(VALUE, value.spark)])
    return ColumnType("record", struct, fields=(RecordField(KEY_OF_PAIR, key, False), RecordField(VALUE, value, False)))


def _half(info: SchemaInfo) -> ColumnType:
    found = _record_of_half(info)
    if found is not None:
        return replace(found, nullable=True, form=form_of(info))
    primitive = PRIMITIVES.get(info.type)
    spark = BinaryType() if primitive is None else primitive.spark
    return ColumnType("bytes" if primitive is None else spark.typeName(), spark, nullable=True)


_RECORDS: Mapping[int, Callable[[SchemaInfo], ColumnType]] = {
    pb.Schema.Avro: _avro,
    pb.Schema.Json: _avro,
    pb.Schema.ProtobufNative: protobuf.record_of,
    pb.Schema.KeyValue: _pair,
}
