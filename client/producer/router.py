"""Choose the partition of a message."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.producer.draft import Draft
from pulsarium.client.producer.options import HashingScheme, PartitionsRoutingMode, ProducerOptions
from pulsarium.proto.routing import java_hash, partition_murmur3


class Target(Protocol):
    """The producer of one partition."""

    @property
    def has_batch(self) -> bool:
        """Return whether messages wait for a batch."""
        ...


class Router:
    """A chooser of partitions by `message_routing_mode`."""

    def __init__(self, topic: str, options: ProducerOptions[Any]) -> None:
        self._topic = topic
        self._custom = options.message_router
        self._scheme = options.hashing_scheme
        self._single = options.message_routing_mode is PartitionsRoutingMode.UseSinglePartition
        self._turn = random.randrange(2**31)  # producers shall not all begin with the same partition

    def choose(self, message: Draft, targets: Sequence[Target]) -> int:
        """Return the index of the partition of a message.

        Raise `InvalidConfiguration` when the application's router returns an index that is out of range.
        """
        count = len(targets)
        if self._custom is not None:
            index = self._custom(message.message(self._topic), count)
            if not 0 <= index < count:
                raise InvalidConfiguration(f"message_router chose partition {index} of {count}")
            return index
        if message.key is not None:
            return hash_of(message.key, self._scheme) % count
        if not self._single and not targets[self._turn % count].has_batch:
            self._turn += 1
        return self._turn % count


def hash_of(key: str, scheme: HashingScheme) -> int:
    """Return the hash of a key, the same as in Java clients. It is never negative."""
    return partition_murmur3(key) if scheme is HashingScheme.Murmur3_32Hash else java_hash(key)
