"""Decode flat records in JSON by Arrow's own reader, all messages at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.json

from pulsarium.pipeline.columns.kinds import ColumnType
from pulsarium.pipeline.entries.arrays import binary, text
from pulsarium.pipeline.entries.fields import Bytes, Ints, Unusual

_OPEN, _CLOSE, _LINE = b"{}\n"
_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    # a decimal text becomes a float by way of a double, as in Python
    "float": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "uuid": pa.string(),
    "decimal-text": pa.string(),
}


class FlatJson:
    """Reader of the wanted fields of records, where these fields are primitives."""

    def __init__(self, kinds: Mapping[str, ColumnType]) -> None:
        self._kinds = kinds
        schema = pa.schema([pa.field(name, _TYPES[kind.name]) for name, kind in kinds.items()])
        self._parse = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")

    @staticmethod
    def of(kind: ColumnType, wanted: Collection[str]) -> FlatJson | None:
        """Return a reader of the wanted fields of a record, or None when one of them is no primitive."""
        kinds = {each.name: each.kind for each in kind.fields if each.name in wanted}
        return FlatJson(kinds) if all(_is_flat(each) for each in kinds.values()) else None

    def read(self, data: Bytes, first: Ints, stop: Ints) -> dict[str, pa.Array]:
        """Return the wanted fields of records in these spans.

        Raise `Unusual` for anything but one object in each span, and for values that Arrow does not take.
        """
        if not len(first):
            return {name: pa.array([], _TYPES[kind.name]) for name, kind in self._kinds.items()}
        # An object whose last brace does not close it makes the next object a syntax error, and a string has no line
        # ends. So each span has at least one object, and with as many objects as spans, exactly one.
        if (stop - first < 2).any() or (data[first] != _OPEN).any() or (data[stop - 1] != _CLOSE).any():
            raise Unusual("a value that is no JSON object")
        data = data.copy()
        data[stop] = _LINE
        lines = text(binary(data, first, stop + 1)).buffers()[2]
        options = pa.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
        try:
            table = pa.json.read_json(pa.BufferReader(lines), read_options=options, parse_options=self._parse)
            if len(table) != len(first):
                raise Unusual("several objects in one value")
            found = {name: table.column(name).combine_chunks() for name in self._kinds}
        except pa.ArrowException as error:
            raise Unusual(str(error)) from None
        return {name: _narrowed(each, self._kinds[name].name) for name, each in found.items()}


def _narrowed(array: pa.Array, kind: str) -> pa.Array:
    return array.cast(pa.float32(), safe=False) if kind == "float" else array


def _is_flat(kind: ColumnType) -> bool:
    return not kind.branches and kind.name in _TYPES
