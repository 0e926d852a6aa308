"""Convert Arrow's record batches to messages."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import repeat
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pulsarium.client import MessageOptions, SchemaInfo
from pulsarium.client.bulk import BYTES, EPOCH, Misfit
from pulsarium.client.errors import InvalidMessage
from pulsarium.pipeline.columns.encoding import Encoder, MessageContents, avro_encoder, primitive_encoder
from pulsarium.pipeline.columns.kinds import BadColumns, BadRow, ColumnType, no_twins
from pulsarium.pipeline.columns.names import EVENT_TIME, KEY, METADATA, PROPERTIES, READ_ONLY, TOPIC, VALUE
from pulsarium.pipeline.columns.plain import Convert, columns, takes, writer
from pulsarium.pipeline.columns.ragged import Flags, Numbers
from pulsarium.pipeline.columns.records import form_of, schema_of
from pulsarium.proto.generated import PulsarApi_pb2 as pb

T = TypeVar("T")
Values: TypeAlias = Callable[[pa.RecordBatch], Iterable[Any]]

_TAKES: dict[str, tuple[type[DataType], ...]] = {
    KEY: (BinaryType, StringType),
    TOPIC: (StringType,),
    EVENT_TIME: (TimestampType, LongType),
    PROPERTIES: (MapType,),
}


@dataclass(frozen=True)
class OutgoingRows:
    """Messages to send, by column."""

    contents: MessageContents
    keys: pa.Array | None
    """The keys, of type large_binary: text in UTF-8, or base64 of other bytes. None: no message has a key."""
    is_base64: Flags
    """True for keys in base64."""
    event_times: Numbers | None
    """Milliseconds since the epoch. 0, as for all times before the epoch, is none."""
    properties: list[dict[str, str] | None] | None

    def __len__(self) -> int:
        return len(self.is_base64)

    def content(self, row: int) -> bytes | None:
        """Return the content of a message, or None for a message without a value."""
        data: bytes = self.contents.data[row].as_py()
        return None if self.contents.is_null[row] else data

    def options(self, row: int, sequence_id: int) -> MessageOptions:
        """Return the options of a message."""
        options: MessageOptions = {"sequence_id": sequence_id}
        key: bytes | None = None if self.keys is None else self.keys[row].as_py()
        if key is not None:
            options["partition_key"] = base64.b64decode(key) if self.is_base64[row] else key.decode()
        if self.event_times is not None and self.event_times[row]:
            options["event_timestamp"] = int(self.event_times[row])
        if self.properties is not None and self.properties[row]:
            options["properties"] = self.properties[row]
        return options


class RowReader:
    """Converter of a DataFrame's rows to messages."""

    def __init__(
        self, given: StructType, own: DataType | None, kind: ColumnType | None, info: SchemaInfo | None
    ) -> None:
        """Prepare the columns `given` for a topic with the schema `info`.

        `own` is the type of values that are not records. `kind` is the record of all others.
        """
        no_twins(given.names, "the DataFrame")
        value, self._metadata = split(given, {each.name.lower() for each in kind.fields} if kind else set())
        if kind is not None and _is_content(value, kind):
            own, kind, info = BinaryType(), None, None
        self._schema = schema_of(info) or BYTES
        if kind is None:
            self._values, self._encode_column = _primitive(value, own, info)
        else:
            assert info is not None
            self._values, self._encode_column = _record(value, kind, info)
        _check(self._metadata)

    def messages(self, batch: pa.RecordBatch) -> OutgoingRows:
        """Return a message for each row, in their order. Raise `BadRow` for a row that does not fit the schema."""
        if self._schema.separates_key:
            contents, keys, is_base64 = self._apart(batch)
        else:
            keys, is_base64 = self._keys(batch)
            contents = (self._encode_column(batch) if self._encode_column else None) or self._one_by_one(batch)
        return OutgoingRows(contents, keys, is_base64, self._event_times(batch), self._properties(batch))

    def values(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """Yield the value of each row for the topic's schema. None is a message without a value."""
        return iter(self._values(batch))

    def _one_by_one(self, batch: pa.RecordBatch) -> MessageContents:
        """Encode each value by the topic's schema."""
        return _contents(self._each(batch, self._schema.encode))

    def _apart(self, batch: pa.RecordBatch) -> tuple[MessageContents, pa.Array, Flags]:
        """Encode each pair by the topic's schema, and return the keys in base64, as other clients send them."""
        pairs = [pair or (None, None) for pair in self._each(batch, self._schema.encode_apart)]
        keys = [None if key is None else base64.b64encode(key) for key, _ in pairs]
        is_base64 = np.array([key is not None for key in keys], np.bool_)
        return _contents([content for _, content in pairs]), pa.array(keys, pa.large_binary()), is_base64

    def _each(self, batch: pa.RecordBatch, encode: Callable[[Any], T]) -> list[T | None]:
        """Encode each value. Raise `BadRow` for one that does not fit."""
        made: list[T | None] = []
        try:
            for value in self._values(batch):
                made.append(None if value is None else encode(value))  # noqa: PERF401  # an error needs the number
        except (Misfit, InvalidMessage) as error:
            raise BadRow(str(error), len(made)) from None
        return made

    def _keys(self, batch: pa.RecordBatch) -> tuple[pa.Array | None, Flags]:
        none = np.zeros(batch.num_rows, np.bool_)
        column = self._metadata.get(KEY)
        if column is None or isinstance(column.dataType, NullType):
            return None, none
        keys = batch.column(column.name)
        if isinstance(column.dataType, StringType):
            return keys.cast(pa.large_binary()), none
        keys = keys.cast(pa.large_binary())
        try:
            keys.cast(pa.large_string())  # fails for bytes that are not UTF-8
        except pa.ArrowInvalid:
            made = [_text_or_base64(each) for each in keys.to_pylist()]
            keys = pa.array([key for key, _ in made], pa.large_binary())
            return keys, np.array([is_base64 for _, is_base64 in made], np.bool_)
        return keys, none

    def _event_times(self, batch: pa.RecordBatch) -> Numbers | None:
        column = self._metadata.get(EVENT_TIME)
        if column is None or isinstance(column.dataType, NullType):
            return None
        given = batch.column(column.name).cast(pa.int64()).fill_null(0).to_numpy()
        milliseconds = given if isinstance(column.dataType, LongType) else given // 1000
        return np.asarray(np.maximum(milliseconds, 0))

    def _properties(self, batch: pa.RecordBatch) -> list[dict[str, str] | None] | None:
        column = self._metadata.get(PROPERTIES)
        if column is None or isinstance(column.dataType, NullType):
            return None
        made: list[dict[str, str] | None] = []
        for row, pairs in enumerate(batch.column(column.name).to_pylist()):
            for name, value in pairs or ():
                if value is None:
                    raise BadRow(f"column {PROPERTIES}: the property {name} is null", row)
            made.append(dict(pairs) if pairs else None)
        return made if any(made) else None


def _contents(made: list[bytes | None]) -> MessageContents:
    data = pa.array([each or b"" for each in made], pa.large_binary())
    return MessageContents(data, np.array([each is None for each in made], np.bool_))


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


def _primitive(given: StructType, own: DataType | None, info: SchemaInfo | None) -> tuple[Values, Encoder | None]:
    """Return a function that yields the values of a topic of single values, or of bytes, and an encoder of columns."""
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
    encoder = primitive_encoder(info, name)
    if isinstance(own, BinaryType) and text:
        return (lambda batch: (None if each is None else each.encode() for each in _list(batch, name))), encoder
    if not takes(own, column.dataType):
        given_type = column.dataType.simpleString()
        raise BadColumns(f"column {VALUE} is {given_type}, but the topic's schema has {own.simpleString()}")
    return (lambda batch: _list(batch, name)), encoder


def _record(given: StructType, kind: ColumnType, info: SchemaInfo) -> tuple[Values, Encoder | None]:
    """Return a function that yields the records of a topic, and an encoder of columns.

    Each field has a column, or all fields are in a struct `value`.
    """
    form = form_of(info)
    column = _whole(given, kind)
    if column is not None and isinstance(column.dataType, StructType):
        convert = writer(kind, form, column.dataType, VALUE)
        return (lambda batch: (None if each is None else convert(each) for each in _list(batch, column.name))), None
    converts = columns(kind, form, given, "")
    names = {field: column for field, column, _ in converts if column in given.names}
    encoder = avro_encoder(info, names) if info.type == pb.Schema.Avro else None
    return (lambda batch: _rows(batch, converts)), encoder


def _whole(given: StructType, kind: ColumnType) -> StructField | None:
    """Return the column `value` when it is the only one, and the whole record, because no field has its name."""
    is_field = any(each.name.lower() == VALUE for each in kind.fields)
    return given.fields[0] if not is_field and [name.lower() for name in given.names] == [VALUE] else None


def _is_content(given: StructType, kind: ColumnType) -> bool:
    """Return whether the rows have the bytes of records, which another program has encoded."""
    column = _whole(given, kind)
    return column is not None and isinstance(column.dataType, BinaryType)


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


def _text_or_base64(key: bytes | None) -> tuple[bytes | None, bool]:
    """Return a key in UTF-8 as it is, any other in base64, and whether it is in base64."""
    if key is None:
        return None, False
    try:
        key.decode()
    except UnicodeDecodeError:
        return base64.b64encode(key), True
    return key, False
