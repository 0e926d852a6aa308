"""The columns of a topic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarium.client import AvroSchema, JsonSchema, Schema, SchemaInfo
from pulsarium.client.bulk import Form, read_definition
from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.pipeline.columns.kinds import BadColumns, Kind, NoKind, record_kind
from pulsarium.pipeline.columns.metadata import METADATA
from pulsarium.pipeline.columns.primitives import PRIMITIVES
from pulsarium.pipeline.columns.reading import BatchBuilder
from pulsarium.pipeline.columns.writing import VALUE, RowReader
from pulsarium.proto.generated import PulsarApi_pb2 as pb

FORMS = {pb.Schema.Avro: Form.AVRO, pb.Schema.Json: Form.JSON}


@dataclass(frozen=True)
class Columns:
    """What a topic's values become. Made in the driver, used in workers."""

    info: SchemaInfo | None
    """What the registry has, None where `value` is the bytes."""
    schema: StructType
    """Of the value, and behind it METADATA; all may be null."""

    @staticmethod
    def of(info: SchemaInfo | None) -> Columns:
        """For a topic with this schema. BadColumns for a record whose fields Spark could not tell from each other, or
        from METADATA."""
        kind = None if info is None else _record_of(info)
        if info is None or (kind is None and info.type not in PRIMITIVES):
            return Columns(None, _with_metadata(StructType([StructField(VALUE, BinaryType())])))
        info = replace(info, properties=dict(info.properties))  # those of some schemas cannot be pickled
        if kind is None:
            return Columns(info, _with_metadata(StructType([StructField(VALUE, PRIMITIVES[info.type].spark)])))
        assert isinstance(kind.spark, StructType)
        return Columns(info, _with_metadata(kind.spark))

    def for_reading(self, wanted: StructType) -> BatchBuilder:
        """From messages that were read with `client_schema` to these columns, in their order and by their types.

        BadColumns for columns that the topic has not, or not of that type.
        """
        return BatchBuilder(self.schema, wanted, self._kind(), self._form())

    def for_writing(self, given: StructType) -> RowReader:
        """From the columns of a DataFrame to messages for a producer with `client_schema`.

        BadColumns where the topic's schema has no place for them, or needs more.
        """
        kind = self._kind()
        own = self.schema[VALUE].dataType if kind is None else None
        return RowReader(given, own, kind, self._form())

    def client_schema(self) -> Schema[Any] | None:
        """For readers and producers; None: they have bytes."""
        if self.info is None:
            return None
        if self.info.type in PRIMITIVES:
            return PRIMITIVES[self.info.type].schema()
        return _record_schema(self.info)

    def _kind(self) -> Kind | None:
        return None if self.info is None else _record_of(self.info)

    def _form(self) -> Form:
        return FORMS.get(self.info.type, Form.AVRO) if self.info is not None else Form.AVRO


def _record_schema(info: SchemaInfo) -> Schema[Any]:
    """As the registry has it, to the letter: a producer makes no new version of it."""
    definition = info.data.decode()
    return AvroSchema(definition) if info.type == pb.Schema.Avro else JsonSchema(definition)


def _record_of(info: SchemaInfo) -> Kind | None:
    """None for what is no record, or one that nobody can read."""
    if info.type not in FORMS:
        return None
    try:
        kind = record_kind(read_definition(info.data))
        _record_schema(info)
    except (NoKind, InvalidMessage, InvalidConfiguration, UnicodeDecodeError):
        return None
    return kind


def _with_metadata(values: StructType) -> StructType:
    own = {each.lower(): each for each in METADATA.names}
    for each in values.names:
        if each.lower() in own:
            raise BadColumns(
                f"the field {each} of the topic's schema cannot be a column, because {own[each.lower()]} is one of "
                "every topic"
            )
    return StructType([*values.fields, *METADATA.fields])
