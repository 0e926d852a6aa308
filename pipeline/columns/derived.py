"""Derive the schema of a topic that has none from a DataFrame."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from pulsarium.client import AvroSchema, JsonSchema, SchemaInfo
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.pipeline.columns.kinds import BadColumns, no_twins
from pulsarium.pipeline.columns.names import VALUE
from pulsarium.pipeline.columns.primitives import of_spark
from pulsarium.pipeline.columns.writing import split

RECORD = "topLevelRecord"  # the name that Spark's own Avro writer uses
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES: dict[type[DataType], Any] = {
    BooleanType: "boolean",
    ByteType: "int",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    NullType: ["null", "string"],  # of a column of nulls, because Avro has no arrays of nothing
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
    TimeType: {"type": "long", "logicalType": "time-micros"},
}


def info_for(schema: StructType, *, as_json: bool = False) -> SchemaInfo | None:
    """Return the schema of Pulsar for the columns of a DataFrame, or None for bytes.

    A single column `value` of numbers, text or times has one of Pulsar's own schemas. A timestamp is INSTANT, which
    keeps microseconds. A struct `value` is a record of its fields. Other DataFrames are a record, Avro or JSON, with a
    field for each column outside `METADATA`.

    Raise `BadColumns` without a column for the value, and for a column whose type or name Avro does not have.
    """
    no_twins(schema.names, "the DataFrame")
    value, _ = split(schema, set())
    if not value.fields:
        raise BadColumns(f"the DataFrame has no column for the value of messages: it has {', '.join(schema.names)}")
    if [each.lower() for each in value.names] == [VALUE]:
        only = value.fields[0].dataType
        if isinstance(only, BinaryType):
            return None
        primitive = of_spark(only)
        if primitive is not None:
            return primitive.schema().info
        if isinstance(only, StructType):
            value = only
    definition = _record(value, RECORD, "", "")
    try:
        return (JsonSchema(definition) if as_json else AvroSchema(definition)).info
    except InvalidConfiguration as error:  # such as an array of structs without fields
        raise BadColumns(f"the DataFrame's columns are not a valid record: {error}") from error


def _record(given: StructType, name: str, namespace: str, where: str) -> dict[str, Any]:
    no_twins(given.names, f"column {where}" if where else "the DataFrame")
    inside = f"{namespace}.{name}" if namespace else name
    fields = []
    for field in given.fields:
        path = f"{where}.{field.name}" if where else field.name
        if not _NAME.fullmatch(field.name):
            raise BadColumns(f"column {path}: Avro's names have only A-Z, a-z, 0-9 and _: rename the column")
        kind = _or_null(field.dataType, field.nullable, field.name, inside, path)
        fields.append({"name": field.name, "type": kind} | ({"default": None} if isinstance(kind, list) else {}))
    made: dict[str, Any] = {"type": "record", "name": name, "fields": fields}
    return {**made, "namespace": namespace} if namespace else made


def _type(given: DataType, name: str, namespace: str, where: str) -> Any:
    """Return the Avro type for a type of Spark. A record gets `name` and `namespace`."""
    if isinstance(given, StructType):
        return _record(given, name, namespace, where)
    if isinstance(given, ArrayType):
        return {"type": "array", "items": _or_null(given.elementType, given.containsNull, name, namespace, where)}
    if isinstance(given, MapType) and isinstance(given.keyType, StringType):
        return {"type": "map", "values": _or_null(given.valueType, given.valueContainsNull, name, namespace, where)}
    if isinstance(given, DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": given.precision, "scale": given.scale}
    for spark, avro in _TYPES.items():
        if isinstance(given, spark):
            return avro
    raise BadColumns(f"column {where} is {given.simpleString()}, and Avro has no such type")


def _or_null(given: DataType, nullable: bool, name: str, namespace: str, where: str) -> Any:
    kind = _type(given, name, namespace, where)
    return ["null", kind] if nullable and not isinstance(kind, list) else kind
