"""From what pyarrow gives of a DataFrame to what the client's schemas take (fastavro's values, or JSON's)."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from pulsarium.client.bulk import Form, Misfit
from pulsarium.pipeline.columns import json_times
from pulsarium.pipeline.columns.errors import BadColumns
from pulsarium.pipeline.columns.from_plain import Convert, as_it_is, or_none
from pulsarium.pipeline.columns.kinds import Kind, no_twins

_INTS = (ByteType, ShortType, IntegerType)
TAKES: Mapping[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: _INTS,
    LongType: (*_INTS, LongType),
    ShortType: (ByteType, ShortType),
    FloatType: (FloatType, ByteType, ShortType),
    DoubleType: (DoubleType, FloatType, *_INTS),
}
"""What loses nothing in a wider type; each other type takes itself."""


def takes(own: DataType, given: DataType) -> bool:
    """Whether all values of a type have a place in `own`, neither being nested."""
    if isinstance(own, DecimalType) and isinstance(given, DecimalType):
        return given.scale <= own.scale and given.precision - given.scale <= own.precision - own.scale
    return isinstance(given, (*TAKES.get(type(own), (type(own),)), NullType))


def writer(kind: Kind, form: Form, given: DataType, where: str) -> Convert:
    """Takes None too, and raises Misfit for it where there must be a value. BadColumns where the type does not fit."""
    convert = _some(kind, form, given, where)
    if kind.nullable or kind.name == "null":
        return or_none(convert)

    def needed(value: Any) -> Any:
        if value is None:
            raise Misfit(f"{where} is null, and the topic's schema has no null there")
        return convert(value)

    return needed


def columns(kind: Kind, form: Form, given: StructType, where: str) -> list[tuple[str, str, Convert]]:
    """Of each field of a record that there is a column for: its name, the column's name, and what converts it.

    BadColumns for columns that are no field, and for fields without a column that may neither be null nor have a
    default.
    """
    no_twins(given.names, where or "the DataFrame")
    left: dict[str, StructField] = {each.name.lower(): each for each in given.fields}
    made: list[tuple[str, str, Convert]] = []
    for field in kind.fields:
        column = left.pop(field.name.lower(), None)
        path = f"{where}.{field.name}" if where else f"column {field.name}"
        if column is not None:
            made.append((field.name, column.name, writer(field.kind, form, column.dataType, path)))
        elif field.kind.nullable and not field.has_default:
            made.append((field.name, field.name, lambda value: None))
        elif not field.has_default:
            raise BadColumns(f"{path} is missing: the topic's schema has it as {field.kind.spark.simpleString()}")
    if left:
        raise BadColumns(
            f"{where or 'the DataFrame'} has {', '.join(each.name for each in left.values())}, which the topic's "
            f"schema has not: it has {', '.join(each.name for each in kind.fields)}"
        )
    return made


def _some(kind: Kind, form: Form, given: DataType, where: str) -> Convert:
    if isinstance(given, NullType):
        return as_it_is
    if kind.name == "record" and isinstance(given, StructType):
        return _record(columns(kind, form, given, where))
    if kind.name == "array" and isinstance(given, ArrayType) and kind.inner is not None:
        item = writer(kind.inner, form, given.elementType, f"{where}[]")
        return lambda value: [item(each) for each in value]
    if kind.name == "map" and isinstance(given, MapType) and isinstance(given.keyType, StringType) and kind.inner:
        inner = writer(kind.inner, form, given.valueType, f"{where}[]")
        return lambda value: {key: inner(each) for key, each in _pairs(value)}
    if kind.name == "union" and isinstance(given, StructType):
        return _union(kind, form, given, where)
    if kind.name in ("record", "array", "map", "union") or not takes(kind.spark, given):
        raise BadColumns(
            f"{where} is {given.simpleString()}, where the topic's schema has {kind.spark.simpleString()} ({kind.name})"
        )
    return _scalar(kind, form, where)


def _record(fields: Sequence[tuple[str, str, Convert]]) -> Convert:
    return lambda value: {name: convert(value.get(column)) for name, column, convert in fields}


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _union(kind: Kind, form: Form, given: StructType, where: str) -> Convert:
    """Of a struct of members that is set, the one."""
    members: list[tuple[str, Callable[[Any], Any]]] = []
    for column in given.fields:
        number = column.name.lower().removeprefix("member")
        if not number.isdecimal() or int(number) >= len(kind.branches):
            raise BadColumns(f"{where} has {column.name}, and is a union of {kind.spark.simpleString()}")
        branch = kind.branches[int(number)]
        convert = _some(branch, form, column.dataType, f"{where}.{column.name}")
        members.append((column.name, _named(branch, convert) if form is Form.AVRO else convert))

    def chosen(value: Any) -> Any:
        found = [(name, convert) for name, convert in members if value[name] is not None]
        if len(found) != 1:
            if not found and kind.nullable:
                return None
            raise Misfit(f"{where}: {len(found)} members of a union are set, not one")
        name, convert = found[0]
        return convert(value[name])

    return chosen


_PRIMITIVES = ("boolean", "int", "long", "float", "double", "string", "bytes")


def _named(branch: Kind, convert: Convert) -> Convert:
    """With the name of its branch, in the way of fastavro, which takes one for these."""
    if branch.name == "record":
        return lambda value: (branch.full_name, convert(value))
    if branch.name in _PRIMITIVES:
        return lambda value: (branch.name, convert(value))
    return convert


def _scalar(kind: Kind, form: Form, where: str) -> Convert:
    name = kind.name
    if name == "enum":
        return _checked(lambda value: value in kind.symbols, f"{where}: no symbol of the enum")
    if name == "fixed":
        right = _checked(lambda value: len(value) == kind.size, f"{where}: not {kind.size} bytes")
        return right if form is Form.AVRO else lambda value: _base64(right(value))
    if name in ("float", "double"):
        return float if form is Form.AVRO else _real
    return as_it_is if form is Form.AVRO else _json(kind)


def _json(kind: Kind) -> Convert:
    name = kind.name
    unit = json_times.MICROSECONDS.get(name.rpartition("-")[2], 1)
    if name.startswith("timestamp"):
        return json_times.write_moment(unit)
    if name.startswith("local-timestamp"):
        return json_times.write_local(unit)
    if name.startswith("time-"):
        return json_times.write_time(unit)
    if name == "date":
        return json_times.write_date
    if name == "decimal":
        return lambda value: format(value, "f")  # a number would be read as a double
    return _base64 if name == "bytes" else as_it_is


def _checked(right: Callable[[Any], bool], reason: str) -> Convert:
    def convert(value: Any) -> Any:
        if not right(value):
            raise Misfit(reason)
        return value

    return convert


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _real(value: Any) -> Any:
    """JSON has no infinity: Java writes these as texts."""
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
