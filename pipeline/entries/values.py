"""Columns of a topic's schema, from entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from pulsarium.client import SchemaInfo
from pulsarium.client.bulk import read_definition
from pulsarium.pipeline.columns.kinds import ColumnType
from pulsarium.pipeline.columns.names import VALUE
from pulsarium.pipeline.entries.arrays import binary, spread, text
from pulsarium.pipeline.entries.avro import FlatAvro
from pulsarium.pipeline.entries.fields import Ints
from pulsarium.pipeline.entries.json import FlatJson
from pulsarium.pipeline.entries.rows import EntryRows
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Values: TypeAlias = Callable[[EntryRows], Mapping[str, pa.Array]]
"""Reader of the columns of values. It raises `Unusual` for values that only the schema of the client can judge."""


def reader_of(info: SchemaInfo | None, kind: ColumnType | None, wanted: Collection[str]) -> Values | None:
    """Return a reader of the wanted columns, or None when there is none for the schema.

    `kind` is the record of the values, or None.
    """
    if not wanted:
        return lambda rows: {}
    if kind is None or info is None:
        if info is None:
            return lambda rows: {VALUE: contents(rows)}
        return (lambda rows: {VALUE: text(contents(rows))}) if info.type == pb.Schema.String else None
    made: FlatAvro | FlatJson | None = None
    if info.type == pb.Schema.Avro:
        made = FlatAvro.of(read_definition(info.data), wanted)
    elif info.type == pb.Schema.Json:
        made = FlatJson.of(kind, wanted)
    return None if made is None else lambda rows: _records(made, rows)


def _there(rows: EntryRows) -> Ints:
    """Return the rows that have a value."""
    return np.flatnonzero(rows.numbers("null_value") == 0)


def contents(rows: EntryRows) -> pa.Array:
    """Return the values as bytes, and null for messages without a value."""
    if rows.field("null_value") is None:
        return binary(rows.data, rows.first, rows.stop)
    there = _there(rows)
    return binary(rows.data, rows.first[there], rows.stop[there], there, len(rows))


def _records(made: FlatAvro | FlatJson, rows: EntryRows) -> dict[str, pa.Array]:
    if rows.field("null_value") is None:
        return made.read(rows.data, rows.first, rows.stop)
    there = _there(rows)
    found = made.read(rows.data, rows.first[there], rows.stop[there])
    return {name: spread(each, there, len(rows)) for name, each in found.items()}
