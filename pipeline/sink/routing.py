"""Which partition gets a row: the same one in each attempt, because each has its own record of what it has."""

from __future__ import annotations

from typing import Any

from pulsarium.client import HashingScheme, Message
from pulsarium.client.bulk import MessageRouter, hash_of
from pulsarium.pipeline.sink.sequence import row_of


def by_key_or_row(scheme: HashingScheme) -> MessageRouter:
    """Rows of the same key to the same partition, as other clients have it; without a key one after the other."""

    def choose(message: Message[Any], partitions: int) -> int:
        if message.has_partition_key():
            return hash_of(message.partition_key(), scheme) % partitions
        return row_of(message.sequence_id()) % partitions

    return choose
