"""Options of a producer."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeAlias

from pulsarium.client.choices import check_choices
from pulsarium.client.entry.crypto import KeyReader
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.message import Message
from pulsarium.client.producer.intercepting import InterceptsProducer
from pulsarium.client.schema.schema import BYTES, Schema, T
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MessageRouter: TypeAlias = Callable[[Message[Any], int], int]


class CompressionType(enum.Enum):
    """Compression of message contents, or of whole batches."""

    NONE = pb.NONE
    LZ4 = pb.LZ4
    ZLib = pb.ZLIB
    ZSTD = pb.ZSTD
    SNAPPY = pb.SNAPPY


class BatchingType(enum.Enum):
    """Rule that puts messages into one batch."""

    Default = "default"
    """A batch holds successive messages."""
    KeyBased = "key"
    """A batch holds messages with the same ordering key, or else the same partition key, as Key_Shared needs it. Open
    batches are sent together, in the order of their last messages. With deduplication, a crash of the application
    between two of these batches loses messages: the broker takes a lower sequence id for published."""


class ProducerAccessMode(enum.Enum):
    """Access of other producers to the topic (PIP-68)."""

    Shared = pb.Shared
    """Other producers may publish, too."""
    Exclusive = pb.Exclusive
    """No other producer may publish. Opening raises ProducerFenced when the topic has a producer."""
    WaitForExclusive = pb.WaitForExclusive
    """No other producer may publish. Opening waits until the topic has no other producer, without a time limit."""
    ExclusiveWithFencing = pb.ExclusiveWithFencing
    """No other producer may publish. Opening fences the topic's producers and those that wait for it. A fenced Shared
    producer of this client asks again until the topic is free, and its messages wait. Java clients do so until their
    send timeout."""


class PartitionsRoutingMode(enum.Enum):
    """Choice of the partition of a message without a key. CustomPartition chooses it for every message."""

    UseSinglePartition = "single"
    """Always the same partition, chosen at random."""
    RoundRobinDistribution = "round robin"
    """One partition after another, with a whole batch each."""
    CustomPartition = "custom"
    """The partition that `message_router` returns."""


class HashingScheme(enum.Enum):
    """Hash that maps a key to its partition."""

    JavaStringHash = "java"
    """Java's `String.hashCode`. The default of Java clients."""
    Murmur3_32Hash = "murmur3"


@dataclass(frozen=True)
class ProducerOptions(Generic[T]):
    """Options of a producer, described at `Client.create_producer`. Durations are in seconds.

    The names are those of the official Python client, without three options. `send` and `submit` wait for a full queue
    and `send_nowait` does not, in place of `block_if_queue_full`. Cancel scopes replace `send_timeout_millis`. All
    partitions are opened at once, so that `lazy_start_partitioned_producers` is not needed.
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
    interceptors: Sequence[InterceptsProducer[T]] = ()
    encryption_keys: Collection[str] = ()
    crypto_key_reader: KeyReader | None = None

    def __post_init__(self) -> None:
        check_choices(self)
        batch = min(self.batching_max_messages, self.batching_max_allowed_size_in_bytes)
        if min(batch, self.max_pending_messages, self.max_pending_messages_across_partitions) < 1:
            raise InvalidConfiguration("the limits of batches and of pending messages must be positive")
        if self.batching_max_publish_delay < 0:
            raise InvalidConfiguration("batching_max_publish_delay must not be negative")
        if self.batching_enabled and self.chunking_enabled:
            raise InvalidConfiguration("batching and chunking exclude each other: pass batching_enabled=False")
        if self.initial_sequence_id is not None and self.initial_sequence_id < -1:
            raise InvalidConfiguration("initial_sequence_id must be -1 or more")
        if (self.chunk_max_message_size or 0) < 0:
            raise InvalidConfiguration("chunk_max_message_size must not be negative")
        custom = self.message_routing_mode is PartitionsRoutingMode.CustomPartition
        if custom != (self.message_router is not None):
            raise InvalidConfiguration(
                "message_router needs the routing mode CustomPartition, and this mode a message_router"
            )
        if self.auto_update_partitions_interval <= 0:
            raise InvalidConfiguration("auto_update_partitions_interval must be positive")
