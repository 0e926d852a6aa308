"""What a producer may be told when it is created."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeAlias

from pulsarium.client.entry.crypto import KeyReader
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.message import Message
from pulsarium.client.producer.interceptors import ProducerInterceptor
from pulsarium.client.schema.schema import BYTES, Schema, T
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MessageRouter: TypeAlias = Callable[[Message[Any], int], int]


class CompressionType(enum.Enum):
    """How message contents, or whole batches, are compressed."""

    NONE = pb.NONE
    LZ4 = pb.LZ4
    ZLib = pb.ZLIB
    ZSTD = pb.ZSTD
    SNAPPY = pb.SNAPPY


class BatchingType(enum.Enum):
    """Which messages share a batch."""

    Default = "default"
    """Those that follow each other."""
    KeyBased = "key"
    """Those that have the same ordering key, or partition key, as Key_Shared consumers need it: all batches of one time
    are sent together, in the order of their last messages. With deduplication what one of them loses, by a crash of
    this application, counts as published where a later one is."""


class ProducerAccessMode(enum.Enum):
    """Who may publish to a topic (PIP-68)."""

    Shared = pb.Shared
    """Anybody."""
    Exclusive = pb.Exclusive
    """Nobody else; ProducerFenced if somebody does already."""
    WaitForExclusive = pb.WaitForExclusive
    """Nobody else; opening waits for that, without a limit of time."""
    ExclusiveWithFencing = pb.ExclusiveWithFencing
    """Nobody else: whoever does already, or waits to, is thrown out. That is no end for a Shared one: it asks again and
    again, and what it sends waits until the topic is free, as in Java clients, where that has a time limit."""


class PartitionsRoutingMode(enum.Enum):
    """Which partition gets a message without a key, or, with CustomPartition, any message."""

    UseSinglePartition = "single"
    """Always the same, chosen by chance."""
    RoundRobinDistribution = "round robin"
    """One after the other, a whole batch each."""
    CustomPartition = "custom"
    """As `message_router` says."""


class HashingScheme(enum.Enum):
    """How a key finds its partition."""

    JavaStringHash = "java"
    """Java's `String.hashCode`; the default of Java clients."""
    Murmur3_32Hash = "murmur3"


@dataclass(frozen=True)
class ProducerOptions(Generic[T]):
    """What `Client.create_producer` takes and explains. Names as in the official Python client, times in seconds.

    Its `block_if_queue_full` is the choice between `send` or `submit`, and `send_nowait`; its `send_timeout_millis` is
    cancellation; and nothing needs `lazy_start_partitioned_producers`, since all partitions are opened at once.
    """

    topic: str
    _: KW_ONLY
    schema: Schema[T] = BYTES  # type: ignore[assignment]  # mypy: T may be another
    producer_name: str | None = None
    compression_type: CompressionType = CompressionType.NONE
    batching_enabled: bool = True
    batching_max_messages: int = 1000
    batching_max_allowed_size_in_bytes: int = 128 * 1024
    batching_max_publish_delay: float = 0.01
    batching_type: BatchingType = BatchingType.Default
    chunking_enabled: bool = False
    chunk_max_message_size: int | None = None
    max_pending_messages: int = 1000
    max_pending_messages_across_partitions: int = 50_000
    message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution
    hashing_scheme: HashingScheme = HashingScheme.JavaStringHash
    message_router: MessageRouter | None = None
    auto_update_partitions_interval: float = 60.0
    properties: Mapping[str, str] = field(default_factory=dict)
    initial_sequence_id: int | None = None
    access_mode: ProducerAccessMode = ProducerAccessMode.Shared
    initial_subscription_name: str | None = None
    interceptors: Sequence[ProducerInterceptor[T]] = ()
    encryption_keys: Collection[str] = ()
    crypto_key_reader: KeyReader | None = None

    def __post_init__(self) -> None:
        batch = min(self.batching_max_messages, self.batching_max_allowed_size_in_bytes)
        if min(batch, self.max_pending_messages, self.max_pending_messages_across_partitions) < 1:
            raise InvalidConfiguration("the limits of batches and of pending messages must be positive")
        if self.batching_max_publish_delay < 0:
            raise InvalidConfiguration("batching_max_publish_delay is negative")
        if self.batching_enabled and self.chunking_enabled:
            raise InvalidConfiguration("batching and chunking of messages cannot be enabled together")
        if self.initial_sequence_id is not None and self.initial_sequence_id < -1:
            raise InvalidConfiguration("initial_sequence_id is negative")
        if (self.chunk_max_message_size or 0) < 0:
            raise InvalidConfiguration("chunk_max_message_size is negative")
        custom = self.message_routing_mode is PartitionsRoutingMode.CustomPartition
        if custom != (self.message_router is not None):
            raise InvalidConfiguration("a message_router and the routing mode CustomPartition go together")
        if self.auto_update_partitions_interval <= 0:
            raise InvalidConfiguration("auto_update_partitions_interval must be positive")
