"""Encode whole columns to the contents of messages: bytes, text, numbers, and Avro records of such fields.

The encoders give the same bytes as the schemas of the client, value by value. For all other schemas there is no
encoder, and an encoder leaves columns to the schema that have a null where the schema requires a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsarium.client import SchemaInfo
from pulsarium.client.bulk import read_definition
from pulsarium.pipeline.columns.ragged import (
    Flags,
    Numbers,
    RowBytes,
    constant,
    joined,
    numbers,
    size_of,
    varints,
    zigzag,
)
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class MessageContents(NamedTuple):
    """The contents of messages."""

    data: pa.Array
    """The contents, of type large_binary and without nulls."""
    is_null: Flags
    """True for a message without a value."""


Encoder: TypeAlias = Callable[[pa.RecordBatch], MessageContents | None]
"""Encoder of a record batch. It returns None for columns that it leaves to the schema."""
Parts: TypeAlias = list[pa.Array | RowBytes]


def primitive_encoder(info: SchemaInfo | None, column: str) -> Encoder | None:
    """Return an encoder of single values, or of bytes, from the column of this name. None: there is none."""
    if info is None or info.type == pb.Schema.String:
        return lambda batch: _bytes_of(batch.column(column))
    kind = _FIXED.get(info.type)
    return None if kind is None else lambda batch: _fixed(batch.column(column), kind)


_FIXED: Mapping[int, str] = {
    pb.Schema.Bool: "?",
    pb.Schema.Int8: ">i1",
    pb.Schema.Int16: ">i2",
    pb.Schema.Int32: ">i4",
    pb.Schema.Int64: ">i8",
    pb.Schema.Float: ">f4",
    pb.Schema.Double: ">f8",
}


def _bytes_of(column: pa.Array) -> MessageContents:
    return MessageContents(_large(column), _nulls(column))


def _fixed(column: pa.Array, kind: str) -> MessageContents | None:
    nulls = _nulls(column)
    return MessageContents(joined([numbers(_numbers(column), kind).only(~nulls)]), nulls)


def avro_encoder(info: SchemaInfo, columns: Mapping[str, str]) -> Encoder | None:
    """Return an encoder of flat Avro records. None: there is none.

    `columns` has the column of each field, except for fields without a column.
    """
    fields: list[tuple[str, _Field]] = []
    for field in read_definition(info.data)["fields"]:
        made = _field(field["type"])
        if made is None or (field["name"] not in columns and (made.null is None or "default" in field)):
            return None
        fields.append((columns.get(field["name"], ""), made))
    if all(name == "" for name, _ in fields):
        return None

    def encode(batch: pa.RecordBatch) -> MessageContents | None:
        found = {name: batch.column(name) for name, _ in fields if name}
        all_null = np.logical_and.reduce([_nulls(each) for each in found.values()])
        parts: Parts = []
        for name, field in fields:
            nulls = _nulls(found[name]) if name else np.ones(batch.num_rows, np.bool_)
            if field.null is None and np.any(nulls & ~all_null):
                return None
            if field.null is not None:
                branches = np.where(nulls, field.null, 1 - field.null) * 2
                parts.append(numbers(branches, "u1").only(~all_null))
            if name:
                parts += field.encode(found[name], ~nulls)
        return MessageContents(joined(parts), all_null)

    return encode


class _Field(NamedTuple):
    """A field of a record."""

    encode: Callable[[pa.Array, Flags], Parts]
    """Encode the values of these rows."""
    null: int | None
    """The branch of null in the field's union, or None for a field that is no union."""


def _field(kind: Any) -> _Field | None:
    null = None
    if isinstance(kind, list):
        if len(kind) != 2 or kind.count("null") != 1:
            return None
        null = kind.index("null")
        kind = kind[1 - null]
    logical = None
    if isinstance(kind, dict):
        kind, logical = kind.get("type"), kind.get("logicalType")
    encode = _ENCODERS.get((kind, logical)) if isinstance(kind, str) else None
    return None if encode is None else _Field(encode, null)


def _boolean(column: pa.Array, rows: Flags) -> Parts:
    return [numbers(_numbers(column), "u1").only(rows)]


def _integer(column: pa.Array, rows: Flags) -> Parts:
    return [varints(zigzag(_numbers(column))).only(rows)]


def _milliseconds(column: pa.Array, rows: Flags) -> Parts:
    return [varints(zigzag(_numbers(column) // 1000)).only(rows)]


def _real(kind: str) -> Callable[[pa.Array, Flags], Parts]:
    return lambda column, rows: [numbers(_numbers(column), kind).only(rows)]


def _sized(column: pa.Array, rows: Flags) -> Parts:
    data = _large(column)
    return [varints(size_of(data).astype(np.uint64) << np.uint64(1)).only(rows), data]


_ENCODERS: Mapping[tuple[str, str | None], Callable[[pa.Array, Flags], Parts]] = {
    ("boolean", None): _boolean,
    ("int", None): _integer,
    ("long", None): _integer,
    ("float", None): _real("<f4"),
    ("double", None): _real("<f8"),
    ("string", None): _sized,
    ("bytes", None): _sized,
    ("int", "date"): _integer,
    ("long", "timestamp-micros"): _integer,
    ("long", "timestamp-millis"): _milliseconds,
    ("long", "local-timestamp-micros"): _integer,
    ("long", "local-timestamp-millis"): _milliseconds,
}


def _nulls(column: pa.Array) -> Flags:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _large(column: pa.Array) -> pa.Array:
    """Return text or bytes as large_binary, with no bytes in place of a null."""
    if pa.types.is_null(column.type):
        return constant_column(b"", len(column))
    return pc.fill_null(column.cast(pa.large_binary()), b"")


def constant_column(data: bytes, rows: int) -> pa.Array:
    """Return a column with the same bytes in each row."""
    return joined([constant(data, rows)])


def _numbers(column: pa.Array) -> Numbers:
    """Return numbers, 0 in place of a null. Times are in microseconds, and days are days."""
    kind = column.type
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.int64)
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    return np.asarray(pc.fill_null(column, False if pa.types.is_boolean(kind) else 0).to_numpy(zero_copy_only=False))
