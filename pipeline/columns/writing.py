"""Convert Arrow's record batches to messages."""

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
    """A message to send, from a row."""

    topic: str | None
    """None for the topic of the query."""
    value: Any
    """Value for the producer's schema. None is a message without a value."""
    key: bytes | str | None
    """Text for UTF-8, otherwise bytes, so that a key that was read is written unchanged."""
    event_time: int | None
    """Milliseconds since the epoch, or None.

    A time up to the epoch is None too, because messages have no number for it.
    """
    properties: dict[str, str] | None


class RowReader:
    """Converter of a DataFrame's rows to messages."""

    def __init__(self, given: StructType, own: DataType | None, kind: Kind | None, form: Form) -> None:
        """Prepare the columns `given`.

        `own` is the type of values that are not records. `kind` is the record of all others.
        """
        no_twins(given.names, "the DataFrame")
        value, self._metadata = split(given, {each.name.lower() for each in kind.fields} if kind else set())
        self._values = _primitive(value, own) if kind is None else _record(value, kind, form)
        _check(self._metadata)

    def messages(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """Yield a message for each row, in their order. Raise `BadRow` for a row that does not fit the schema."""
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
    """Return the columns of the value, and the others by their names in `METADATA`.

    Raise `BadColumns` for an unknown column that begins with `__`, unless `fields` (in lower case) has the name.
    """
    own = {each.lower(): each for each in METADATA.names}
    values, metadata = [], {}
    for column in given.fields:
        name = column.name.lower()
        if name in own:
            metadata[own[name]] = column
        elif name.startswith("__") and name not in fields:
            raise BadColumns(
                f"column {column.name} is unknown: metadata columns of a message are {', '.join(_TAKES)} (and "
                "__messageId, __publishTime and __index, which are ignored)"
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
            raise BadColumns(f"column {column.name} must be {allowed}, not {given.simpleString()}")


def _primitive(given: StructType, own: DataType | None) -> Values:
    """Return a function that yields the values of a topic of single values, or of bytes."""
    assert own is not None
    found = {column.name.lower(): column for column in given.fields}
    column = found.pop(VALUE, None)
    if found:
        names = ", ".join(each.name for each in found.values())
        raise BadColumns(
            f"the topic's values are {own.simpleString()}, in the column {VALUE}: it has no column {names}"
        )
    if column is None:
        raise BadColumns(f"column {VALUE} is missing: the topic's schema has values of {own.simpleString()}")
    name, text = column.name, isinstance(column.dataType, StringType)
    if isinstance(own, BinaryType) and text:
        return lambda batch: (None if each is None else each.encode() for each in _list(batch, name))
    if not takes(own, column.dataType):
        given_type = column.dataType.simpleString()
        raise BadColumns(f"column {VALUE} is {given_type}, but the topic's schema has {own.simpleString()}")
    return lambda batch: _list(batch, name)


def _record(given: StructType, kind: Kind, form: Form) -> Values:
    """Return a function that yields the records of a topic.

    Each field has a column, or all fields are in a struct `value`.
    """
    if len(given.fields) == 1 and given.names[0].lower() == VALUE:
        column = given.fields[0]
        if isinstance(column.dataType, StructType) and all(each.name.lower() != VALUE for each in kind.fields):
            convert = writer(kind, form, column.dataType, VALUE)
            return lambda batch: (None if each is None else convert(each) for each in _list(batch, column.name))
    converts = columns(kind, form, given, "")
    return lambda batch: _rows(batch, converts)


def _rows(batch: pa.RecordBatch, converts: list[tuple[str, str, Convert]]) -> Iterator[Any]:
    """Yield the records of a batch. A row of nulls only is a message without a value."""
    present = set(batch.schema.names)
    lists = [_list(batch, column) if column in present else repeat(None, batch.num_rows) for _, column, _ in converts]
    made = [(name, convert) for name, _, convert in converts]
    if not lists:  # the batch has only columns of METADATA
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
    # four times as fast as pyarrow's own conversion
    epoch = EPOCH if column.type.tz else EPOCH.replace(tzinfo=None)
    try:
        return [
            None if each is None else epoch + timedelta(microseconds=each)
            for each in column.cast(pa.int64()).to_pylist()
        ]
    except OverflowError:
        raise Misfit(f"column {name}: a time outside Python's years 1 to 9999") from None


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
