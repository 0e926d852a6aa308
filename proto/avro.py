"""Encode and decode Avro's binary form. Schemas are their JSON, and so are values: a record is a dict, an enum a text.

Bytes are texts whose characters are bytes, as in Avro's JSON, and decimals are numbers. A value of a union may stand
alone, or as Avro's JSON has it: in an object whose one key is the name of its branch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pulsarium.proto.errors import AvroError, Misfit
from pulsarium.proto.text import did_you_mean

Schema = str | list[Any] | dict[str, Any]

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_LARGEST_FLOAT: Final = 3.4028235677973366e38  # a double from here on rounds to infinity in 4 bytes
_PRIMITIVES: Final = ("boolean", "int", "long", "float", "double")
_SIMPLE: Final = frozenset({"null", *_PRIMITIVES, "bytes", "string"})
RECORDS: Final = ("record", "error")
NAMED: Final = frozenset({*RECORDS, "enum", "fixed"})
MOST_VALUES: Final = 20_000  # of a value that is decoded in one step of an event loop
_MOST_WRITTEN: Final = 2_000_000  # of a value that is encoded; branches of unions that are tried count
_MOST_DEPTH: Final = 64
_MOST_BITS: Final = 63
_MOST_SCALE: Final = 1000  # of decimals
# Records of empty records are values without a byte, so their number is limited.
_MOST_FREE_VALUES: Final = 1000
_MOST_VALUES_A_BYTE: Final = 4
# Python raises these for a value or schema of the wrong shape.
_FAULTS: Final = (TypeError, ValueError, KeyError, AttributeError, OverflowError, StopIteration, struct.error)
_NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")  # as texts in JSON
_WANTED: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "true or false",
    "int": "a whole number",
    "long": "a whole number",
    "float": "a number",
    "double": "a number",
    "string": "a string",
    "bytes": "a string of bytes",
    "fixed": "a string of bytes",
    "enum": "a string",
    "array": "an array",
    "map": "an object",
    "record": "an object",
    "error": "an object",
}


class AvroCodec:
    """Encode and decode values of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._named: dict[str, dict[str, Any]] = {}
        try:
            self.schema = self._resolved(schema, "")
        except (*_FAULTS, RecursionError) as error:
            raise AvroError(f"not a schema: {error!r}") from None

    def encode(self, value: Any) -> bytes:
        """Encode one value. Raise `Misfit`, which names the place, when the value does not fit the schema.

        A missing field gets its default, or null where its type has null.
        """
        return self._written(_Writer(self), value)

    def encode_as_java(self, value: Any) -> bytes:
        """Encode one value as the fields of a new object in Java: a missing number is 0, an unknown field left out."""
        return self._written(_Writer(self, as_java=True), value)

    def check_json(self, value: Any) -> None:
        """Raise `Misfit` when JSON does not fit the schema. Bytes are any text there, and unions name no branch."""
        self._written(_Writer(self, plain=True), value)

    def _written(self, writer: _Writer, value: Any) -> bytes:
        try:
            writer.write(self.schema, value)
        except Misfit:
            raise
        except _FAULTS as error:
            raise AvroError(f"not a value of the schema: {error!r}") from None
        except RecursionError:
            raise AvroError("nested too deeply") from None
        return bytes(writer.out)

    def decode(self, data: bytes, most: int = MOST_VALUES) -> Any:
        """Decode one value. Raise `AvroError` when `data` is no value, or has more bytes than one value.

        Raise `AvroError` for more than `most` values in it, each of which takes about two microseconds.
        """
        reader = _Reader(data, most)
        try:
            value = self._read(self.schema, reader, 0)
        except (TypeError, KeyError, AttributeError) as error:
            raise AvroError(f"not a schema: {error!r}") from None
        if reader.left:
            raise AvroError(f"{reader.left} unread bytes follow the value")
        return value

    def _resolved(self, schema: Schema, namespace: str) -> Schema:
        """Return a schema in which each named type has its full name, and remember the named types."""
        if isinstance(schema, list):
            return [self._resolved(branch, namespace) for branch in schema]
        if isinstance(schema, str):
            return schema if schema in _SIMPLE or "." in schema else _full(schema, namespace)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self._resolved(kind, namespace)
        found = dict(schema)
        if kind in NAMED:
            space = namespace if schema.get("namespace") is None else schema["namespace"]
            found["name"] = name = schema["name"] if "." in schema["name"] else _full(schema["name"], space)
            self._named[name] = found
            if kind in RECORDS:
                space = name.rpartition(".")[0]
                fields = schema["fields"]
                found["fields"] = [{**each, "type": self._resolved(each["type"], space)} for each in fields]
        elif kind == "array":
            found["items"] = self._resolved(schema["items"], namespace)
        elif kind == "map":
            found["values"] = self._resolved(schema["values"], namespace)
        elif kind not in _SIMPLE:
            return self._resolved(kind, namespace)
        return found

    def kind(self, schema: Schema) -> tuple[str, Any]:
        """Return the kind of a part of `schema`, and the JSON of its definition."""
        if isinstance(schema, list):
            return "union", schema
        if isinstance(schema, str):
            found = self._named.get(schema)
            return (schema, {}) if found is None else (found["type"], found)
        return schema["type"], schema

    def _read(self, schema: Schema, reader: _Reader, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise AvroError("nested too deeply")
        reader.count()
        kind, about = self.kind(schema)
        match kind:
            case "null":
                return None
            case "boolean":
                return reader.take(1) != b"\0"
            case "int" | "long":
                return reader.number()
            case "float":
                return _FLOAT.unpack(reader.take(4))[0]
            case "double":
                return _DOUBLE.unpack(reader.take(8))[0]
            case "string":
                return reader.text()
            case "bytes":
                return _shown(reader.take(reader.number()), about)
            case "fixed" if about:
                return _shown(reader.take(about["size"]), about)
            case "enum":
                return reader.one_of(about["symbols"])
            case "array":
                return [self._read(about["items"], reader, depth + 1) for _ in reader.block()]
            case "map":
                return {reader.text(): self._read(about["values"], reader, depth + 1) for _ in reader.block()}
            case "record" | "error":
                return {field["name"]: self._read(field["type"], reader, depth + 1) for field in about["fields"]}
            case "union":
                return self._read(reader.one_of(about), reader, depth + 1)
        raise AvroError(f"no such type: {kind}")


def _full(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace else name


class _Writer:
    """Write one value, and check each part of it."""

    def __init__(self, codec: AvroCodec, *, as_java: bool = False, plain: bool = False) -> None:
        self.out = bytearray()
        self._codec = codec
        self._as_java = as_java
        self._plain = plain
        self._left = _MOST_WRITTEN

    def write(self, schema: Schema, value: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise AvroError("too many values")
        kind, about = self._codec.kind(schema)
        if self._plain and "logicalType" in about and type(value) in (str, int, float):
            return  # Java writes times as numbers or texts, and decimals as numbers
        match kind:
            case "null":
                _require(kind, value, value is None)
            case "boolean":
                self.out.append(1 if _require(kind, value, isinstance(value, bool)) else 0)
            case "int" | "long":
                _write_number(_whole(kind, value), self.out)
            case "float" | "double":
                self.out += (_FLOAT if kind == "float" else _DOUBLE).pack(_real(kind, value))
            case "string":
                _write_bytes(utf8(_require(kind, value, isinstance(value, str))), self.out)
            case "bytes":
                _write_bytes(self._bytes(about, value), self.out)
            case "fixed" if about:
                self.out += self._bytes(about, value)
            case "enum":
                _write_number(_symbol(about["symbols"], value), self.out)
            case "array":
                self._block(list(enumerate(_require(kind, value, isinstance(value, list)))), about["items"])
            case "map":
                self._block(list(_require(kind, value, isinstance(value, dict)).items()), about["values"])
            case "record" | "error":
                self._record(about["fields"], _require(kind, value, isinstance(value, dict)))
            case "union":
                self._union(about, value)
            case _:
                raise AvroError(f"no such type: {kind}")

    def _inside(self, key: str | int, schema: Schema, value: Any) -> None:
        try:
            self.write(schema, value)
        except Misfit as error:
            raise error.inside(key) from None

    def _block(self, items: Sequence[tuple[Any, Any]], schema: Schema) -> None:
        if items:
            _write_number(len(items), self.out)
        for key, item in items:
            if isinstance(key, str):
                _write_bytes(utf8(key), self.out)
            self._inside(key, schema, item)
        self.out.append(0)

    def _record(self, fields: Sequence[Mapping[str, Any]], value: dict[str, Any]) -> None:
        names = [field["name"] for field in fields]
        unknown = next((name for name in value if name not in names), None)
        if unknown is not None and not self._as_java:
            hint = did_you_mean(unknown, names) or f"there are {', '.join(names) or 'none'}"
            raise Misfit(f"there is no such field; {hint}").inside(unknown)
        for field in fields:
            name, kind = field["name"], field["type"]
            is_zero = self._as_java and kind in _PRIMITIVES and value.get(name) is None
            if name in value and not is_zero:
                self._inside(name, kind, value[name])
            elif "default" in field:
                self._inside(name, kind, field["default"])
            elif is_zero:
                self._inside(name, kind, False if kind == "boolean" else 0)
            elif isinstance(kind, list) and "null" in kind:
                self._inside(name, kind, None)
            else:
                raise Misfit(f"it is missing; expected {_WANTED.get(self._codec.kind(kind)[0], 'a value')}").inside(
                    name
                )

    def _union(self, branches: Sequence[Schema], value: Any) -> None:
        """Write the branch that a value names, or else the first branch that the value fits."""
        if not self._plain and isinstance(value, dict) and len(value) == 1:
            ((name, inner),) = value.items()
            named = [index for index, branch in enumerate(branches) if self._is_called(branch, name)]
            if named and self._fits(named[0], branches, inner) is None:
                return
        failures = []
        for index, branch in enumerate(branches):
            if branch == "null" and value is not None and len(branches) > 1:
                continue
            failure = self._fits(index, branches, value)
            if failure is None:
                return
            failures.append(failure)
        if len(failures) == 1 and value is not None:
            raise failures[0]
        deepest = max(failures, key=lambda each: len(each.path), default=Misfit("it fits no branch"))
        if deepest.path:
            raise deepest
        wanted = dict.fromkeys(_WANTED.get(self._codec.kind(branch)[0], "a value") for branch in branches)
        raise expected(" or ".join(wanted), value)

    def _fits(self, index: int, branches: Sequence[Schema], value: Any) -> Misfit | None:
        """Write a branch of a union. Return what does not fit, and write nothing then."""
        size = len(self.out)
        try:
            _write_number(index, self.out)
            self.write(branches[index], value)
        except Misfit as error:
            del self.out[size:]
            return error
        return None

    def _is_called(self, branch: Schema, name: str) -> bool:
        kind, about = self._codec.kind(branch)
        own = about["name"] if kind in NAMED else kind
        return name in (own, own.rpartition(".")[2])

    def _bytes(self, about: Mapping[str, Any], value: Any) -> bytes:
        size = about.get("size")
        if about.get("logicalType") == "decimal" and not isinstance(value, bytes):
            return _unscaled(about, value)
        if self._plain:
            return utf8(_require("bytes", value, isinstance(value, str)))
        if isinstance(value, bytes):
            data = value
        else:
            text = _require("bytes", value, isinstance(value, str))
            try:
                data = text.encode("latin-1")
            except UnicodeEncodeError:
                raise Misfit("each character of bytes must be at most \\u00ff, as in Avro's JSON") from None
        if size is not None and len(data) != size:
            raise Misfit(f"expected {size} bytes, got {len(data)}")
        return data


def expected(wanted: str, value: Any) -> Misfit:
    """Return the error for a value of another type than the wanted one."""
    return Misfit(f"expected {wanted}, got {_told(value)}")


def _told(value: Any) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case dict():
            return "an object"
        case list():
            return "an array"
        case str() if len(value) > 50:
            return f'"{value[:50]}..."'
        case str():
            return f'"{value}"'
    return str(value)


def _require(kind: str, value: Any, fits: bool) -> Any:
    if not fits:
        raise expected(_WANTED[kind], value)
    return value


def _whole(kind: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    _require(kind, value, isinstance(value, int) and not isinstance(value, bool))
    bits = 32 if kind == "int" else 64
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise Misfit(f"{value} does not fit into {bits} bits, those of {kind}")
    return int(value)


def _real(kind: str, value: Any) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    _require(kind, value, isinstance(value, int | float) and not isinstance(value, bool))
    try:
        number = float(value)
    except OverflowError:
        raise Misfit("it is too large for a double") from None
    if kind == "float" and _LARGEST_FLOAT <= abs(number) < float("inf"):
        raise Misfit(f"{value} is too large for a float of 4 bytes")
    return number


def utf8(text: str) -> bytes:
    """Return the bytes of a text. Raise `Misfit` for a text that UTF-8 cannot encode."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Misfit("UTF-8 cannot encode this text") from None


def _symbol(symbols: Sequence[str], value: Any) -> int:
    if value not in symbols:
        raise expected(f"one of {', '.join(symbols)}", value)
    return symbols.index(value)


def _unscaled(about: Mapping[str, Any], value: Any) -> bytes:
    """Return the bytes of a decimal: its digits as a whole number, without the point."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise expected("a number", value)
    scale = min(int(about.get("scale", 0)), _MOST_SCALE)
    try:
        number = Decimal(str(value)).scaleb(scale)
        whole = int(number)
    except (InvalidOperation, ValueError, OverflowError):
        raise expected("a number", value) from None
    if whole != number or len(str(abs(whole))) > about["precision"]:
        raise Misfit(f"{value} has more digits than the decimal: {about['precision']}, and {scale} behind the point")
    size = about.get("size") or whole.bit_length() // 8 + 1
    try:
        return whole.to_bytes(size, "big", signed=True)
    except OverflowError:
        raise Misfit(f"{value} does not fit into {size} bytes") from None


def _shown(data: bytes, about: Mapping[str, Any]) -> str | float:
    """Return bytes as a text, or as the number of a decimal."""
    if (
        about.get("logicalType") != "decimal"
        or not 0 <= about.get("scale", 0) <= _MOST_SCALE
        or len(data) > _MOST_SCALE
    ):
        return data.decode("latin-1")
    whole = int.from_bytes(data, "big", signed=True)
    scale = about.get("scale", 0)
    exact = Decimal((whole < 0, tuple(map(int, str(abs(whole)))), -scale))
    if not scale:
        return whole
    return float(exact) if Decimal(repr(float(exact))) == exact else str(exact)


def _write_bytes(data: bytes, out: bytearray) -> None:
    _write_number(len(data), out)
    out += data


def _write_number(value: int, out: bytearray) -> None:
    value = (value << 1) ^ (value >> _MOST_BITS)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


class _Reader:
    """A cursor over bytes."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data = data
        self._at = 0
        self._values = min(most, _MOST_FREE_VALUES + _MOST_VALUES_A_BYTE * len(data))  # how many may still follow

    def count(self) -> None:
        """Count one value. Raise `AvroError` when the bytes cannot hold so many."""
        self._values -= 1
        if self._values < 0:
            raise AvroError("too many values, or too many for so few bytes")

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise AvroError(f"{size} bytes wanted, {self.left} left")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        value = shift = 0
        while shift <= _MOST_BITS:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte <= 0x7F:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise AvroError("a number that does not end")

    def text(self) -> str:
        return self.take(self.number()).decode(errors="replace")

    def one_of(self, choices: Sequence[Any]) -> Any:
        index = self.number()
        if not 0 <= index < len(choices):
            raise AvroError(f"choice {index} of {len(choices)}")
        return choices[index]

    def block(self) -> Iterator[None]:
        """Yield once for each item of an array or map. Raise `AvroError` for more items than bytes."""
        while count := self.number():
            if count < 0:  # the block's size in bytes follows
                count = -count
                self.number()
            if count > self.left:
                raise AvroError(f"{count} items in {self.left} bytes")
            yield from (None for _ in range(count))
