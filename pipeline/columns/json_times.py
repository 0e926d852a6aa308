"""Read and write days, times and numbers in JSON.

They are written as numbers in the unit of the logical type. Numbers are read, and also the forms in which Java's
Jackson writes java.time: lists of [year, month, day, hour, minute, second, nanoseconds], seconds with a decimal point,
and text in ISO 8601.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from pulsarium.client.bulk import EPOCH, expected

_MIDNIGHT = EPOCH.replace(tzinfo=None)
_DAY = 86_400_000_000  # microseconds
_MICROSECOND = timedelta(microseconds=1)
MICROSECONDS: Mapping[str, int] = {"millis": 1000, "micros": 1}
"""Microseconds in one unit of a logical type, by the end of the type's name."""


def _lenient(convert: Callable[[Any], Any], what: str) -> Callable[[Any], Any]:
    """Return a converter that raises `Misfit` for any value that `convert` fails for."""

    def converted(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, OverflowError, TypeError, InvalidOperation, IndexError):
            raise expected(what, value) from None

    return converted


def read_date() -> Callable[[Any], date]:
    """Return a reader of days since the epoch, lists and text."""

    def read(value: Any) -> date:
        if type(value) is int:
            return EPOCH.date() + timedelta(days=value)
        return date(*value) if isinstance(value, list) else date.fromisoformat(value)

    return _lenient(read, "a day")


def read_time(unit: int) -> Callable[[Any], time]:
    """Return a reader of times of day. `unit` is in microseconds."""

    def read(value: Any) -> time:
        if type(value) is int:
            if not 0 <= value * unit < _DAY:
                raise ValueError
            return (_MIDNIGHT + value * unit * _MICROSECOND).time()
        return _time_of(value) if isinstance(value, list) else time.fromisoformat(value)

    return _lenient(read, "a time of day")


def read_moment(unit: int) -> Callable[[Any], datetime]:
    """Return a reader of datetimes in UTC. `unit` is in microseconds."""

    def read(value: Any) -> datetime:
        if type(value) is int:
            return EPOCH + value * unit * _MICROSECOND
        if isinstance(value, float):  # Java's fraction is never negative: -1.9 stands for -0.1 s
            whole = int(value)
            return EPOCH + timedelta(seconds=whole + abs(value - whole))
        found = datetime.fromisoformat(value)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

    return _lenient(read, "a moment")


def read_local(unit: int) -> Callable[[Any], datetime]:
    """Return a reader of datetimes without a zone. `unit` is in microseconds."""

    def read(value: Any) -> datetime:
        if type(value) is int:
            return _MIDNIGHT + value * unit * _MICROSECOND
        if isinstance(value, list):
            return datetime.combine(date(*value[:3]), _time_of(value[3:]))
        return datetime.fromisoformat(value).replace(tzinfo=None)

    return _lenient(read, "a date and time")


def read_decimal(scale: int) -> Callable[[Any], Decimal]:
    """Return a reader of numbers and text that loses no digits."""

    def read(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise TypeError
        found = Decimal(str(value))
        exact = found.quantize(Decimal(1).scaleb(-scale))
        if exact != found:
            raise ValueError
        return exact

    return _lenient(read, f"a decimal of {scale} decimal places")


def _time_of(parts: list[int]) -> time:
    hour, minute, second, nanoseconds = [*parts, 0, 0][:4]  # Jackson omits trailing zeros
    return time(hour, minute, second, nanoseconds // 1000)


def write_date(value: date) -> int:
    return (value - EPOCH.date()).days


def write_time(unit: int) -> Callable[[time], int]:
    return lambda value: (datetime.combine(_MIDNIGHT, value) - _MIDNIGHT) // (unit * _MICROSECOND)


def write_moment(unit: int) -> Callable[[datetime], int]:
    return lambda value: (value - EPOCH) // (unit * _MICROSECOND)


def write_local(unit: int) -> Callable[[datetime], int]:
    return lambda value: (value - _MIDNIGHT) // (unit * _MICROSECOND)
