"""Build bytes for each row of a column of numbers, without a call for each row, and Arrow arrays of arrays of numpy.

A piece holds some bytes for each row: a matrix with a line for a row, and the places of the line that are in use.
`pa.array` would import pandas, for which the first task of a worker waits: arrays of numpy become Arrow without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers: TypeAlias = npt.NDArray[Any]
Flags: TypeAlias = npt.NDArray[np.bool_]


class RowBytes(NamedTuple):
    """Bytes of each row."""

    matrix: npt.NDArray[np.uint8]
    in_use: Flags

    def only(self, rows: Flags) -> RowBytes:
        """Return the piece with no bytes for all other rows."""
        return RowBytes(self.matrix, self.in_use & rows[:, None])

    def sizes(self) -> Numbers:
        """Return the number of bytes of each row."""
        return np.asarray(self.in_use.sum(axis=1))


def constant(data: bytes, rows: int) -> RowBytes:
    """Return a piece with the same bytes for each row."""
    matrix = np.broadcast_to(np.frombuffer(data, np.uint8), (rows, len(data)))
    return RowBytes(matrix, np.ones(matrix.shape, np.bool_))


def numbers(values: Numbers, kind: str) -> RowBytes:
    """Return a piece with numbers of a fixed size. `kind` is a type of numpy with a byte order, such as ">i4"."""
    matrix = np.ascontiguousarray(values.astype(kind)).view(np.uint8).reshape(len(values), np.dtype(kind).itemsize)
    return RowBytes(matrix, np.ones(matrix.shape, np.bool_))


def varints(values: Numbers) -> RowBytes:
    """Return a piece with unsigned numbers in the variable length of protobuf and Avro."""
    values = values.astype(np.uint64)
    most = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    rest = values[:, None] >> (np.arange(most, dtype=np.uint64) * np.uint64(7))
    in_use = rest > 0
    in_use[:, 0] = True
    matrix = (rest & np.uint64(0x7F)).astype(np.uint8)
    matrix[:, :-1] |= in_use[:, 1:].astype(np.uint8) << 7  # the bit says that more bytes follow
    return RowBytes(matrix, in_use)


def zigzag(values: Numbers) -> Numbers:
    """Return signed numbers as Avro maps them to unsigned ones."""
    values = values.astype(np.int64)
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def size_of(values: pa.Array) -> Numbers:
    """Return the number of bytes of each value of a large_binary column. A null has none."""
    return np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False))


def column(pieces: Sequence[RowBytes]) -> pa.Array:
    """Return a large_binary column with the bytes of all pieces, one behind the other."""
    matrix = np.hstack([each.matrix for each in pieces])
    in_use = np.hstack([each.in_use for each in pieces])
    offsets = np.zeros(len(matrix) + 1, np.int64)
    np.cumsum(in_use.sum(axis=1), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(matrix[in_use])]
    return pa.Array.from_buffers(pa.large_binary(), len(matrix), buffers)


def joined(parts: Sequence[pa.Array | RowBytes]) -> pa.Array:
    """Return a large_binary column with the bytes of all parts, one behind the other. No part has nulls."""
    columns: list[pa.Array] = []
    pieces: list[RowBytes] = []
    for part in parts:
        if isinstance(part, RowBytes):
            pieces.append(part)
            continue
        if pieces:
            columns.append(column(pieces))
            pieces = []
        columns.append(part)
    if pieces:
        columns.append(column(pieces))
    if len(columns) == 1:
        return columns[0]
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.large_binary()))


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
