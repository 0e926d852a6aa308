"""Decode flat records in Avro's binary form, field by field for all messages at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from pulsarium.pipeline.columns.ragged import of_flags, of_numbers
from pulsarium.pipeline.entries.arrays import binary, numbers, spread, text
from pulsarium.pipeline.entries.fields import Bytes, Ints, Unusual, varints


class _Found(NamedTuple):
    array: Callable[[], pa.Array]
    behind: Ints


_Read: TypeAlias = Callable[[Bytes, Ints], _Found]
"""Reader of one field of all rows: from its positions to its values, which are made on demand, and what follows."""


def _long(kind: pa.DataType) -> _Read:
    def read(data: Bytes, at: Ints) -> _Found:
        values, behind = _zigzag(data, at)
        return _Found(lambda: numbers(values, kind), behind)

    return read


def _zigzag(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    values, behind = varints(data, at)
    halves = (values.view(np.uint64) >> np.uint64(1)).view(np.int64)
    return halves ^ -(values & 1), behind


def _real(kind: str, arrow: pa.DataType) -> _Read:
    size = np.dtype(kind).itemsize

    def read(data: Bytes, at: Ints) -> _Found:
        return _Found(
            lambda: of_numbers(data[at[:, None] + np.arange(size)].view(kind).reshape(-1), arrow),
            at + size,
        )

    return read


def _boolean(data: Bytes, at: Ints) -> _Found:
    found = data[at]
    if (found > 1).any():
        raise Unusual("a boolean that is neither 0 nor 1")
    return _Found(lambda: of_flags(found.astype(np.bool_)), at + 1)


def _bytes(data: Bytes, at: Ints) -> _Found:
    lengths, first = _zigzag(data, at)
    if (lengths < 0).any() or (lengths > len(data)).any():
        raise Unusual("a length beyond the data")
    return _Found(lambda: binary(data, first, first + lengths), first + lengths)


def _string(data: Bytes, at: Ints) -> _Found:
    found = _bytes(data, at)
    return found._replace(array=lambda: text(found.array()))


_READ: Mapping[str, _Read] = {
    "boolean": _boolean,
    "int": _long(pa.int32()),
    "long": _long(pa.int64()),
    "float": _real("<f4", pa.float32()),
    "double": _real("<f8", pa.float64()),
    "bytes": _bytes,
    "string": _string,
}


@dataclass(frozen=True)
class _Field:
    name: str
    read: _Read
    null: int = -1
    """The branch of null in the union of null and the type, or -1."""


class FlatAvro:
    """Reader of records whose fields are primitives, or unions of null and one primitive."""

    def __init__(self, fields: list[_Field], wanted: Collection[str]) -> None:
        self._fields = fields
        self._wanted = wanted

    @staticmethod
    def of(definition: Mapping[str, Any], wanted: Collection[str]) -> FlatAvro | None:
        """Return a reader of the wanted fields of a record, or None for any other definition."""
        fields = [_field(each["name"], each["type"]) for each in definition["fields"]]
        return None if None in fields else FlatAvro([each for each in fields if each is not None], wanted)

    def read(self, data: Bytes, first: Ints, stop: Ints) -> dict[str, pa.Array]:
        """Return the wanted fields of records in these spans. Raise `Unusual` when a record does not fit."""
        arrays: dict[str, pa.Array] = {}
        at = first.copy()
        rows = np.arange(len(at), dtype=np.int64)
        for field in self._fields:
            there = rows
            if field.null >= 0:
                branch, at = _zigzag(data, at)
                if ((branch != 0) & (branch != 1)).any():
                    raise Unusual("a branch beyond its union")
                there = np.flatnonzero(branch != field.null)
                _check(at, stop)
            found = field.read(data, at[there])
            if field.name in self._wanted:
                _check(found.behind, stop[there])
                arrays[field.name] = spread(found.array(), there, len(rows))
            at[there] = found.behind
            _check(at, stop)
        return arrays


def _check(at: Ints, stop: Ints) -> None:
    if (at > stop).any():
        raise Unusual("a record that ends inside a field")


def _field(name: str, kind: Any) -> _Field | None:
    if isinstance(kind, list):
        if len(kind) != 2 or "null" not in kind:
            return None
        null = kind.index("null")
        inner = _field(name, kind[1 - null])
        return None if inner is None or inner.null >= 0 else _Field(name, inner.read, null)
    if isinstance(kind, dict):
        kind = None if "logicalType" in kind else kind.get("type")
    found = _READ.get(kind) if isinstance(kind, str) else None
    return None if found is None else _Field(name, found)
