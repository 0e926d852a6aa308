"""Make Arrow arrays of arrays of numpy. `pa.array` would import pandas, for which the first task of a worker waits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pulsarium.pipeline.columns.ragged import Flags, Numbers


def of_numbers(values: Numbers, kind: pa.DataType, is_null: Flags | None = None) -> pa.Array:
    """Return numbers as an array of a type of their size."""
    assert values.dtype.itemsize * 8 == kind.bit_width
    valid = None if is_null is None or not is_null.any() else _bits(~is_null)
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(np.ascontiguousarray(values))])


def of_flags(values: Flags) -> pa.Array:
    """Return flags as an array of booleans."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def of_bytes(data: bytes, lengths: Numbers) -> pa.Array:
    """Return an array of binary values, which stand one behind the other in `data` and have these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def repeated(text: str, count: int) -> pa.Array:
    """Return an array that has the same text in each row."""
    data = text.encode()
    offsets: npt.NDArray[np.int32] = np.arange(count + 1, dtype=np.int32) * np.int32(len(data))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data * count)])


def _bits(flags: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
