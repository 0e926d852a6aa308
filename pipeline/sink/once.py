"""Store each row once: a row has the same number, order and partition in each attempt, and the topic deduplicates."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsarium.client import Admin
from pulsarium.client.admin.errors import AdminError, NotAllowed, NotAuthorized, NotFound
from pulsarium.client.topics import parse
from pulsarium.pipeline.columns.ragged import Numbers
from pulsarium.pipeline.options import ADMIN_URL, ConnectionOptions
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.rest.policies import DEDUPLICATION

ROW_BITS = 32
MOST_ROWS = 1 << ROW_BITS  # of one Spark partition in one batch
MOST_BATCHES = 1 << 63 - ROW_BITS  # sequence ids are signed in Java


N = TypeVar("N", int, Numbers)


class OutOfNumbers(ValueError):
    """A number of a batch, or of a row in a batch, that does not fit into a sequence id."""


def sequence_ids(batch_id: int, row: int, count: int) -> Numbers:
    """Return the sequence ids of `count` rows of a Spark partition, from `row` on. Raise `OutOfNumbers`."""
    sequence_id(batch_id, row + count - 1)
    first = sequence_id(batch_id, row)
    return np.arange(first, first + count, dtype=np.int64)


def sequence_id(batch_id: int, row: int) -> int:
    """Return the sequence id of a row of a Spark partition. Raise `OutOfNumbers` when a number is too large."""
    if not 0 <= batch_id < MOST_BATCHES:
        raise OutOfNumbers(f"batch {batch_id} is not between 0 and {MOST_BATCHES - 1}")
    if not 0 <= row < MOST_ROWS:
        raise OutOfNumbers(
            f"row {row} of a Spark partition: a partition may have {MOST_ROWS} rows, so use more partitions"
        )
    return batch_id << ROW_BITS | row


def batch_of(sequence_id: int) -> int:
    """Return the batch of a sequence id, or -1 for -1, which is no sequence id."""
    return sequence_id >> ROW_BITS


def row_of(sequence_id: N) -> N:
    """Return the row of a sequence id, or the rows of several."""
    return sequence_id & MOST_ROWS - 1


def by_content(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in an order that depends only on their contents. Holds all rows in memory."""
    table = pa.Table.from_batches(list(batches)).combine_chunks()
    keys = pa.table([_sortable(column) for column in table.columns], names=[f"{n}" for n in range(table.num_columns)])
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    yield from table.take(order).to_batches()


def _sortable(column: Any) -> Any:
    """Return the column, or the text of its values when they are nested, because Arrow cannot compare nested values."""
    if pa.types.is_nested(column.type):
        return pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
    return column


class NoDeduplication(RuntimeError):
    """A topic without deduplication, which would store a repeated batch twice."""


class Unchecked(UserWarning):
    """Warning that the sink cannot find out whether the topic deduplicates."""


@functools.cache  # a stream asks with each batch, and one answer is enough
def require_deduplication(connection: ConnectionOptions, topic: str) -> None:
    """Raise `NoDeduplication` when the topic does not deduplicate. Warn when this cannot be found out. Blocks."""
    if connection.admin_url is None:
        return _unknown(topic, f'.option("{ADMIN_URL}", ...) is missing')
    with Pulsar(connection) as pulsar:
        try:
            found = pulsar.call(is_on, pulsar.client.admin, topic)
        except AdminError as error:
            return _unknown(topic, error.reason)
    if not found:
        raise NoDeduplication(
            f"{topic} does not deduplicate, so rows that Spark writes again would be stored twice. Enable it with\n"
            f"    pulsarium admin namespaces set-deduplication --enable {parse(topic).namespace_name}\n"
            'or the same command of pulsar-admin, or set .option("deduplication", "off") if duplicates do not matter'
        )
    return None


def _unknown(topic: str, why: str) -> None:
    warnings.warn(f"cannot find out whether {topic} deduplicates: {why}", Unchecked, stacklevel=4)


async def is_on(admin: Admin, topic: str) -> bool:
    """Return whether the topic's policy, its namespace's or the brokers' setting enables deduplication.

    Raise `AdminError` when the client may not read them.
    """
    name = parse(topic).partitioned_name  # partitions have no policies
    found: bool | None
    try:
        found = await admin.topic_policies[DEDUPLICATION].get(name, applied=True)
    # the topic does not exist yet, topic policies are disabled, or the role may not read them
    except (NotFound, NotAllowed, NotAuthorized):
        found = await admin.namespace_policies[DEDUPLICATION].get(name.namespace_name)
    if found is None:
        found = (await admin.brokers.get_runtime_configurations()).get("brokerDeduplicationEnabled") == "true"
    return found
