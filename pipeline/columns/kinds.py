"""Map types of Avro to types of Spark.

The mapping is that of Spark's own Avro reader. Enums are strings, and fixed is binary. A union with null is its other
branch, one of int and long is a long, and one of float and double is a double. Any other union is a struct of
`member0`, `member1`, ... (null is not counted), of which one is set. Two branches that are alike, such as records of
the same fields, or a string and an enum, cannot be told apart: the first one is set. Every type is nullable.

Logical types: date, timestamp-millis and -micros (timestamp), local-timestamp-millis and -micros (timestamp_ntz),
decimal and uuid (string). time-millis and -micros are times, which Spark's reader leaves as numbers. A decimal of more
than 38 digits is a string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
)

if TYPE_CHECKING:
    from pulsarium.client.bulk import DataForm


class BadColumns(ValueError):
    """Columns that do not fit the topic's schema, or that no schema can be derived from."""


class BadMessage(ValueError):
    """A message that does not fit its topic's schema. The error names the topic and the message id."""


class BadRow(ValueError):
    """A row that does not fit the topic's schema, such as a null or an unknown enum symbol.

    The error names the column.
    """

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(reason)
        self.row = row
        """The number of the row in its record batch."""


MOST_DIGITS = 38  # of a decimal in Spark and Arrow
MOST_FIELDS = 10_000  # of a record, with those of all records in it
MOST_LEVELS = 100  # of types inside one another: Protobuf itself reads no more


class NoKind(Exception):
    """A definition that Spark has no type for."""


@dataclass(frozen=True)
class ColumnType:
    """A type of an Avro definition, and its type in Spark."""

    name: str
    """Avro's name, or that of the logical type. "decimal-text" is a decimal with too many digits for Spark."""
    spark: DataType
    nullable: bool = False
    fields: tuple[RecordField, ...] = ()
    """Fields of a record."""
    inner: ColumnType | None = None
    """Type of an array's items or a map's values."""
    branches: tuple[ColumnType, ...] = ()
    """Branches of a union, without null."""
    full_name: str = ""
    """Full name of a record, enum or fixed."""
    symbols: frozenset[str] = frozenset()
    """Symbols of an enum."""
    size: int = -1
    """Size of a fixed, in bytes."""
    form: DataForm | None = None
    """The form of the values, where it is not that of the record around them."""


@dataclass(frozen=True)
class RecordField:
    """A field of a record."""

    name: str
    kind: ColumnType
    has_default: bool


_SIMPLE: Mapping[str, Callable[[], DataType]] = {
    "null": StringType,
    "boolean": BooleanType,
    "int": IntegerType,
    "long": LongType,
    "float": FloatType,
    "double": DoubleType,
    "bytes": BinaryType,
    "string": StringType,
}
_LOGICAL: Mapping[tuple[str, str], Callable[[], DataType]] = {
    ("int", "date"): DateType,
    ("int", "time-millis"): lambda: TimeType(6),
    ("long", "time-micros"): lambda: TimeType(6),
    ("long", "timestamp-millis"): TimestampType,
    ("long", "timestamp-micros"): TimestampType,
    ("long", "local-timestamp-millis"): TimestampNTZType,
    ("long", "local-timestamp-micros"): TimestampNTZType,
    ("string", "uuid"): StringType,
}
_WIDER = {frozenset(("int", "long")): "long", frozenset(("float", "double")): "double"}


def record_kind(definition: Mapping[str, Any]) -> ColumnType:
    """Return the record of an Avro definition.

    Raise `NoKind` for a record that contains itself, has no fields, or is broken. Raise `BadColumns` for fields that
    differ only in upper and lower case, which Spark does not tell apart.
    """
    try:
        kind = _Reader().kind(definition, "")
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NoKind(f"a broken definition: {error!r}") from error
    if not kind.fields:
        raise NoKind("a record without fields")
    return kind


def no_twins(names: list[str], where: str) -> None:
    """Raise `BadColumns` for names that Spark does not tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.lower(), name)
        if first is not name:
            raise BadColumns(f"{where} has {first!r} and {name!r}: Spark does not distinguish upper and lower case")


def check_extent(kind: ColumnType) -> None:
    """Raise `NoKind` for a record with more than `MOST_FIELDS` fields in all, or more than `MOST_LEVELS` levels.

    A short definition can have any number of fields, when each of its records has several fields of the next one.
    """
    try:
        fields, levels = _extent(kind, {})
    except RecursionError:
        raise NoKind("a record that is nested too deeply") from None
    if fields > MOST_FIELDS or levels > MOST_LEVELS:
        raise NoKind(f"{fields} fields on {levels} levels")


def _extent(kind: ColumnType, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of fields, and of levels. Each type is counted once, however many fields are of it."""
    if id(kind) not in known:
        inner = [*(each.kind for each in kind.fields), *kind.branches, *([kind.inner] if kind.inner else ())]
        found = [_extent(each, known) for each in inner]
        known[id(kind)] = 1 + sum(fields for fields, _ in found), 1 + max((levels for _, levels in found), default=0)
    return known[id(kind)]


