"""Make record batches of entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.types import StructType

from pulsarium.client import PulsarError
from pulsarium.client.bulk import BYTES, messages_of
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.entries.fields import Unusual
from pulsarium.pipeline.entries.metadata import METADATA
from pulsarium.pipeline.entries.rows import EntryRows, TakenEntry, joined
from pulsarium.pipeline.entries.values import contents, reader_of

_WRONG = (Unusual, PulsarError, ValueError, TypeError, OverflowError, NotImplementedError, pa.ArrowException)

_GROUP = 500
"""Messages of a group of entries. A message that does not fit costs the speed of its group only."""


class EntryBuilder:
    """Builder of record batches from whole entries."""

    def __init__(self, columns: Columns, wanted: StructType) -> None:
        """Prepare the columns `wanted`. Raise `BadColumns` as `Columns.for_reading` does."""
        self._by_message = columns.for_reading(wanted)
        self._schema = columns.client_schema() or BYTES
        self._values = reader_of(columns.info, columns.kind(), self._by_message.value_names)

    def batch(self, taken: Sequence[TakenEntry]) -> pa.RecordBatch:
        """Return the batch of all messages of these entries.

        Raise `BadMessage` for a message that does not fit the topic's schema, and `Unusual` for messages that only a
        consumer can receive.
        """
        if self._schema.separates_key:
            return self._of_messages(taken)
        try:
            return self._of_rows(joined(taken))
        except _WRONG:  # with one message after another, the error names the message
            groups = [*_groups(taken)] if self._by_message.makes_rows_of_all else []
            if len(groups) < 2:
                return self._of_messages(taken)
        made = [self.batch(each) for each in groups]
        arrays = [pa.concat_arrays(each) for each in zip(*(each.columns for each in made), strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=made[0].schema)

    def _of_rows(self, rows: EntryRows) -> pa.RecordBatch:
        arrays = {name: METADATA[name](rows) for name in self._by_message.metadata_names}
        if self._values is not None:
            try:
                return self._by_message.of_arrays({**arrays, **self._values(rows)})
            except Unusual:
                pass
        decode = self._schema.decode
        values = [None if each is None else decode(each) for each in contents(rows).to_pylist()]
        return self._by_message.of_arrays(arrays, values)

    def _of_messages(self, taken: Sequence[TakenEntry]) -> pa.RecordBatch:
        builder = self._by_message
        for each in taken:
            part = each.part
            try:
                found = messages_of(part.entry, self._schema)
            except PulsarError as error:
                builder.clear()
                raise Unusual(str(error)) from error
            for message in found:
                if part.first <= max(message.message_id().batch_index, 0) < part.last:
                    builder.add(message)
        return builder.take()


def _groups(taken: Sequence[TakenEntry]) -> Iterator[Sequence[TakenEntry]]:
    """Yield the entries in groups, each of which but the last has at least `_GROUP` messages."""
    first = rows = 0
    for number, each in enumerate(taken, 1):
        rows += each.part.rows
        if rows >= _GROUP or number == len(taken):
            yield taken[first:number]
            first, rows = number, 0
