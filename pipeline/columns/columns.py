"""Columns of a topic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarium.client import Schema, SchemaInfo
from pulsarium.client.bulk import DataForm
from pulsarium.pipeline.columns.kinds import BadColumns, ColumnType
from pulsarium.pipeline.columns.names import METADATA, UNDECODABLE, VALUE
from pulsarium.pipeline.columns.primitives import PRIMITIVES
from pulsarium.pipeline.columns.records import form_of, record_of, schema_of

if TYPE_CHECKING:
    from pulsarium.pipeline.columns.reading import BatchBuilder
    from pulsarium.pipeline.columns.writing import RowReader


@dataclass(frozen=True)
class Columns:
    """Columns of a topic's values. Made in the driver, used in workers."""

    info: SchemaInfo | None
    """The schema of the registry, or None when `value` holds the bytes."""
    schema: StructType
    """Columns of the value, then those of `METADATA`, and perhaps `UNDECODABLE`. All are nullable."""

    @staticmethod
    def of(info: SchemaInfo | None) -> Columns:
        """Return the columns of a topic with this schema.

        Raise `BadColumns` for a record with fields that Spark cannot tell from each other or from the columns of
        `METADATA`.
        """
        kind = record_of(info)
        if info is None or (kind is None and info.type not in PRIMITIVES):
            return Columns(None, _with_metadata(StructType([StructField(VALUE, BinaryType())])))
        # a copy, because the properties of some schemas cannot be pickled
        info = replace(info, properties=dict(info.properties))
        if kind is None:
            return Columns(info, _with_metadata(StructType([StructField(VALUE, PRIMITIVES[info.type].spark)])))
        assert isinstance(kind.spark, StructType)
        return Columns(info, _with_metadata(kind.spark))

    def with_undecodable(self) -> Columns:
        """Return these columns and `UNDECODABLE`: a message that does not fit is a row, and not an error."""
        return replace(self, schema=StructType([*self.schema.fields, StructField(UNDECODABLE, BinaryType())]))

    def for_reading(self, wanted: StructType) -> BatchBuilder:
        """Return a builder of batches with the columns `wanted` from messages that were read with `client_schema`.

        Raise `BadColumns` for a column that the topic does not have, or has with another type.
        """
        from pulsarium.pipeline.columns.reading import BatchBuilder

        schema = self.client_schema()
        separates_key = schema is not None and schema.separates_key
        return BatchBuilder(self.schema, wanted, self.kind(), self._form(), separates_key=separates_key)

    def for_writing(self, given: StructType) -> RowReader:
        """Return a converter of a DataFrame's rows to messages for a producer with `client_schema`.

        Raise `BadColumns` for columns that the topic's schema has no field for, and when columns of required fields are
        missing.
        """
        from pulsarium.pipeline.columns.writing import RowReader

        kind = self.kind()
        own = self.schema[VALUE].dataType if kind is None else None
        return RowReader(given, own, kind, self.info)

    def client_schema(self) -> Schema[Any] | None:
        """Return the schema for readers and producers, or None when messages are bytes."""
        return schema_of(self.info)

    def kind(self) -> ColumnType | None:
        """Return the record of the values, or None when the values are no records."""
        return record_of(self.info)

    def _form(self) -> DataForm:
        return DataForm.AVRO if self.info is None else form_of(self.info)


def _with_metadata(values: StructType) -> StructType:
    own = {each.lower(): each for each in (*METADATA.names, UNDECODABLE)}
    for each in values.names:
        if each.lower() in own:
            raise BadColumns(
                f"the field {each} of the topic's schema cannot be a column, because {own[each.lower()]} is a column "
                "of every topic: read the topic as bytes with allowDifferentTopicSchemas=true"
            )
    return StructType([*values.fields, *METADATA.fields])
