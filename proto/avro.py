"""Encode and decode the subset of Avro that events of brokers use.

A schema is its JSON. A record is a dict, an enum its symbol. In a union, None takes the branch null, and any other
value the first other branch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pulsarium.proto.errors import AvroError

Schema = str | list[Any] | dict[str, Any]

_DOUBLE: Final = struct.Struct("<d")
_PRIMITIVES: Final = ("boolean", "int", "long", "double")
MOST_VALUES: Final = 20_000  # of a value that is decoded in one step of an event loop
_MOST_DEPTH: Final = 64
_MOST_BITS: Final = 63
# Records of empty records are values without a byte, so their number is limited.
_MOST_FREE_VALUES: Final = 1000
_MOST_VALUES_A_BYTE: Final = 4
# Python raises these for a value or schema of the wrong shape.
_FAULTS: Final = (TypeError, ValueError, KeyError, AttributeError, OverflowError, StopIteration, struct.error)


class AvroCodec:
    """Encode and decode values of one schema.

    A missing field gets its default. A number without a default is 0, as in a new object in Java.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._named: dict[str, dict[str, Any]] = {}
        try:
            self._learn(schema, "")
        except (*_FAULTS, RecursionError) as error:
            raise AvroError(f"not a schema: {error!r}") from None

    def encode(self, value: Any) -> bytes:
        """Encode one value. Raise `AvroError` when it does not fit the schema."""
        out = bytearray()
        try:
            self._write(self.schema, value, out)
        except _FAULTS as error:
            raise AvroError(f"not a value of the schema: {error!r}") from None
        return bytes(out)

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

    def _learn(self, schema: Schema, namespace: str) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._learn(branch, namespace)
        elif isinstance(schema, dict):
            if schema["type"] in ("record", "enum"):
                namespace = schema.get("namespace", namespace)
                self._named[f"{namespace}.{schema['name']}"] = schema
            for field in schema.get("fields", ()):
                self._learn(field["type"], namespace)
            for inner in ("items", "values"):
                self._learn(schema.get(inner, "null"), namespace)

    def _kind(self, schema: Schema) -> tuple[str, Any]:
        """Return the kind of a schema, and the JSON of its definition."""
        if isinstance(schema, list):
            return "union", schema
        if isinstance(schema, str):
            found = self._named.get(schema)
            return (schema, None) if found is None else (found["type"], found)
        return schema["type"], schema

    def _write(self, schema: Schema, value: Any, out: bytearray) -> None:
        kind, about = self._kind(schema)
        match kind:
            case "null":
                pass
            case "boolean":
                out.append(1 if value else 0)
            case "int" | "long":
                _write_number(int(value), out)
            case "double":
                out += _DOUBLE.pack(value)
            case "string":
                text = value.encode()
                _write_number(len(text), out)
                out += text
            case "enum":
                _write_number(about["symbols"].index(value), out)
            case "array":
                _write_block(value, out, lambda item: self._write(about["items"], item, out))
            case "map":
                pair = {"type": "record", "fields": [_field(0, "string"), _field(1, about["values"])]}
                _write_block(list(value.items()), out, lambda item: self._write(pair, dict(enumerate(item)), out))
            case "record":
                for field in about["fields"]:
                    default = field.get("default", 0 if field["type"] in _PRIMITIVES else None)
                    self._write(field["type"], value.get(field["name"], default), out)
            case "union":
                index = next(index for index, branch in enumerate(about) if (branch == "null") == (value is None))
                _write_number(index, out)
                self._write(about[index], value, out)
            case _:
                raise AvroError(f"no such type: {kind}")

    def _read(self, schema: Schema, reader: _Reader, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise AvroError("nested too deeply")
        reader.count()
        kind, about = self._kind(schema)
        match kind:
            case "null":
                return None
            case "boolean":
                return reader.take(1) != b"\0"
            case "int" | "long":
                return reader.number()
            case "double":
                return _DOUBLE.unpack(reader.take(8))[0]
            case "string":
                return reader.text()
            case "enum":
                return reader.one_of(about["symbols"])
            case "array":
                return [self._read(about["items"], reader, depth + 1) for _ in reader.block()]
            case "map":
                return {reader.text(): self._read(about["values"], reader, depth + 1) for _ in reader.block()}
            case "record":
                return {field["name"]: self._read(field["type"], reader, depth + 1) for field in about["fields"]}
            case "union":
                return self._read(reader.one_of(about), reader, depth + 1)
        raise AvroError(f"no such type: {kind}")


def _field(name: Any, schema: Schema) -> dict[str, Any]:
    return {"name": name, "type": schema}


def _write_number(value: int, out: bytearray) -> None:
    value = (value << 1) ^ (value >> _MOST_BITS)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_block(items: Sequence[Any], out: bytearray, write: Callable[[Any], None]) -> None:
    if items:
        _write_number(len(items), out)
        for item in items:
            write(item)
    out.append(0)


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
