"""Make Arrow arrays of spans in a buffer, without an object of Python for each value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pulsarium.pipeline.columns.ragged import of_numbers
from pulsarium.pipeline.entries.fields import Bytes, Ints, Unusual

_MOST_BYTES = 2**31 - 1  # offsets of an array have 32 bits


def binary(data: Bytes, first: Ints, stop: Ints, rows: Ints | None = None, size: int = -1) -> pa.Array:
    """Return the bytes of ascending spans. With `rows`, the spans are those of these rows of `size`; others are null.

    Arrow copies the spans out of an array that has them and the bytes between them by turns.
    """
    if len(data) > _MOST_BYTES:
        raise Unusual("a buffer of more than 2 GB")
    count = len(first)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2], offsets[1::2] = first, stop
    offsets[-1] = stop[-1] if count else 0
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    both = pa.Array.from_buffers(pa.binary(), 2 * count, buffers)
    return both.take(places(2 * np.arange(count, dtype=np.int64), rows, size))


def places(taken: Ints, rows: Ints | None, size: int) -> pa.Array:
    """Return indexes for `take`: those of `rows`, and null for all other rows."""
    if rows is None or len(rows) == size:
        return of_numbers(taken, pa.int64())
    indexes = np.zeros(size, np.int64)
    is_null = np.ones(size, np.bool_)
    indexes[rows], is_null[rows] = taken, False
    return of_numbers(indexes, pa.int64(), is_null)


def spread(array: pa.Array, rows: Ints, size: int) -> pa.Array:
    """Return an array of `size` with the values at `rows`, and null elsewhere."""
    return array if len(rows) == size else array.take(places(np.arange(len(rows), dtype=np.int64), rows, size))


def text(array: pa.Array) -> pa.Array:
    """Return binary values as strings. Raise `Unusual` for bytes that are not UTF-8."""
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        raise Unusual("text that is not UTF-8") from None


def numbers(values: Ints, kind: pa.DataType) -> pa.Array:
    """Return numbers as an array of this type. Raise `Unusual` when one is out of range."""
    try:
        return of_numbers(values, pa.int64()).cast(kind)
    except pa.ArrowInvalid:
        raise Unusual(f"a number out of the range of {kind}") from None
