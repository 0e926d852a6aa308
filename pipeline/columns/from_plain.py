"""From what the client's schemas give (fastavro's values, or JSON's) to what pyarrow takes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

from pyspark.sql.types import DecimalType

from pulsarium.client.bulk import Form, Misfit, expected
from pulsarium.pipeline.columns import json_times
from pulsarium.pipeline.columns.kinds import Kind

Convert: TypeAlias = Callable[[Any], Any]
"""Never gets None. Raises Misfit."""


def reader(kind: Kind, form: Form) -> Convert | None:
    """None where pyarrow takes the values as they are."""
    if kind.name == "record":
        return _record(kind, form)
    if kind.name == "array":
        return _array(kind, form)
    if kind.name == "map":
        return _map(kind, form)
    if kind.branches:
        return _union(kind, form)
    if form is Form.JSON:
        return _json(kind)
    if kind.name in ("uuid", "decimal-text"):
        return str
    return None


def as_it_is(value: Any) -> Any:
    return value


def or_none(convert: Convert) -> Convert:
    """The same for values that may be None."""
    return lambda value: None if value is None else convert(value)


def _record(kind: Kind, form: Form) -> Convert | None:
    converts = [(each.name, reader(each.kind, form)) for each in kind.fields]
    if form is Form.AVRO and all(each is None for _, each in converts):
        return None
    made = [(name, or_none(each or as_it_is)) for name, each in converts]

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise expected("a record", value)
        return {name: each(value.get(name)) for name, each in made}

    return convert


def _array(kind: Kind, form: Form) -> Convert | None:
    each = _inner(kind, form)
    if each is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, list):
            raise expected("an array", value)
        return [each(item) for item in value]

    return convert


def _map(kind: Kind, form: Form) -> Convert | None:
    each = _inner(kind, form)
    if each is None:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise expected("a map", value)
        return {key: each(item) for key, item in value.items()}

    return convert


def _inner(kind: Kind, form: Form) -> Convert | None:
    """Of the items of an array, or the values of a map; None where the whole may stay as it is."""
    assert kind.inner is not None
    inner = reader(kind.inner, form)
    return None if inner is None and form is Form.AVRO else or_none(inner or as_it_is)


def _union(kind: Kind, form: Form) -> Convert:
    converts = [or_none(reader(each, form) or as_it_is) for each in kind.branches]
    surely = [(number, _is_of(each, form)) for number, each in enumerate(kind.branches)]
    surely.sort(key=lambda each: kind.branches[each[0]].name in _REALS)  # a whole number is one only without an int

    def convert(value: Any) -> Any:
        for number, is_of in surely:
            if is_of(value):
                return {f"member{number}": converts[number](value)}
        for number, each in enumerate(converts):
            try:
                return {f"member{number}": each(value)}
            except Misfit:
                continue
        raise Misfit(f"{type(value).__name__} is in no branch of the union")

    return convert


def _is_of(kind: Kind, form: Form) -> Callable[[Any], bool]:
    """Whether a value of a union is of that branch."""
    name = kind.name
    if name == "record":
        names = {each.name for each in kind.fields}
        needed = {each.name for each in kind.fields if form is Form.AVRO or not each.kind.nullable}
        return lambda value: isinstance(value, dict) and needed <= value.keys() <= names
    if name == "enum":
        return lambda value: isinstance(value, str) and value in kind.symbols
    if name == "int":
        return lambda value: type(value) is int and -(2**31) <= value < 2**31
    if name == "fixed" and form is Form.AVRO:
        return lambda value: isinstance(value, bytes) and len(value) == kind.size
    if name in _REALS:
        return lambda value: type(value) is float or (type(value) is int and form is Form.JSON)
    python = (_AVRO_TYPES if form is Form.AVRO else _JSON_TYPES).get(name)
    if form is Form.AVRO and name.startswith(("timestamp", "local")):
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


def _json(kind: Kind) -> Convert | None:
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
        return _real
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


def _real(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value) if abs(value) < 2**1023 else math.copysign(math.inf, value)
    if value in ("NaN", "Infinity", "-Infinity"):  # as Java writes them
        return float(value)
    raise expected("a number", value)


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        raise expected("base64", value) from None


def _text(value: Any) -> Any:
    """What is no text is shown as JSON, as Spark's from_json has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
