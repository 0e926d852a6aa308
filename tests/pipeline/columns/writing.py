"""Helpers for the tests of writing."""

from __future__ import annotations

from typing import Any

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
from pulsarium.pipeline.columns import Columns, Outgoing


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def write(schema: Schema[Any] | None, given: StructType, *rows: dict[str, Any]) -> list[Outgoing]:
    columns = Columns.of(None if schema is None else schema.info)
    batch = pa.RecordBatch.from_pylist(list(rows), schema=to_arrow_schema(given, timezone="UTC"))
    return list(columns.for_writing(given).messages(batch))
