"""A schema with each supported type of Spark, and a row of that schema."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
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
    TimestampNTZType,
    TimestampType,
    TimeType,
)

from tests.pipeline.columns.writing import struct

EVERYTHING = struct(
    boolean=BooleanType(),
    byte=ByteType(),
    short=ShortType(),
    int=IntegerType(),
    long=LongType(),
    float=FloatType(),
    double=DoubleType(),
    string=StringType(),
    binary=BinaryType(),
    nothing=NullType(),
    nothings=ArrayType(NullType()),
    date=DateType(),
    time=TimeType(6),
    moment=TimestampType(),
    local=TimestampNTZType(),
    decimal=DecimalType(20, 5),
    array=ArrayType(struct(x=ArrayType(LongType()))),
    map=MapType(StringType(), struct(x=StringType())),
    struct=struct(x=struct(x=LongType()), y=struct(x=LongType())),
)


ROW = {
    "boolean": True,
    "byte": -1,
    "short": 300,
    "int": 70_000,
    "long": 2**40,
    "float": 1.5,
    "double": 0.1,
    "string": "é",
    "binary": b"\xff",
    "nothing": None,
    "nothings": [None],
    "date": date(2024, 2, 29),
    "time": time(1, 2, 3, 4),
    "moment": datetime(2024, 1, 2, 3, 4, 5, 6, UTC),
    "local": datetime(2024, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001
    "decimal": Decimal("-12345.67800"),
    "array": [{"x": [1, None]}, None],
    "map": [("a", {"x": "y"}), ("b", None)],
    "struct": {"x": {"x": 1}, "y": None},
}
