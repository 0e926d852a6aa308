"""Schemas of single values, encoded as in Java clients: numbers are big-endian, and times are numbers."""

from __future__ import annotations

import struct
from datetime import date, datetime, time, timedelta
from typing import Any, ClassVar, Generic

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.nodes import EPOCH, Misfit, from_milliseconds, to_milliseconds
from pulsarium.client.schema.schema import Schema, SchemaInfo, T
from pulsarium.proto.generated import PulsarApi_pb2 as pb

_DAY = 86_400_000  # ms
_MIDNIGHT = datetime(1970, 1, 1)  # noqa: DTZ001  # of local times, which have no zone
_EPOCH_DAY = _MIDNIGHT.date()
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)


class StringSchema(Schema[str]):
    """A text in UTF-8."""

    info: SchemaInfo = SchemaInfo(pb.Schema.String, name="String")

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise _wrong(self, "str", value)
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise InvalidMessage(f"StringSchema: {error.reason}") from None

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InvalidMessage(f"StringSchema: {error.reason} at byte {error.start}") from None


class _Fixed(Schema[T], Generic[T]):
    """A value of a fixed number of bytes, which hold one number or two."""

    _kind: ClassVar[Any]
    _layout: ClassVar[struct.Struct]

    def encode(self, value: T) -> bytes:
        if not isinstance(value, self._kind) or (isinstance(value, bool) and self._kind is not bool):
            raise _wrong(self, getattr(self._kind, "__name__", "float"), value)
        try:
            return self._layout.pack(*self._numbers(value))
        except Misfit as error:
            raise InvalidMessage(f"{type(self).__name__}: {error}") from None
        except (struct.error, OverflowError):
            raise InvalidMessage(f"{type(self).__name__}: {value} does not fit") from None

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> T:
        if len(data) != self._layout.size:
            raise InvalidMessage(f"{type(self).__name__}: {len(data)} bytes, not {self._layout.size}")
        try:
            return self._value(*self._layout.unpack(data))
        except (Misfit, ValueError, OverflowError) as error:
            raise InvalidMessage(f"{type(self).__name__}: {error}") from None

    def _numbers(self, value: Any) -> tuple[Any, ...]:
        return (value,)

    def _value(self, *numbers: Any) -> T:
        value: T = numbers[0]
        return value


class BooleanSchema(_Fixed[bool]):
    """A bool in one byte."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Bool, name="Boolean")
    _kind = bool
    _layout = struct.Struct("?")


class Int8Schema(_Fixed[int]):
    """A signed integer of 1 byte."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Int8, name="INT8")
    _kind = int
    _layout = struct.Struct(">b")


class Int16Schema(_Fixed[int]):
    """A signed integer of 2 bytes."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Int16, name="INT16")
    _kind = int
    _layout = struct.Struct(">h")


class Int32Schema(_Fixed[int]):
    """A signed integer of 4 bytes."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Int32, name="INT32")
    _kind = int
    _layout = struct.Struct(">i")


class Int64Schema(_Fixed[int]):
    """A signed integer of 8 bytes."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Int64, name="INT64")
    _kind = int
    _layout = struct.Struct(">q")


class FloatSchema(_Fixed[float]):
    """A float of 4 bytes, which rounds the value to about 7 digits."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Float, name="Float")
    _kind = (int, float)
    _layout = struct.Struct(">f")


class DoubleSchema(_Fixed[float]):
    """A float of 8 bytes."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Double, name="Double")
    _kind = (int, float)
    _layout = struct.Struct(">d")


class TimestampSchema(_Fixed[datetime]):
    """A datetime with a time zone, in milliseconds since the epoch. The decoded value is in UTC."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Timestamp, name="Timestamp")
    _kind = datetime
    _layout = struct.Struct(">q")

    def _numbers(self, value: datetime) -> tuple[int]:
        return (to_milliseconds(value),)

    def _value(self, *numbers: int) -> datetime:
        return from_milliseconds(numbers[0])


