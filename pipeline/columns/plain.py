"""Convert values of the client's schemas (those of fastavro, or of JSON) to values for pyarrow, and back."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

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
    StructField,
    StructType,
)

from pulsarium.client.bulk import DataForm, Misfit, expected
from pulsarium.pipeline.columns import json_times
from pulsarium.pipeline.columns.kinds import BadColumns, ColumnType, no_twins

Convert: TypeAlias = Callable[[Any], Any]
"""Converter of one value, which is never None. Raises `Misfit`."""


def reader(kind: ColumnType, form: DataForm) -> Convert | None:
    """Return a converter of values to pyarrow's, or None when pyarrow takes the values unchanged."""
    form = kind.form or form
    if kind.name == "record":
        return _read_record(kind, form)
    if kind.name == "array":
        return _array(kind, form)
    if kind.name == "map":
        return _map(kind, form)
    if kind.branches:
        return _read_union(kind, form)
    if form is DataForm.JSON:
        return _read_json(kind)
    if kind.name in ("uuid", "decimal-text"):
        return str
    return None


def as_it_is(value: Any) -> Any:
    return value


def or_none(convert: Convert) -> Convert:
    """Return the converter for values that may be None."""
    return lambda value: None if value is None else convert(value)


def _read_record(kind: ColumnType, form: DataForm) -> Convert | None:
    converts = [(each.name, reader(each.kind, form)) for each in kind.fields]
    if form is DataForm.AVRO and all(each is None for _, each in converts):
        return None
    made = [(name, or_none(each or as_it_is)) for name, each in converts]

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise expected("a record", value)
        return {name: each(value.get(name)) for name, each in made}

    return convert


def _array(kind: ColumnType, form: DataForm) -> Convert | None:
    each = _inner(kind, form)
    if each is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            raise expected("an array", value)
        return [each(item) for item in value]

    return convert


def _map(kind: ColumnType, form: DataForm) -> Convert | None:
    each = _inner(kind, form)
    if each is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise expected("a map", value)
        return {key: each(item) for key, item in value.items()}

    return convert


def _inner(kind: ColumnType, form: DataForm) -> Convert | None:
    """Return a converter for an array's items or a map's values, or None when they stay unchanged."""
    assert kind.inner is not None
    inner = reader(kind.inner, form)
    return None if inner is None and form is DataForm.AVRO else or_none(inner or as_it_is)


def _read_union(kind: ColumnType, form: DataForm) -> Convert:
    converts = [or_none(reader(each, form) or as_it_is) for each in kind.branches]
    surely = [(number, _is_of(each, form)) for number, each in enumerate(kind.branches)]
    # whole numbers go to a float branch only when no branch is an int
    surely.sort(key=lambda each: kind.branches[each[0]].name in _REALS)

    def convert(value: Any) -> Any:
        for number, is_of in surely:
            if is_of(value):
                return {f"member{number}": converts[number](value)}
        for number, each in enumerate(converts):
            try:
                return {f"member{number}": each(value)}
            except Misfit:
                continue
        raise Misfit(f"{type(value).__name__} fits no branch of the union")

    return convert


def _is_of(kind: ColumnType, form: DataForm) -> Callable[[Any], bool]:
    """Return a predicate of values: whether a value of a union is of this branch."""
    name = kind.name
    if name == "record":
        names = {each.name for each in kind.fields}
        needed = {each.name for each in kind.fields if form is DataForm.AVRO or not each.kind.nullable}
        return lambda value: isinstance(value, dict) and needed <= value.keys() <= names
    if name == "enum":
        return lambda value: isinstance(value, str) and value in kind.symbols
    if name == "int":
        return lambda value: type(value) is int and -(2**31) <= value < 2**31
    if name == "fixed" and form is DataForm.AVRO:
        return lambda value: isinstance(value, bytes) and len(value) == kind.size
    if name in _REALS:
        return lambda value: type(value) is float or (type(value) is int and form is DataForm.JSON)
    python = (_AVRO_TYPES if form is DataForm.AVRO else _JSON_TYPES).get(name)
    if form is DataForm.AVRO and name.startswith(("timestamp", "local")):
        local = name.startswith("local")
        return lambda value: type(value) is datetime and (value.tzinfo is None) is local
    return lambda value: type(value) is python


