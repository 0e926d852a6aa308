"""Convert the values of a record to plain data and back, and check them. Plain data is for an Avro library or JSON."""

from __future__ import annotations

import base64
import enum
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class DataForm(enum.Enum):
    """The use of plain data. The forms differ in bytes, times, and numbers that are not finite."""

    AVRO = "avro"
    JSON = "json"
    DEFAULT = "default"
    """The default of a field, in an Avro definition."""


class Misfit(Exception):
    """A value that does not fit the record."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []

    def inside(self, name: str) -> Misfit:
        """Add an outer name to the path of the value, and return the error."""
        self.path.insert(0, name)
        return self

    def __str__(self) -> str:
        where = "".join(self.path).removeprefix(".")
        return f"{where}: {self.args[0]}" if where else str(self.args[0])


class SchemaNode(Protocol):
    """A type of values. `dump` and `load` raise `Misfit`."""

    definition: Any
    """The type's Avro definition, for its first use in a schema."""

    def dump(self, value: Any, form: DataForm) -> Any: ...

    def load(self, data: Any, form: DataForm) -> Any: ...


class Scalar:
    """A value that is the same in plain data."""

    def __init__(self, definition: str, kind: type, check: Callable[[Any], str | None] | None = None) -> None:
        """Make a type whose `check` returns the fault of a value, or None."""
        self.definition = definition
        self._kind = kind
        self._check = check

    def dump(self, value: Any, form: DataForm) -> Any:
        if not isinstance(value, self._kind) or (self._kind is int and isinstance(value, bool)):
            raise expected(self._kind.__name__, value)
        if self._check is not None and (reason := self._check(value)):
            raise Misfit(reason)
        return value

    def load(self, data: Any, form: DataForm) -> Any:
        return self.dump(data, form)


class Real:
    """A float, or a whole number. JSON has no infinity and no NaN, so Java writes them as texts."""

    _NAMES = ("NaN", "Infinity", "-Infinity")

    def __init__(self, definition: str) -> None:
        self.definition = definition
        # a double beyond this rounds to infinity in 4 bytes
        self._most = 3.4028235677973366e38 if definition == "float" else math.inf

    def dump(self, value: Any, form: DataForm) -> Any:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise expected("float", value)
        try:
            number = float(value)
        except OverflowError:
            raise Misfit("too large for a double") from None
        if math.isfinite(number):
            if abs(number) >= self._most:
                raise Misfit(f"{number!r} is too large for a float of 4 bytes")
            return number
        if form is DataForm.AVRO:
            return number
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"

    def load(self, data: Any, form: DataForm) -> Any:
        if type(data) is str and data in self._NAMES:
            return float(data)
        if type(data) not in (int, float):
            raise expected("float", data)
        try:
            return float(data)
        except OverflowError:
            raise Misfit("too large for a double") from None


class Binary:
    """Bytes. In JSON they are base64, as in Java."""

    definition = "bytes"

    def dump(self, value: Any, form: DataForm) -> Any:
        if not isinstance(value, bytes):
            raise expected("bytes", value)
        if form is DataForm.AVRO:
            return value
        return base64.b64encode(value).decode() if form is DataForm.JSON else value.decode("latin-1")

    def load(self, data: Any, form: DataForm) -> Any:
        if form is DataForm.AVRO and type(data) is bytes:
            return data
        if type(data) is not str:
            raise expected("bytes", data)
        try:  # in Avro, only a default is a text
            return base64.b64decode(data, validate=True) if form is DataForm.JSON else data.encode("latin-1")
        except ValueError:
            raise Misfit("no base64" if form is DataForm.JSON else "no bytes") from None


class Moment:
    """A datetime with a time zone, in milliseconds since the epoch. In JSON, a number with a point is in seconds."""

    def __init__(self) -> None:
        self.definition: Any = {"type": "long", "logicalType": "timestamp-millis"}

    def dump(self, value: Any, form: DataForm) -> Any:
        if not isinstance(value, datetime):
            raise expected("datetime", value)
        return to_milliseconds(value)

    def load(self, data: Any, form: DataForm) -> Any:
        if isinstance(data, datetime):  # fastavro converts the logical type
            return data
        if (
            form is DataForm.JSON and type(data) is float
        ):  # Java writes an Instant like this, and a Date in milliseconds
            return _from_seconds(data)
        if type(data) is not int:
            raise expected("milliseconds", data)
        return from_milliseconds(data)


