"""What makes a row be there once: its number, order and partition in each attempt, and a topic that deduplicates."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pulsarium.client import Admin, HashingScheme, Message
from pulsarium.client.admin.errors import AdminError, NotAllowed, NotAuthorized, NotFound
from pulsarium.client.bulk import MessageRouter, hash_of
from pulsarium.client.topics import parse
from pulsarium.pipeline.options import ADMIN_URL, Connection
from pulsarium.pipeline.pulsar import Pulsar
from pulsarium.rest.policies import DEDUPLICATION

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


def by_key_or_row(scheme: HashingScheme) -> MessageRouter:
    """Rows of the same key to the same partition, as other clients have it; without a key one after the other."""

    def choose(message: Message[Any], partitions: int) -> int:
        if message.has_partition_key():
            return hash_of(message.partition_key(), scheme) % partitions
        return row_of(message.sequence_id()) % partitions

    return choose


class NoDeduplication(RuntimeError):
    """The topic would keep a repeated batch twice."""


class Unchecked(UserWarning):
    """Nobody knows whether the topic deduplicates."""


@functools.cache  # a stream asks with each batch, and one answer is enough
def require_deduplication(connection: Connection, topic: str) -> None:
    """NoDeduplication if it does not; a warning if that cannot be found out. Blocks."""
    if connection.admin_url is None:
        return _unknown(topic, f'there is no .option("{ADMIN_URL}", ...)')
    with Pulsar(connection) as pulsar:
        try:
            found = pulsar.call(is_on, pulsar.client.admin, topic)
        except AdminError as error:
            return _unknown(topic, error.reason)
    if not found:
        raise NoDeduplication(
            f"{topic} does not deduplicate, so rows that Spark writes again would be there twice. Switch it on with\n"
            f"    pulsarium admin namespaces set-deduplication --enable {parse(topic).namespace_name}\n"
            'which pulsar-admin has as well; or have .option("deduplication", "off") if that does not matter'
        )
    return None


def _unknown(topic: str, why: str) -> None:
    warnings.warn(f"nobody knows whether {topic} deduplicates: {why}", Unchecked, stacklevel=4)


async def is_on(admin: Admin, topic: str) -> bool:
    """By the topic's policy, its namespace's, or the brokers' setting; AdminError where that may not be asked."""
    name = parse(topic).partitioned_name  # partitions have no policies
    found: bool | None
    try:
        found = await admin.topic_policies[DEDUPLICATION].get(name, applied=True)
    except (NotFound, NotAllowed, NotAuthorized):  # it is still to be made; there are no such policies; not for us
        found = await admin.namespace_policies[DEDUPLICATION].get(name.namespace_name)
    if found is None:
        found = (await admin.brokers.get_runtime_configurations()).get("brokerDeduplicationEnabled") == "true"
    return found
