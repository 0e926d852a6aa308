"""From Arrow's record batches to messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pulsarium.client.bulk import EPOCH, Form, Misfit
from pulsarium.pipeline.columns.kinds import BadColumns, BadRow, Kind, no_twins
from pulsarium.pipeline.columns.metadata import EVENT_TIME, KEY, METADATA, PROPERTIES, READ_ONLY, TOPIC
from pulsarium.pipeline.columns.plain import Convert, columns, takes, writer

VALUE = "value"
Values: TypeAlias = Callable[[pa.RecordBatch], Iterable[Any]]

_TAKES: dict[str, tuple[type[DataType], ...]] = {
    KEY: (BinaryType, StringType),
    TOPIC: (StringType,),
    EVENT_TIME: (TimestampType,),
    PROPERTIES: (MapType,),
}


class Outgoing(NamedTuple):
    """A row as a message."""

    topic: str | None
    """None: the topic of the query."""
    value: Any
    """For the producer's schema; None is a message without a value."""
    key: bytes | str | None
    """Text wherever it is UTF-8, so that a key that was read is the same key when it is written; other keys are
    bytes."""
    event_time: int | None
    """Milliseconds since the epoch; None also where it is not after that, which messages have no number for."""
    properties: dict[str, str] | None


class RowReader:
    """Makes messages of the rows of a DataFrame."""

    def __init__(self, given: StructType, own: DataType | None, kind: Kind | None, form: Form) -> None:
        """`own`: the type of values that are no record; `kind`: the record that they are otherwise."""
        no_twins(given.names, "the DataFrame")
        value, self._metadata = split(given, {each.name.lower() for each in kind.fields} if kind else set())
        self._values = _primitive(value, own) if kind is None else _record(value, kind, form)
        _check(self._metadata)

    def messages(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """One for each row, in their order; BadRow for one that is none."""
        try:
            yield from map(
                Outgoing,
                self._column(batch, TOPIC),
                self._values(batch),
                map(_key, self._column(batch, KEY)),
                self._event_times(batch),
                map(_properties, self._column(batch, PROPERTIES)),
            )
        except Misfit as error:
            raise BadRow(str(error)) from None

    def _column(self, batch: pa.RecordBatch, name: str) -> Iterable[Any]:
        column = self._metadata.get(name)
        return repeat(None) if column is None else _list(batch, column.name)

    def _event_times(self, batch: pa.RecordBatch) -> Iterable[int | None]:
        column = self._metadata.get(EVENT_TIME)
        if column is None:
            return repeat(None)
        micros = batch.column(column.name).cast(pa.int64()).to_pylist()
        return (each // 1000 if each is not None and each >= 1000 else None for each in micros)


def split(given: StructType, fields: set[str]) -> tuple[StructType, dict[str, StructField]]:
    """The columns of the value, and those that say more of a message, by the names in METADATA.

    BadColumns for others that look like these; `fields` (in lower case) are known to be the value's.
    """
    own = {each.lower(): each for each in METADATA.names}
    values, metadata = [], {}
    for column in given.fields:
        name = column.name.lower()
        if name in own:
            metadata[own[name]] = column
        elif name.startswith("__") and name not in fields:
            raise BadColumns(
                f"column {column.name} is none of {', '.join(_TAKES)}, which a message is written with (and of "
                "__messageId, __publishTime, __index, which are left out)"
            )
        else:
            values.append(column)
    return StructType(values), {name: column for name, column in metadata.items() if name.lower() not in READ_ONLY}


def _check(metadata: dict[str, StructField]) -> None:
    for name, column in metadata.items():
        given = column.dataType
        fits = isinstance(given, (*_TAKES[name], NullType))
        if isinstance(given, MapType):
            fits = isinstance(given.keyType, StringType) and isinstance(given.valueType, (StringType, NullType))
        if not fits:
            allowed = " or ".join(
                METADATA[name].dataType.simpleString() if each is MapType else each.typeName() for each in _TAKES[name]
            )
            raise BadColumns(f"column {column.name} is {allowed}, not {given.simpleString()}")


def _primitive(given: StructType, own: DataType | None) -> Values:
    """Of a topic of single values, or of bytes."""
    assert own is not None
    found = {column.name.lower(): column for column in given.fields}
    column = found.pop(VALUE, None)
    if found:
        names = ", ".join(each.name for each in found.values())
        raise BadColumns(f"the topic's values are {own.simpleString()}, in a column {VALUE}: it has no {names}")
    if column is None:
        raise BadColumns(f"column {VALUE} is missing: the topic's schema has it as {own.simpleString()}")
    name, text = column.name, isinstance(column.dataType, StringType)
    if isinstance(own, BinaryType) and text:
        return lambda batch: (None if each is None else each.encode() for each in _list(batch, name))
    if not takes(own, column.dataType):
        given_type = column.dataType.simpleString()
        raise BadColumns(f"column {VALUE} is {given_type}, where the topic's schema has {own.simpleString()}")
    return lambda batch: _list(batch, name)


def _record(given: StructType, kind: Kind, form: Form) -> Values:
    """Of a topic of records: a column for each field, or all of them in a struct `value`."""
    if len(given.fields) == 1 and given.names[0].lower() == VALUE:
        column = given.fields[0]
        if isinstance(column.dataType, StructType) and all(each.name.lower() != VALUE for each in kind.fields):
            convert = writer(kind, form, column.dataType, VALUE)
            return lambda batch: (None if each is None else convert(each) for each in _list(batch, column.name))
    converts = columns(kind, form, given, "")
    return lambda batch: _rows(batch, converts)


def _rows(batch: pa.RecordBatch, converts: list[tuple[str, str, Convert]]) -> Iterator[Any]:
    """A row of nothing but nulls is a message without a value."""
    present = set(batch.schema.names)
    lists = [_list(batch, column) if column in present else repeat(None, batch.num_rows) for _, column, _ in converts]
    made = [(name, convert) for name, _, convert in converts]
    if not lists:  # nothing but columns of METADATA
        yield from repeat(None, batch.num_rows)
    for row in zip(*lists, strict=True):
        if row.count(None) == len(row):
            yield None
        else:
            yield {name: convert(each) for (name, convert), each in zip(made, row, strict=True)}


def _list(batch: pa.RecordBatch, name: str) -> list[Any]:
    column = batch.column(name)
    if not pa.types.is_timestamp(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    # four times as fast as pyarrow's own way
    epoch = EPOCH if column.type.tz else EPOCH.replace(tzinfo=None)
    try:
        return [
            None if each is None else epoch + timedelta(microseconds=each)
            for each in column.cast(pa.int64()).to_pylist()
        ]
    except OverflowError:
        raise Misfit(f"column {name}: a moment beyond the years that Python has") from None


def _key(key: bytes | str | None) -> bytes | str | None:
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError:
            return key
    return key


def _properties(pairs: list[tuple[str, str | None]] | None) -> dict[str, str] | None:
    if not pairs:
        return None
    for name, value in pairs:
        if value is None:
            raise Misfit(f"column {PROPERTIES}: the property {name} is null")
    return dict(pairs)  # type: ignore[arg-type]
