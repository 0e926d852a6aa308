"""Turn rows into messages, for the tests of writing."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    DataType,
    StructField,
    StructType,
)

from pulsarium.client import (
    Schema,
)
from pulsarium.pipeline.columns.columns import Columns
from pulsarium.pipeline.columns.writing import RowReader


class Made(NamedTuple):
    """A message that was made from a row."""

    value: Any
    key: bytes | str | None = None
    event_time: int | None = None
    properties: dict[str, str] | None = None


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def write(schema: Schema[Any] | None, given: StructType, *rows: dict[str, Any]) -> list[Made]:
    columns = Columns.of(None if schema is None else schema.info)
    batch = pa.RecordBatch.from_pylist(list(rows), schema=to_arrow_schema(given, timezone="UTC"))
    return messages(columns.for_writing(given), batch)


def messages(reader: RowReader, batch: pa.RecordBatch) -> list[Made]:
    """Return the messages of a batch of rows. Check that encoding in bulk gives the bytes of encoding one by one."""
    made = reader.messages(batch)
    alone = reader._one_by_one(batch)
    assert made.contents.data.equals(alone.data)
    assert (made.contents.is_null == alone.is_null).all()
    found = []
    for row, value in enumerate(reader.values(batch)):
        options: dict[str, Any] = dict(made.options(row, row))
        found.append(
            Made(value, options.get("partition_key"), options.get("event_timestamp"), options.get("properties"))
        )
    return found
