"""Schemas of single values, and their types in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from pulsarium.client import (
    BooleanSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    Schema,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)


class Primitive(NamedTuple):
    """A schema without a definition, and its type in Spark."""

    schema: Callable[[], Schema[Any]]
    spark: DataType


_ALL = (
    Primitive(StringSchema, StringType()),
    Primitive(BooleanSchema, BooleanType()),
    Primitive(Int8Schema, ByteType()),
    Primitive(Int16Schema, ShortType()),
    Primitive(Int32Schema, IntegerType()),
    Primitive(Int64Schema, LongType()),
    Primitive(FloatSchema, FloatType()),
    Primitive(DoubleSchema, DoubleType()),
    Primitive(LocalDateSchema, DateType()),
    Primitive(LocalTimeSchema, TimeType(6)),
    Primitive(LocalDateTimeSchema, TimestampNTZType()),
    Primitive(InstantSchema, TimestampType()),  # before the two other moments, because only this one keeps microseconds
    Primitive(TimestampSchema, TimestampType()),
    Primitive(DateSchema, TimestampType()),
    Primitive(TimeSchema, TimeType(6)),
)

PRIMITIVES: Mapping[int, Primitive] = {
    made.info.type: each for each in _ALL if (made := each.schema()).info is not None
}
"""Schemas of single values by their type's number."""


def of_spark(given: DataType) -> Primitive | None:
    """Return the schema that keeps all values of a Spark type exactly, or None."""
    return next((each for each in _ALL if type(each.spark) is type(given)), None)
