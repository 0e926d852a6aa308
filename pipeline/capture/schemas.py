"""The tables of a capture, as Spark and as Arrow know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

_WHO = "client string, client_version string, protocol_version int"
_WHERE = f"capture string, connection bigint, number bigint, {_WHO}, time timestamp"
_IDS = "request_id bigint, producer_id bigint, consumer_id bigint, sequence_id bigint, topic string"

FRAMES = (
    f"{_WHERE}, direction string, monotonic_ns bigint, command string, {_IDS}, size bigint, entry_size bigint, "
    "error string, error_message string, broken string, note string"
)
EXCHANGES = (
    f"{_WHERE}, direction string, command string, {_IDS}, answer string, outcome string, error_message string, "
    "latency_us double"
)
VIOLATIONS = (
    f"{_WHERE}, side string, rule string, command string, topic string, detail string, demands string, reference string"
)

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_ROWS = 10_000


def batches(schema: str, rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows, their times in microseconds, as Arrow."""
    arrow = arrow_schema(schema)
    left = iter(rows)
    while chunk := list(islice(left, _ROWS)):
        columns = [pa.array(values, each.type) for values, each in zip(zip(*chunk, strict=True), arrow, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow)


def arrow_schema(schema: str) -> pa.Schema:
    """One of the schemas above, for Arrow."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in (column.split() for column in schema.split(", "))])
