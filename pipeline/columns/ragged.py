"""Build bytes for each row of a column of numbers, without a call for each row.

A piece holds some bytes for each row: a matrix with a line for a row, and the places of the line that are in use.
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


class Piece(NamedTuple):
    """Bytes of each row."""

    matrix: npt.NDArray[np.uint8]
    in_use: Flags

    def only(self, rows: Flags) -> Piece:
        """Return the piece with no bytes for all other rows."""
        return Piece(self.matrix, self.in_use & rows[:, None])

    def sizes(self) -> Numbers:
        """Return the number of bytes of each row."""
        return np.asarray(self.in_use.sum(axis=1))


def constant(data: bytes, rows: int) -> Piece:
    """Return a piece with the same bytes for each row."""
    matrix = np.broadcast_to(np.frombuffer(data, np.uint8), (rows, len(data)))
    return Piece(matrix, np.ones(matrix.shape, np.bool_))


def numbers(values: Numbers, kind: str) -> Piece:
    """Return a piece with numbers of a fixed size. `kind` is a type of numpy with a byte order, such as ">i4"."""
    matrix = np.ascontiguousarray(values.astype(kind)).view(np.uint8).reshape(len(values), np.dtype(kind).itemsize)
    return Piece(matrix, np.ones(matrix.shape, np.bool_))


def varints(values: Numbers) -> Piece:
    """Return a piece with unsigned numbers in the variable length of protobuf and Avro."""
    values = values.astype(np.uint64)
    most = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    rest = values[:, None] >> (np.arange(most, dtype=np.uint64) * np.uint64(7))
    in_use = rest > 0
    in_use[:, 0] = True
    matrix = (rest & np.uint64(0x7F)).astype(np.uint8)
    matrix[:, :-1] |= in_use[:, 1:].astype(np.uint8) << 7  # the bit says that more bytes follow
    return Piece(matrix, in_use)


def zigzag(values: Numbers) -> Numbers:
    """Return signed numbers as Avro maps them to unsigned ones."""
    values = values.astype(np.int64)
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def size_of(values: pa.Array) -> Numbers:
    """Return the number of bytes of each value of a large_binary column. A null has none."""
    return np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False))


def column(pieces: Sequence[Piece]) -> pa.Array:
    """Return a large_binary column with the bytes of all pieces, one behind the other."""
    matrix = np.hstack([each.matrix for each in pieces])
    in_use = np.hstack([each.in_use for each in pieces])
    offsets = np.zeros(len(matrix) + 1, np.int64)
    np.cumsum(in_use.sum(axis=1), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(matrix[in_use])]
    return pa.Array.from_buffers(pa.large_binary(), len(matrix), buffers)


def joined(parts: Sequence[pa.Array | Piece]) -> pa.Array:
    """Return a large_binary column with the bytes of all parts, one behind the other. No part has nulls."""
    columns: list[pa.Array] = []
    pieces: list[Piece] = []
    for part in parts:
        if isinstance(part, Piece):
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