class DateSchema(TimestampSchema):
    """A datetime with a time zone, in milliseconds, as Java's `java.util.Date`. For a day, use `LocalDateSchema`."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Date, name="Date")


class TimeSchema(_Fixed[time]):
    """A time of day in UTC, in milliseconds since midnight."""

    info: SchemaInfo = SchemaInfo(pb.Schema.Time, name="Time")
    _kind = time
    _layout = struct.Struct(">q")

    def _numbers(self, value: time) -> tuple[int]:
        return (_since_midnight(value) // 1000,)

    def _value(self, *numbers: int) -> time:
        # a Java Time may include the day of the epoch, or another day
        return (EPOCH + timedelta(milliseconds=numbers[0] % _DAY)).time()


class InstantSchema(_Fixed[datetime]):
    """A datetime with a time zone, in seconds and nanoseconds since the epoch.

    It is exact to the microsecond. The decoded value is in UTC.
    """

    info: SchemaInfo = SchemaInfo(pb.Schema.Instant, name="Instant")
    _kind = datetime
    _layout = struct.Struct(">qi")

    def _numbers(self, value: datetime) -> tuple[int, int]:
        if value.tzinfo is None:
            raise Misfit("a datetime without a time zone")
        seconds, rest = divmod(value - EPOCH, _SECOND)
        return seconds, rest // _MICROSECOND * 1000

    def _value(self, *numbers: int) -> datetime:
        return EPOCH + timedelta(seconds=numbers[0], microseconds=numbers[1] // 1000)


class LocalDateSchema(_Fixed[date]):
    """A date, in days since the epoch."""

    info: SchemaInfo = SchemaInfo(pb.Schema.LocalDate, name="LocalDate")
    _kind = date
    _layout = struct.Struct(">q")

    def _numbers(self, value: date) -> tuple[int]:
        if isinstance(value, datetime):
            raise Misfit("date, not datetime")
        return ((value - _EPOCH_DAY).days,)

    def _value(self, *numbers: int) -> date:
        return _EPOCH_DAY + timedelta(days=numbers[0])


class LocalTimeSchema(_Fixed[time]):
    """A time of day without a time zone, in nanoseconds since midnight, exact to the microsecond."""

    info: SchemaInfo = SchemaInfo(pb.Schema.LocalTime, name="LocalTime")
    _kind = time
    _layout = struct.Struct(">q")

    def _numbers(self, value: time) -> tuple[int]:
        return (_since_midnight(value) * 1000,)

    def _value(self, *numbers: int) -> time:
        return _time_of(numbers[0])


class LocalDateTimeSchema(_Fixed[datetime]):
    """A datetime without a time zone, in days since the epoch and nanoseconds of the day, exact to the microsecond."""

    info: SchemaInfo = SchemaInfo(pb.Schema.LocalDateTime, name="LocalDateTime")
    _kind = datetime
    _layout = struct.Struct(">qq")

    def _numbers(self, value: datetime) -> tuple[int, int]:
        if value.tzinfo is not None:
            raise Misfit("a datetime with a time zone, which the schema cannot store")
        return (value.date() - _EPOCH_DAY).days, _since_midnight(value.time()) * 1000

    def _value(self, *numbers: int) -> datetime:
        return datetime.combine(_EPOCH_DAY + timedelta(days=numbers[0]), _time_of(numbers[1]))


def _since_midnight(value: time) -> int:
    """Return the microseconds since midnight. Raise `Misfit` for a time with a time zone."""
    if value.tzinfo is not None:
        raise Misfit("a time with a time zone, which the schema cannot store")
    return (datetime.combine(_EPOCH_DAY, value) - _MIDNIGHT) // _MICROSECOND


def _time_of(nanoseconds: int) -> time:
    if not 0 <= nanoseconds < _DAY * 1_000_000:
        raise Misfit(f"{nanoseconds} ns are no time of day")
    return (_MIDNIGHT + timedelta(microseconds=nanoseconds // 1000)).time()


def _wrong(schema: Schema[Any], kind: str, value: Any) -> InvalidMessage:
    return InvalidMessage(f"{type(schema).__name__} takes {kind}, not {type(value).__name__}")
