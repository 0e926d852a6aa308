"""Pick rows and columns from the tables of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from pulsarium.pipeline.capture.rows import Row, everything


def columns(schema: str) -> list[str]:
    """Return the names of the columns in the schema of a table."""
    return [column.split()[0] for column in schema.split(", ")]


def picked(schema: str, found: Iterable[tuple[Any, ...]], names: str) -> list[tuple[Any, ...]]:
    """Return the columns `names` of each row, in the order of `names`."""
    at = [columns(schema).index(name) for name in names.split()]
    return [tuple(row[each] for each in at) for row in found]


def _rows(name: str, path: str) -> Iterator[Row]:
    return (row for table, row in everything(path) if table == name)


frames = partial(_rows, "frames")
exchanges = partial(_rows, "exchanges")
violations = partial(_rows, "violations")
"""Return the rows of one table of a capture. The functions above do the same for their tables."""