_REALS = ("float", "double")
_AVRO_TYPES = {
    "boolean": bool,
    "long": int,
    "string": str,
    "bytes": bytes,
    "uuid": UUID,
    "decimal": Decimal,
    "decimal-text": Decimal,
    "date": date,
    "time-millis": time,
    "time-micros": time,
    "array": list,
    "map": dict,
}
_JSON_TYPES = {
    "boolean": bool,
    "long": int,
    "string": str,
    "array": list,
    "map": dict,
}


def _read_json(kind: ColumnType) -> Convert | None:
    name = kind.name
    unit = json_times.MICROSECONDS.get(name.rpartition("-")[2], 1)
    if name.startswith("timestamp"):
        return json_times.read_moment(unit)
    if name.startswith("local-timestamp"):
        return json_times.read_local(unit)
    if name.startswith("time-"):
        return json_times.read_time(unit)
    if name == "date":
        return json_times.read_date()
    if isinstance(kind.spark, DecimalType):
        return json_times.read_decimal(kind.spark.scale)
    if name in ("int", "long"):
        return _whole
    if name in _REALS:
        return _read_real
    if name in ("bytes", "fixed"):
        return _bytes
    if name == "boolean":
        return _boolean
    return _text


def _boolean(value: Any) -> Any:
    if type(value) is not bool:
        raise expected("a boolean", value)
    return value


