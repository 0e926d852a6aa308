"""Read and write Protobuf messages as records, by the descriptor that the registry has.

Numbers without a sign are of the next wider type, because Spark has none. A field that may be absent is null where it
is, and any other field has its default. `google.protobuf.Timestamp` is a timestamp. The value of an enum that its
definition does not have is its number as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pulsarium.client import Schema, SchemaInfo
from pulsarium.client.bulk import EPOCH, message_of
from pulsarium.client.errors import InvalidMessage
from pulsarium.pipeline.columns.kinds import ColumnType, NoKind, RecordField, no_twins

_TIMESTAMP = "google.protobuf.Timestamp"
_SCALARS: Mapping[int, tuple[str, DataType]] = {
    FieldDescriptor.CPPTYPE_INT32: ("int", IntegerType()),
    FieldDescriptor.CPPTYPE_INT64: ("long", LongType()),
    FieldDescriptor.CPPTYPE_UINT32: ("long", LongType()),
    FieldDescriptor.CPPTYPE_UINT64: ("decimal", DecimalType(20, 0)),
    FieldDescriptor.CPPTYPE_FLOAT: ("float", FloatType()),
    FieldDescriptor.CPPTYPE_DOUBLE: ("double", DoubleType()),
    FieldDescriptor.CPPTYPE_BOOL: ("boolean", BooleanType()),
    FieldDescriptor.CPPTYPE_ENUM: ("string", StringType()),
    FieldDescriptor.CPPTYPE_STRING: ("string", StringType()),
}


def record_of(info: SchemaInfo) -> ColumnType:
    """Return the record of a Protobuf definition.

    Raise `NoKind` for a message that contains itself, or has no fields, and `BadColumns` for fields that differ only in
    upper and lower case. Raise `InvalidMessage` for a definition that cannot be used.
    """
    try:
        kind = _Reader().message(message_of(info).DESCRIPTOR)
    except RecursionError:
        raise NoKind("messages that are nested too deeply") from None
    if not kind.fields:
        raise NoKind("a message without fields")
    return kind


class _Reader:
    """Reader of one definition. It reads each message once, however many fields are of its type."""

    def __init__(self) -> None:
        self._known: dict[str, ColumnType | None] = {}  # None while the message is being read

    def message(self, descriptor: Any) -> ColumnType:
        name = descriptor.full_name
        if name not in self._known:
            self._known[name] = None
            self._known[name] = _moment_kind(descriptor) if name == _TIMESTAMP else self._record(descriptor)
        found = self._known[name]
        if found is None:
            raise NoKind(f"the message {name} contains itself")
        return found

    def _record(self, descriptor: Any) -> ColumnType:
        name = descriptor.full_name
        fields = tuple(RecordField(each.name, self._field(each), False) for each in descriptor.fields)
        no_twins([each.name for each in fields], f"the message {name}")
        struct = StructType([StructField(each.name, each.kind.spark) for each in fields])
        return ColumnType("record", struct, nullable=True, fields=fields, full_name=name)

    def _field(self, field: Any) -> ColumnType:
        if _is_map(field):
            key, value = (self._single(field.message_type.fields_by_name[each]) for each in ("key", "value"))
            return ColumnType("map", MapType(key.spark, value.spark), nullable=True, inner=_needed(value))
        single = self._single(field)
        if field.is_repeated:
            return ColumnType("array", ArrayType(single.spark), nullable=True, inner=_needed(single))
        return _needed(single) if field.is_required else single

    def _single(self, field: Any) -> ColumnType:
        if field.message_type is not None:
            return self.message(field.message_type)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return ColumnType("bytes", BinaryType(), nullable=True)
        name, spark = _SCALARS[field.cpp_type]
        return ColumnType(name, spark, nullable=True)


def _moment_kind(descriptor: Any) -> ColumnType:
    parts = {each.name: each.type for each in descriptor.fields}
    if parts != {"seconds": FieldDescriptor.TYPE_INT64, "nanos": FieldDescriptor.TYPE_INT32}:
        raise NoKind(f"{_TIMESTAMP} with fields of its own")
    return ColumnType("timestamp-micros", TimestampType(), nullable=True)


def _needed(kind: ColumnType) -> ColumnType:
    return replace(kind, nullable=False)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


class ProtobufRecords(Schema[dict[str, Any]]):
    """A schema of Protobuf messages whose values are dicts."""

    def __init__(self, info: SchemaInfo) -> None:
        """Prepare the definition of the registry. Raise `InvalidMessage` when it cannot be used."""
        self.info: SchemaInfo = info
        self._message = message_of(info)
        self._plan = _plan_of(self._message.DESCRIPTOR, {})

    def encode(self, value: dict[str, Any]) -> bytes:
        made = self._message()
        try:
            self._plan.fill(made, value)
            return self._message.SerializeToString(made, deterministic=True)
        except (EncodeError, ValueError, TypeError, OverflowError) as error:
            raise InvalidMessage(f"{self._message.DESCRIPTOR.full_name}: {error}") from error

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._plan.read(self._message.FromString(data))
        except (DecodeError, OverflowError) as error:
            raise InvalidMessage(f"{self._message.DESCRIPTOR.full_name}: {error}") from error
        return found


class _Plan:
    """Reader and writer of the messages of one type.

    Methods of messages are those of the class, because a field of a message may have the name of a method.
    """

    def __init__(self, descriptor: Any, known: dict[str, _Plan]) -> None:
        known[descriptor.full_name] = self  # first, because the message may contain itself
        self._of: Any = GetMessageClass(descriptor)
        self._getters = [(each.name, self._getter(each, known)) for each in descriptor.fields]
        self._setters = [(each.name, self._setter(each, known)) for each in descriptor.fields]

    def read(self, message: Any) -> Any:
        return {name: get(message) for name, get in self._getters}

    def fill(self, message: Any, value: Any) -> None:
        """Set the fields that are not null."""
        for name, put in self._setters:
            given = value.get(name)
            if given is not None:
                put(message, given)

    def enter(self, message: Any, value: Any) -> None:
        """Set a message within another. The other has it then, even if no field of it is set."""
        self._of.SetInParent(message)
        self.fill(message, value)

    def _getter(self, field: Any, known: dict[str, _Plan]) -> Callable[[Any], Any]:
        get = attrgetter(field.name)
        if _is_map(field):
            key_of, of = (_reader(field.message_type.fields_by_name[each], known) for each in ("key", "value"))
            # sorted, because a repeated batch must have the same rows
            return lambda message: {key_of(key): of(pairs[key]) for pairs in [get(message)] for key in sorted(pairs)}
        read = _reader(field, known)
        if field.is_repeated:
            return lambda message: [*map(read, get(message))]
        if field.has_presence:
            has, name = self._of.HasField, field.name
            return lambda message: read(get(message)) if has(message, name) else None
        return get if read is _same else lambda message: read(get(message))

    def _setter(self, field: Any, known: dict[str, _Plan]) -> Callable[[Any, Any], None]:
        put = _putter(field, known)
        oneof, which = field.containing_oneof, self._of.WhichOneof
        if oneof is None or len(oneof.fields) == 1:
            return put

        def put_alone(message: Any, value: Any) -> None:
            if which(message, oneof.name) is not None:
                raise ValueError(f"several fields of the oneof {oneof.name} are set: set at most one")
            put(message, value)

        return put_alone


class _MomentPlan(_Plan):
    """Reader and writer of `google.protobuf.Timestamp`."""

    def read(self, message: Any) -> Any:
        return EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)

    def fill(self, message: Any, value: Any) -> None:
        since = value - EPOCH
        message.seconds, message.nanos = since.days * 86_400 + since.seconds, since.microseconds * 1000


def _plan_of(descriptor: Any, known: dict[str, _Plan]) -> _Plan:
    """Return the plan of a type, which is made once for all fields of the type."""
    of = _MomentPlan if descriptor.full_name == _TIMESTAMP else _Plan
    return known.get(descriptor.full_name) or of(descriptor, known)


def _reader(field: Any, known: dict[str, _Plan]) -> Callable[[Any], Any]:
    """Return a converter of one value of a field."""
    if field.message_type is not None:
        return _plan_of(field.message_type, known).read
    if field.enum_type is not None:
        # the first of several names of a number, as Protobuf itself has it
        names = {each.number: each.name for each in reversed(field.enum_type.values)}
        return lambda number: names.get(number) or str(number)
    return Decimal if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else _same


def _same(value: Any) -> Any:
    return value


def _putter(field: Any, known: dict[str, _Plan]) -> Callable[[Any, Any], None]:
    """Return a function that sets a field of a message to a value that is not null."""
    get, name = attrgetter(field.name), field.name
    if _is_map(field):
        return _map_putter(field, known)
    if field.message_type is None:
        write = _writer(field)
        if field.is_repeated:
            return lambda message, values: get(message).extend(map(write, values))
        return lambda message, value: setattr(message, name, write(value))
    plan = _plan_of(field.message_type, known)
    if not field.is_repeated:
        return lambda message, value: plan.enter(get(message), value)

    def put_each(message: Any, values: Any) -> None:
        place = get(message)
        for each in values:
            plan.fill(place.add(), each)

    return put_each


def _map_putter(field: Any, known: dict[str, _Plan]) -> Callable[[Any, Any], None]:
    get, of = attrgetter(field.name), field.message_type.fields_by_name["value"]
    key_of = _writer(field.message_type.fields_by_name["key"])
    plan = None if of.message_type is None else _plan_of(of.message_type, known)
    write = _writer(of)

    def put(message: Any, pairs: Any) -> None:
        place = get(message)
        for key, value in pairs.items():
            if plan is None:
                place[key_of(key)] = write(value)
            else:
                plan.fill(place[key_of(key)], value)

    return put


def _writer(field: Any) -> Callable[[Any], Any]:
    """Return a converter of a value of a field. The values of a field of messages stay."""
    if field.enum_type is not None:
        return partial(_number_of, field.enum_type)
    return int if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else _same


def _number_of(enum: Any, name: str) -> int:
    if name in enum.values_by_name:
        number: int = enum.values_by_name[name].number
        return number
    try:
        return int(name)
    except ValueError:
        raise ValueError(f"{name[:100]!r} is no value of the enum {enum.full_name}") from None
