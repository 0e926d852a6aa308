"""Convert messages to Arrow's record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pulsarium.client import Message, PulsarError
from pulsarium.client.bulk import DataForm, Misfit
from pulsarium.pipeline.columns.kinds import BadColumns, BadMessage, ColumnType
from pulsarium.pipeline.columns.metadata import EXTRACT, Messages, parts_of_ids
from pulsarium.pipeline.columns.names import MESSAGE_ID, MESSAGE_ID_PARTS, UNDECODABLE
from pulsarium.pipeline.columns.plain import Convert, reader
from pulsarium.pipeline.columns.ragged import of_numbers

Values: TypeAlias = Sequence[Any]
Extract: TypeAlias = Callable[[Messages, Values], pa.Array | list[Any]]

_WRONG = (ValueError, TypeError, OverflowError, NotImplementedError, pa.ArrowException)
"""Errors of pyarrow for a value of the wrong type."""


class BatchBuilder:
    """Builder of record batches, column by column, which is much faster than row by row."""

    def __init__(
        self,
        own: StructType,
        wanted: StructType,
        kind: ColumnType | None,
        form: DataForm,
        *,
        separates_key: bool = False,
    ) -> None:
        """Prepare the columns `wanted`.

        `own` are all columns of the topic. `kind` is the record of its values, or None. With `separates_key`, the
        record of a message without a value has the key.
        """
        self._messages: list[Message[Any]] = []
        self.size = 0
        """Bytes of payload since the last `take`."""
        arrow = to_arrow_schema(wanted, timezone="UTC")
        self._columns = [_Column(own, field, arrow.field(at), kind, form) for at, field in enumerate(wanted.fields)]
        self._schema = arrow
        keeps_undecodable = any(each.name == UNDECODABLE for each in own.fields)
        self._decode: Callable[[Message[Any]], Any] = _bytes
        if own.fields[0].dataType.typeName() != "binary" or kind is not None:
            self._decode = _pair if separates_key else _decoded
        wanted_names = frozenset(each.name for each in self._columns)
        of_value = frozenset(own.names) - EXTRACT.keys()
        self.value_names = of_value if UNDECODABLE in wanted_names else of_value & wanted_names
        """Columns of the topic's schema to decode: those that are wanted, or all where `UNDECODABLE` is wanted."""
        self.metadata_names = wanted_names - of_value
        """Wanted columns of `METADATA`."""
        self.makes_rows_of_all = keeps_undecodable and bool(self.value_names)
        """Whether a message that does not fit the topic's schema is a row without a value."""

    @property
    def rows(self) -> int:
        """Return the number of messages since the last `take`."""
        return len(self._messages)

    def add(self, message: Message[Any]) -> None:
        """Add a message to the next batch."""
        self._messages.append(message)
        self.size += len(message.data())

    def clear(self) -> None:
        """Forget all messages since the last `take`."""
        self._messages, self.size = [], 0

    def take(self) -> pa.RecordBatch:
        """Return the batch of all messages since the last call, in their order.

        Raise `BadMessage` for a message that does not fit the topic's schema.
        """
        messages, self._messages, self.size = self._messages, [], 0
        if self.makes_rows_of_all:
            return self._rows_of_all(messages)
        values = [*map(self._decode, messages)] if self.value_names else ()
        return self._batch([column.array(messages, values) for column in self._columns])

    def _batch(self, arrays: Sequence[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _rows_of_all(self, messages: Messages) -> pa.RecordBatch:
        """Return a batch in which a message that does not fit is a row without a value."""
        values, misfits = self._decoded_one_by_one(messages)
        arrays = {}
        for column in self._columns:
            if column.of_value:
                arrays[column.name], wrong = column.fitting(values)
                misfits.update(wrong)
        is_bad = np.zeros(len(messages), np.bool_)
        is_bad[list(misfits)] = True
        for name, array in arrays.items() if misfits else ():
            arrays[name] = array.take(of_numbers(np.arange(len(messages)), pa.int64(), is_bad))
        bytes_of = [message.data() if bad else None for message, bad in zip(messages, is_bad.tolist(), strict=True)]
        arrays[UNDECODABLE] = pa.array(bytes_of, pa.binary())
        return self._batch(
            [
                each.of_array(arrays[each.name]) if each.name in arrays else each.array(messages, ())
                for each in self._columns
            ]
        )

    def _decoded_one_by_one(self, messages: Messages) -> tuple[Values, set[int]]:
        """Return the values, with None for those that cannot be decoded, and the numbers of these."""
        values: list[Any] = []
        misfits: set[int] = set()
        for number, message in enumerate(messages):
            try:
                values.append(self._decode(message))
            except BadMessage as error:
                if error.__cause__ and isinstance(error.__cause__.__cause__, PulsarError):
                    raise  # the broker did not tell the schema, and the next attempt asks again
                values.append(None)
                misfits.add(number)
        return values, misfits

    def of_arrays(self, arrays: Mapping[str, pa.Array], values: Values = ()) -> pa.RecordBatch:
        """Return a batch of arrays by the names of the topic's columns. Other columns are those of decoded values.

        Raise `ValueError` or another error of pyarrow for a value of the wrong type.
        """
        made = [
            each.of_array(arrays[each.name]) if each.name in arrays else each.array((), values)
            for each in self._columns
        ]
        return pa.RecordBatch.from_arrays(made, schema=self._schema)


class _Column:
    """A column that a reader asked for."""

    def __init__(
        self, own: StructType, wanted: StructField, arrow: pa.Field, kind: ColumnType | None, form: DataForm
    ) -> None:
        field = next((each for each in own.fields if each.name.lower() == wanted.name.lower()), None)
        if field is None:
            raise BadColumns(f"the topic has no column {wanted.name}: its columns are {', '.join(own.names)}")
        self.name = field.name
        self._splits_ids = field.name == MESSAGE_ID and isinstance(wanted.dataType, StructType)
        if self._splits_ids:
            field = StructField(MESSAGE_ID, MESSAGE_ID_PARTS)
        self._needed = not arrow.nullable
        self._type = self._final = arrow.type
        self.of_value = field.name not in EXTRACT
        self._extract: Extract = self._metadata(EXTRACT[field.name]) if not self.of_value else _as_they_are
        if self.of_value and kind is not None:
            self._extract = _field(field.name, _reader_of(kind, field.name, form))
        natural = to_arrow_schema(StructType([field]), timezone="UTC").field(0).type
        if _nullable(natural) != _nullable(arrow.type):
            self._type = natural
            _needs(field.dataType, wanted.dataType, wanted.name)
            try:
                pa.nulls(0, natural).cast(arrow.type)
            except _WRONG as error:
                raise BadColumns(
                    f"column {wanted.name} of the topic is {field.dataType.simpleString()}, and cannot be read as "
                    f"{wanted.dataType.simpleString()}"
                ) from error

    def array(self, messages: Messages, values: Values) -> pa.Array:
        try:
            made = self._made(messages, values)
        except _WRONG as error:
            raise self._culprit(messages, values) or error from error
        if self._needed and made.null_count:
            raise BadColumns(f"column {self.name} has nulls, but the reader's schema does not allow nulls")
        return made

    def fitting(self, values: Values) -> tuple[pa.Array, list[int]]:
        """Return the column, with null for each value that cannot be converted, and the numbers of these values."""
        parts = list(self._parts(values))
        ends = np.cumsum([len(part) for part, _ in parts])
        wrong = [int(end) - 1 for end, (_, fits) in zip(ends, parts, strict=True) if not fits]
        return pa.concat_arrays([part for part, _ in parts]), wrong

    def _parts(self, values: Values) -> Iterator[tuple[pa.Array, bool]]:
        """Yield the array of each part of the values, and whether the part fits. One that does not is a single null."""
        try:
            yield self._made((), values), True
            return
        except _WRONG:
            if len(values) == 1:
                yield pa.nulls(1, self._final), False
                return
        middle = len(values) // 2
        yield from self._parts(values[:middle])
        yield from self._parts(values[middle:])

    def of_array(self, found: pa.Array) -> pa.Array:
        if self._splits_ids:
            found = pa.array(parts_of_ids(found.to_pylist()), self._type)
        made = found if found.type == self._final else found.cast(self._type).cast(self._final)
        if self._needed and made.null_count:
            raise BadColumns(f"column {self.name} has nulls, but the reader's schema does not allow nulls")
        return made

    def _made(self, messages: Messages, values: Values) -> pa.Array:
        found = self._extract(messages, values)
        if self._splits_ids:
            found = parts_of_ids(found)
        made = found if isinstance(found, pa.Array) else pa.array(found, self._type)
        return made if self._type is self._final else made.cast(self._final)

    def _culprit(self, messages: Messages, values: Values) -> BadMessage | None:
        """Return an error that names the first message whose value cannot be converted, or None."""
        for number, message in enumerate(messages):
            try:
                self._made([message], values[number : number + 1])
            except _WRONG as error:
                return _bad(message, f"column {self.name}: {error}")
        return None

    @staticmethod
    def _metadata(extract: Callable[[Messages], pa.Array | list[Any]]) -> Extract:
        return lambda messages, _: extract(messages)


def _needs(own: DataType, wanted: DataType, where: str) -> None:
    """Raise `BadColumns` for missing fields of structs, which pyarrow's cast would fill with nulls."""
    if isinstance(own, StructType) and isinstance(wanted, StructType):
        for field in wanted.fields:
            if field.name not in own.names:
                raise BadColumns(f"column {where} of the topic has no {field.name}: it has {', '.join(own.names)}")
            _needs(own[field.name].dataType, field.dataType, f"{where}.{field.name}")
    elif isinstance(own, ArrayType) and isinstance(wanted, ArrayType):
        _needs(own.elementType, wanted.elementType, f"{where}[]")
    elif isinstance(own, MapType) and isinstance(wanted, MapType):
        _needs(own.valueType, wanted.valueType, f"{where}[]")


def _as_they_are(messages: Messages, values: Values) -> list[Any]:
    return list(values)


def _field(name: str, convert: Convert | None) -> Extract:
    """Return a function that extracts one field of records."""
    if convert is None:
        return lambda messages, values: [None if each is None else each.get(name) for each in values]

    def extract(messages: Messages, values: Values) -> list[Any]:
        found = [None if each is None else each.get(name) for each in values]
        try:
            return [None if each is None else convert(each) for each in found]
        except Misfit as error:
            raise ValueError(str(error)) from None

    return extract


def _reader_of(kind: ColumnType, name: str, form: DataForm) -> Convert | None:
    return next(reader(each.kind, form) for each in kind.fields if each.name == name)


def _bytes(message: Message[Any]) -> bytes | None:
    return None if message.has_null_value() else message.data()


def _decoded(message: Message[Any]) -> Any:
    return None if message.has_null_value() else _value(message)


def _pair(message: Message[Any]) -> Any:
    return None if message.has_null_value() and message.key_bytes() is None else _value(message)


def _value(message: Message[Any]) -> Any:
    try:
        return message.value()
    except PulsarError as error:
        raise _bad(message, str(error)) from error


def _bad(message: Message[Any], reason: str) -> BadMessage:
    return BadMessage(f"message {message.message_id()} of {message.topic_name()}: {reason}")


def _nullable(arrow: pa.DataType) -> str:
    """Return the type's text without its "not null"."""
    return str(arrow).replace(" not null", "")