def _whole(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise expected("a whole number", value)


def _read_real(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value) if abs(value) < 2**1023 else math.copysign(math.inf, value)
    if value in ("NaN", "Infinity", "-Infinity"):  # Java writes these as text
        return float(value)
    raise expected("a number", value)


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise expected("base64", value) from None


def _text(value: Any) -> Any:
    """Return text, or the JSON of any other value, as Spark's from_json does."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_INTS = (ByteType, ShortType, IntegerType)
TAKES: Mapping[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: _INTS,
    LongType: (*_INTS, LongType),
    ShortType: (ByteType, ShortType),
    FloatType: (FloatType, ByteType, ShortType),
    DoubleType: (DoubleType, FloatType, *_INTS),
}
"""Types that convert to a wider type without loss. Every other type takes only itself."""


def takes(own: DataType, given: DataType) -> bool:
    """Return whether type `own` holds all values of type `given`. Neither type is nested."""
    if isinstance(own, DecimalType) and isinstance(given, DecimalType):
        return given.scale <= own.scale and given.precision - given.scale <= own.precision - own.scale
    return isinstance(given, (*TAKES.get(type(own), (type(own),)), NullType))


def writer(kind: ColumnType, form: DataForm, given: DataType, where: str) -> Convert:
    """Return a converter of a column's values, which may be None, to those of a schema.

    The converter raises `Misfit` for None where the schema requires a value. Raise `BadColumns` when the column's type
    does not fit.
    """
    convert = _some(kind, form, given, where)
    if kind.nullable or kind.name == "null":
        return or_none(convert)

    def needed(value: Any) -> Any:
        if value is None:
            raise Misfit(f"{where} is null, and the topic's schema requires a value there")
        return convert(value)

    return needed


def columns(kind: ColumnType, form: DataForm, given: StructType, where: str) -> list[tuple[str, str, Convert]]:
    """Return each field of a record with its column: the field's name, the column's name, and a converter.

    Raise `BadColumns` for columns without a field. Raise it too for a field without a column that is neither nullable
    nor has a default.
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
            raise BadColumns(
                f"{path} is missing: the topic's schema has this field as {field.kind.spark.simpleString()}"
            )
    if left:
        raise BadColumns(
            f"{where or 'the DataFrame'} has {', '.join(each.name for each in left.values())}, which the topic's "
            f"schema does not have: its fields are {', '.join(each.name for each in kind.fields)}"
        )
    return made


def _some(kind: ColumnType, form: DataForm, given: DataType, where: str) -> Convert:
    form = kind.form or form
    if isinstance(given, NullType):
        return as_it_is
    if kind.name == "record" and isinstance(given, StructType):
        return _write_record(columns(kind, form, given, where))
    if kind.name == "array" and isinstance(given, ArrayType) and kind.inner is not None:
        item = writer(kind.inner, form, given.elementType, f"{where}[]")
        return lambda value: [item(each) for each in value]
    if (
        isinstance(kind.spark, MapType)
        and isinstance(given, MapType)
        and kind.inner is not None
        and (given.keyType == kind.spark.keyType)
    ):
        inner = writer(kind.inner, form, given.valueType, f"{where}[]")
        return lambda value: {key: inner(each) for key, each in _pairs(value)}
    if kind.name == "union" and isinstance(given, StructType):
        return _write_union(kind, form, given, where)
    if kind.name in ("record", "array", "map", "union") or not takes(kind.spark, given):
        raise BadColumns(
            f"{where} is {given.simpleString()}, but the topic's schema has {kind.spark.simpleString()} ({kind.name})"
        )
    return _scalar(kind, form, where)


def _write_record(fields: Sequence[tuple[str, str, Convert]]) -> Convert:
    return lambda value: {name: convert(value.get(column)) for name, column, convert in fields}


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _write_union(kind: ColumnType, form: DataForm, given: StructType, where: str) -> Convert:
    """Return a converter of a struct of members to the value of the one member that is set."""
    members: list[tuple[str, Callable[[Any], Any]]] = []
    for column in given.fields:
        number = column.name.lower().removeprefix("member")
        if not number.isdecimal() or int(number) >= len(kind.branches):
            raise BadColumns(f"{where} has {column.name}, but is a union of {kind.spark.simpleString()}")
        branch = kind.branches[int(number)]
        convert = _some(branch, form, column.dataType, f"{where}.{column.name}")
        members.append((column.name, _named(branch, convert) if form is DataForm.AVRO else convert))

    def chosen(value: Any) -> Any:
        found = [(name, convert) for name, convert in members if value[name] is not None]
        if len(found) != 1:
            if not found and kind.nullable:
                return None
            raise Misfit(f"{where}: {len(found)} members of a union are set: set exactly one")
        name, convert = found[0]
        return convert(value[name])

    return chosen


_PRIMITIVES = ("boolean", "int", "long", "float", "double", "string", "bytes")


def _named(branch: ColumnType, convert: Convert) -> Convert:
    """Return a converter that adds the branch's name, as fastavro requires for these types."""
    if branch.name == "record":
        return lambda value: (branch.full_name, convert(value))
    if branch.name in _PRIMITIVES:
        return lambda value: (branch.name, convert(value))
    return convert


def _scalar(kind: ColumnType, form: DataForm, where: str) -> Convert:
    name = kind.name
    if name == "enum":
        return _checked(lambda value: value in kind.symbols, f"{where}: not a symbol of the enum")
    if name == "fixed":
        right = _checked(lambda value: len(value) == kind.size, f"{where}: not {kind.size} bytes")
        return right if form is DataForm.AVRO else lambda value: _base64(right(value))
    if name in ("float", "double"):
        return float if form is DataForm.AVRO else _write_real
    return as_it_is if form is DataForm.AVRO else _write_json(kind)


def _write_json(kind: ColumnType) -> Convert:
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
        return lambda value: format(value, "f")  # JSON numbers would be read as doubles
    return _base64 if name == "bytes" else as_it_is


def _checked(right: Callable[[Any], bool], reason: str) -> Convert:
    def convert(value: Any) -> Any:
        if not right(value):
            raise Misfit(reason)
        return value

    return convert


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _write_real(value: Any) -> Any:
    """Return a number for JSON, which has no infinity: Java writes NaN and infinities as text."""
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