class _Reader:
    """Reader of one definition, which may refer to a type by name after defining it."""

    def __init__(self) -> None:
        self._named: dict[str, ColumnType | None] = {}  # None while the type is being read

    def kind(self, schema: Any, namespace: str) -> ColumnType:
        if isinstance(schema, list):
            return self._union(schema, namespace)
        if isinstance(schema, str):
            return ColumnType(schema, _SIMPLE[schema]()) if schema in _SIMPLE else self._known(schema, namespace)
        name = schema["type"]
        if isinstance(name, (dict, list)):
            return self.kind(name, namespace)
        if name in ("record", "error"):
            return self._record(schema, namespace)
        if name == "array":
            item = self.kind(schema["items"], namespace)
            return ColumnType(name, ArrayType(item.spark), inner=item)
        if name == "map":
            value = self.kind(schema["values"], namespace)
            return ColumnType(name, MapType(StringType(), value.spark), inner=value)
        logical = schema.get("logicalType")
        if name == "enum":
            return self._name(ColumnType(name, StringType(), symbols=frozenset(schema["symbols"])), schema, namespace)
        if name == "fixed":
            decimal = _decimal(schema) if logical == "decimal" else None
            return self._name(decimal or ColumnType(name, BinaryType(), size=schema["size"]), schema, namespace)
        if name == "bytes" and logical == "decimal":
            return _decimal(schema)
        if logical is not None and (name, logical) in _LOGICAL:
            return ColumnType(logical, _LOGICAL[name, logical]())
        return self.kind(name, namespace)

    def _union(self, branches: list[Any], namespace: str) -> ColumnType:
        nullable = "null" in branches or {"type": "null"} in branches
        kinds = tuple(self.kind(each, namespace) for each in branches if each not in ("null", {"type": "null"}))
        if len(kinds) == 1:
            return _or_null(kinds[0], nullable)
        if not kinds:
            return ColumnType("null", StringType(), nullable=True)
        wider = _WIDER.get(frozenset(each.name for each in kinds)) if len(kinds) == 2 else None
        if wider is not None:
            return ColumnType(wider, _SIMPLE[wider](), nullable)
        members = StructType([StructField(f"member{number}", each.spark) for number, each in enumerate(kinds)])
        return ColumnType("union", members, nullable, branches=kinds)

    def _record(self, schema: Mapping[str, Any], namespace: str) -> ColumnType:
        full, inside = _full_name(schema["name"], schema.get("namespace", namespace))
        self._named[full] = None
        fields = tuple(
            RecordField(each["name"], self.kind(each["type"], inside), "default" in each) for each in schema["fields"]
        )
        no_twins([each.name for each in fields], f"the record {full}")
        struct = StructType([StructField(each.name, each.kind.spark) for each in fields])
        self._named[full] = made = ColumnType("record", struct, fields=fields, full_name=full)
        return made

    def _name(self, kind: ColumnType, schema: Mapping[str, Any], namespace: str) -> ColumnType:
        full, _ = _full_name(schema["name"], schema.get("namespace", namespace))
        self._named[full] = kind
        return kind

    def _known(self, name: str, namespace: str) -> ColumnType:
        full, _ = _full_name(name, namespace)
        found = self._named[full if full in self._named else name]
        if found is None:
            raise NoKind(f"the record {full} contains itself")
        return found


def _full_name(name: str, namespace: str) -> tuple[str, str]:
    """Return the full name of a type, and its namespace."""
    if "." in name:
        return name, name.rpartition(".")[0]
    return (f"{namespace}.{name}" if namespace else name), namespace


def _decimal(schema: Mapping[str, Any]) -> ColumnType:
    precision, scale = schema["precision"], schema.get("scale", 0)
    if 0 < precision <= MOST_DIGITS and 0 <= scale <= precision:
        return ColumnType("decimal", DecimalType(precision, scale))
    return ColumnType("decimal-text", StringType())


def _or_null(kind: ColumnType, nullable: bool) -> ColumnType:
    if not nullable or kind.nullable:
        return kind
    return replace(kind, nullable=True)
