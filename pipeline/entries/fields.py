"""Parse many serialized records at once: one step of numpy for the same field of all records."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]

PAD = 16
"""Bytes behind a buffer that may be read. No position is checked before it is read."""

_MOST_ROUNDS = 64  # fields of one record: more are left to the messages' own parser
_VARINT, _SPAN = 0, 2  # wire types
_SPANS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)


class Unusual(Exception):
    """Bytes that only the parser of single messages can judge."""


class FieldValues(NamedTuple):
    """The occurrences of a field: the rows in ascending order, and the values, or the spans of the values."""

    rows: Ints
    first: Ints
    """The values, or where they begin."""
    stop: Ints
    """The ends of the spans."""


def varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Return the varints at these positions, as signed 64-bit numbers, and the positions behind them."""
    byte = data[at]
    behind = at + 1
    values = (byte & 0x7F).astype(np.int64)
    more = np.flatnonzero(byte & 0x80)
    shift = 7
    while more.size:
        if shift > 63:
            raise Unusual("a varint of more than ten bytes")
        if int(behind[more].max()) >= len(data):
            raise Unusual("a varint beyond its end")
        byte = data[behind[more]]
        values[more] |= (byte & 0x7F).astype(np.int64) << shift
        behind[more] += 1
        more = more[(byte & 0x80) != 0]
        shift += 7
    return values, behind


def parse(data: Bytes, starts: Ints, stops: Ints) -> dict[int, FieldValues]:
    """Return the fields of protobuf messages by their tags. Raise `Unusual` for what needs a real parser.

    `data` ends with `PAD` bytes that belong to no message.
    """
    at = starts.copy()
    live = np.flatnonzero(at < stops)
    found: dict[int, list[FieldValues]] = {}
    for _ in range(_MOST_ROUNDS):
        if not live.size:
            break
        tags = data[at[live]]
        first = tags[0]
        for tag in [int(first)] if (tags == first).all() else np.unique(tags).tolist():
            rows = live if tags.size and (tags == tag).all() else live[tags == tag]
            field = _field(data, tag, rows, at)
            found.setdefault(tag, []).append(field)
        if (at[live] > stops[live]).any():
            raise Unusual("a field beyond its message")
        live = live[at[live] < stops[live]]
    if live.size:
        raise Unusual("a message of many fields")
    return {tag: _joined(parts) for tag, parts in found.items()}


def _field(data: Bytes, tag: int, rows: Ints, at: Ints) -> FieldValues:
    """Read one field of these rows, and move their positions behind the field."""
    wire = tag & 7
    if tag & 0x80 or tag < 8:
        raise Unusual(f"the tag {tag}")
    if wire == _VARINT:
        values, at[rows] = varints(data, at[rows] + 1)
        return FieldValues(rows, values, values)
    if wire == _SPAN:
        lengths, begin = varints(data, at[rows] + 1)
        if (lengths < 0).any() or (lengths > len(data)).any():
            raise Unusual("a length beyond the data")
        end = at[rows] = begin + lengths
        return FieldValues(rows, begin, end)
    raise Unusual(f"a field of wire type {wire}")


def _joined(parts: list[FieldValues]) -> FieldValues:
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([each.rows for each in parts])
    order = np.argsort(rows, kind="stable")  # several values of a row stay in their order
    first, stop = (
        np.concatenate(each)[order] for each in zip(*[(part.first, part.stop) for part in parts], strict=True)
    )
    return FieldValues(rows[order], first, stop)


def tags_of(message: type[Message]) -> dict[str, int]:
    """Return the tags of a protobuf message's fields by their names."""
    fields = message.DESCRIPTOR.fields
    return {each.name: each.number << 3 | (_SPAN if each.type in _SPANS else _VARINT) for each in fields}


def once(field: FieldValues) -> FieldValues:
    """Return a field, or raise `Unusual` when a message has the field twice."""
    if (np.diff(field.rows) == 0).any():
        raise Unusual("a field that a message has twice")
    return field


def last_values(field: FieldValues | None, rows: int, default: int) -> Ints:
    """Return a number for each row: the last value of the field, or `default`."""
    made = np.full(rows, default, np.int64)
    if field is not None:
        made[field.rows] = field.first
    return made
