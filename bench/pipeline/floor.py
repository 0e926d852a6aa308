"""A data source in Python that does nothing: it yields ready batches, and its writer drops all rows.

Its figures are those of Spark itself, which no data source in Python can beat.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, StringType, StructType

NAME = "floor"
_METADATA = (
    "__key binary, __topic string, __messageId binary, __publishTime timestamp, __eventTime timestamp, "
    "__messageProperties map<string, string>, __index bigint"
)
VALUES = f"value binary, {_METADATA}"
RECORDS = f"id bigint, name string, price double, qty int, active boolean, note string, {_METADATA}"
_ROWS = 10_000
_SIZES = {"__messageId": 22, "__topic": 50, "name": 8, "note": 30}
_EMPTY = ("__key", "__eventTime", "__index")


class Rows(InputPartition):
    """A partition of so many rows."""

    def __init__(self, count: int) -> None:
        self.count = count


class Floor(DataSource):
    """Options: the rows of the table, the bytes of a value, the number of partitions."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def reader(self, schema: StructType) -> FloorReader:
        rows, size, partitions = (int(self.options[each]) for each in ("rows", "size", "partitions"))
        return FloorReader(schema, rows, size, partitions)

    def writer(self, schema: StructType, overwrite: bool) -> FloorWriter:
        return FloorWriter()


class FloorReader(DataSourceReader):
    """Reader of rows that are alike."""

    def __init__(self, schema: StructType, rows: int, size: int, partitions: int) -> None:
        self._schema, self._rows, self._size, self._partitions = schema, rows, size, partitions

    def partitions(self) -> list[InputPartition]:
        return [Rows(len(range(number, self._rows, self._partitions))) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        batch = self._batch(min(_ROWS, max(1, math.ceil(2**21 / max(1, self._size)))))
        left = partition.count
        while left > 0:
            yield batch.slice(0, left)
            left -= batch.num_rows

    def _batch(self, rows: int) -> pa.RecordBatch:
        arrow = to_arrow_schema(self._schema, timezone="UTC")
        arrays = []
        for field, column in zip(self._schema.fields, arrow, strict=True):
            if field.name in _EMPTY:
                arrays.append(pa.nulls(rows, column.type))
            elif isinstance(field.dataType, BinaryType | StringType):
                text = "n" * _SIZES.get(field.name, self._size)
                arrays.append(pa.repeat(text, rows).cast(column.type))
            elif pa.types.is_map(column.type):
                arrays.append(pa.array([[]] * rows, column.type))
            else:
                arrays.append(pa.repeat(pa.scalar(1).cast(column.type), rows))
        return pa.RecordBatch.from_arrays(arrays, schema=arrow)


class FloorWriter(DataSourceArrowWriter):
    """Writer that drops all rows."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()
