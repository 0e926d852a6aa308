"""Convert messages to Arrow's record batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from pulsarium.client import Message, PulsarError
from pulsarium.client.bulk import DataForm, Misfit
from pulsarium.pipeline.columns.kinds import BadColumns, BadMessage, ColumnType
from pulsarium.pipeline.columns.metadata import EXTRACT, Messages
from pulsarium.pipeline.columns.plain import Convert, reader

Values: TypeAlias = Sequence[Any]
Extract: TypeAlias = Callable[[Messages, Values], pa.Array | list[Any]]

_WRONG = (ValueError, TypeError, OverflowError, NotImplementedError, pa.ArrowException)
"""Errors of pyarrow for a value of the wrong type."""


class BatchBuilder:
    """Builder of record batches, column by column, which is much faster than row by row."""

    def __init__(self, own: StructType, wanted: StructType, kind: ColumnType | None, form: DataForm) -> None:
        """Prepare the columns `wanted`.

        `own` are all columns of the topic. `kind` is the record of its values, or None.
        """
        self._messages: list[Message[Any]] = []
        self.size = 0
        """Bytes of payload since the last `take`."""
        arrow = to_arrow_schema(wanted, timezone="UTC")
        self._columns = [_Column(own, field, arrow.field(at), kind, form) for at, field in enumerate(wanted.fields)]
        self._schema = arrow
        self._decode = _bytes if own.fields[0].dataType.typeName() == "binary" and kind is None else _decoded
        self.value_names = frozenset(each.name for each in self._columns if each.of_value)
        """Wanted columns of the topic's schema."""
        self.metadata_names = frozenset(each.name for each in self._columns) - self.value_names
        """Wanted columns of `METADATA`."""

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
        values = self._decode(messages) if self.value_names else ()
        arrays = [column.array(messages, values) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

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

    def of_array(self, found: pa.Array) -> pa.Array:
        made = found if found.type == self._final else found.cast(self._type).cast(self._final)
        if self._needed and made.null_count:
            raise BadColumns(f"column {self.name} has nulls, but the reader's schema does not allow nulls")
        return made

    def _made(self, messages: Messages, values: Values) -> pa.Array:
        found = self._extract(messages, values)
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


def _bytes(messages: Messages) -> Values:
    return [None if each.has_null_value() else each.data() for each in messages]


def _decoded(messages: Messages) -> Values:
    made = []
    for each in messages:
        try:
            made.append(None if each.has_null_value() else each.value())
        except PulsarError as error:
            raise _bad(each, str(error)) from error
    return made


def _bad(message: Message[Any], reason: str) -> BadMessage:
    return BadMessage(f"message {message.message_id()} of {message.topic_name()}: {reason}")


def _nullable(arrow: pa.DataType) -> str:
    """Return the type's text without its "not null"."""
    return str(arrow).replace(" not null", "")
