"""The numbers of rows: the same in each attempt, and higher in each later batch."""

from __future__ import annotations

ROW_BITS = 32
MOST_ROWS = 1 << ROW_BITS  # of one Spark partition in one batch
MOST_BATCHES = 1 << 63 - ROW_BITS  # sequence ids are signed in Java


class OutOfNumbers(ValueError):
    """A batch, or a row in it, with a number that a sequence id has no room for."""


def sequence_id(batch_id: int, row: int) -> int:
    """Of a row of a Spark partition; OutOfNumbers if there is none."""
    if not 0 <= batch_id < MOST_BATCHES:
        raise OutOfNumbers(f"batch {batch_id} is not from 0 to {MOST_BATCHES - 1}")
    if not 0 <= row < MOST_ROWS:
        raise OutOfNumbers(f"row {row} of a Spark partition: use more of them, each may have {MOST_ROWS} rows")
    return batch_id << ROW_BITS | row


def batch_of(sequence_id: int) -> int:
    """The batch of a sequence id; -1 of -1, which is none."""
    return sequence_id >> ROW_BITS


def row_of(sequence_id: int) -> int:
    """The row of a sequence id."""
    return sequence_id & MOST_ROWS - 1
