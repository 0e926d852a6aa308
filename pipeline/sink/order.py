"""The order in which a task sends its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def by_content(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, in an order that follows from what they hold; all of them are in memory then."""
    table = pa.Table.from_batches(list(batches)).combine_chunks()
    keys = pa.table([_sortable(column) for column in table.columns], names=[f"{n}" for n in range(table.num_columns)])
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    yield from table.take(order).to_batches()


def _sortable(column: Any) -> Any:
    """The column, or where it is nested its values as text: Arrow does not compare those."""
    if pa.types.is_nested(column.type):
        return pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
    return column