class EnumNode:
    """A member of an enum, by its name. Official Python clients write the member's value in JSON."""

    def __init__(self, kind: type[enum.Enum], definition: Any) -> None:
        self.definition = definition
        self._kind = kind

    def dump(self, value: Any, form: DataForm) -> Any:
        if not isinstance(value, self._kind):
            raise expected(self._kind.__name__, value)
        return value.name

    def load(self, data: Any, form: DataForm) -> Any:
        if type(data) is str and data in self._kind.__members__:
            return self._kind[data]
        if form is DataForm.JSON:
            for member in self._kind:
                if type(member.value) is type(data) and member.value == data:
                    return member
        raise Misfit(f"{_shown(data)} is no {self._kind.__name__}")


class Items:
    """A list."""

    def __init__(self, item: SchemaNode) -> None:
        self.definition: Any = {"type": "array", "items": item.definition}
        self._item = item

    def dump(self, value: Any, form: DataForm) -> Any:
        return self._each(self._item.dump, value, form)

    def load(self, data: Any, form: DataForm) -> Any:
        return self._each(self._item.load, data, form)

    def _each(self, change: Callable[[Any, DataForm], Any], value: Any, form: DataForm) -> Any:
        if not isinstance(value, list):
            raise expected("list", value)
        done: list[Any] = []
        try:
            for item in value:
                done.append(change(item, form))  # noqa: PERF401  # the index of a failed item is needed
        except Misfit as error:
            raise error.inside(f"[{len(done)}]") from None
        return done


class Values:
    """A dict whose keys are texts."""

    def __init__(self, value: SchemaNode) -> None:
        self.definition: Any = {"type": "map", "values": value.definition}
        self._value = value

    def dump(self, value: Any, form: DataForm) -> Any:
        return self._each(self._value.dump, value, form)

    def load(self, data: Any, form: DataForm) -> Any:
        return self._each(self._value.load, data, form)

    def _each(self, change: Callable[[Any, DataForm], Any], value: Any, form: DataForm) -> Any:
        if not isinstance(value, dict):
            raise expected("dict", value)
        done = {}
        for key, item in value.items():
            if type(key) is not str:
                raise expected("str as a key", key)
            try:
                done[key] = change(item, form)
            except Misfit as error:
                raise error.inside(f"[{key!r}]") from None
        return done


class Nullable:
    """A value or None."""

    def __init__(self, some: SchemaNode, *, null_first: bool = True) -> None:
        self.definition: Any = ["null", some.definition] if null_first else [some.definition, "null"]
        self.some = some

    def dump(self, value: Any, form: DataForm) -> Any:
        return None if value is None else self.some.dump(value, form)

    def load(self, data: Any, form: DataForm) -> Any:
        return None if data is None else self.some.load(data, form)


def expected(what: str, value: Any) -> Misfit:
    """Return the error for a value of another type than `what`."""
    if value is None:
        return Misfit(f"{what}, not None")
    return Misfit(f"{what}, not {type(value).__name__}")


def in_range(bits: int) -> Callable[[int], str | None]:
    """Return a check whether a whole number fits into `bits` bits."""
    most = 2 ** (bits - 1)
    return lambda value: None if -most <= value < most else f"does not fit into {bits} bits"


def encodable(text: str) -> str | None:
    """Return the fault of a text that UTF-8 cannot encode, such as half a surrogate pair, or None."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.reason
    return None


def to_milliseconds(moment: datetime) -> int:
    """Return the milliseconds since the epoch, rounded down. Raise `Misfit` without a time zone."""
    if moment.tzinfo is None:
        raise Misfit("a datetime without a time zone")
    return (moment - EPOCH) // _MILLISECOND


def from_milliseconds(milliseconds: int) -> datetime:
    """Return the datetime in UTC. Raise `Misfit` outside the years that Python supports."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise Misfit(f"{milliseconds} ms are outside the years that Python supports") from None


def _from_seconds(seconds: float) -> datetime:
    """Return the datetime in UTC, to the microsecond.

    Java writes the fraction of an Instant as a positive number, so that -1.9 means -1 s and 0.9 s more, -0.1 s.
    """
    try:
        whole = int(seconds)
        return EPOCH + timedelta(seconds=whole + abs(seconds - whole))
    except (OverflowError, ValueError):
        raise Misfit(f"{seconds} s are outside the years that Python supports") from None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 50 else text[:47] + "..."
