"""What a producer may be told when it is created."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeAlias

from pulsarium.client.entry.crypto import KeyReader
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.client.message import Message
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
    """What `create_producer` takes. Names as in the official Python client, times in seconds."""

    topic: str
    """With its partitions, where it has some."""
    _: KW_ONLY
    schema: Schema[T] = BYTES
    """Makes bytes of what is sent, and is told to the broker."""
    producer_name: str | None = None
    """None: the broker chooses one."""
    compression_type: CompressionType = CompressionType.NONE
    batching_enabled: bool = True
    batching_max_messages: int = 1000
    batching_max_allowed_size_in_bytes: int = 128 * 1024
    """Bytes of the contents of one batch, before compression."""
    batching_max_publish_delay: float = 0.01
    """How long a message of `send_nowait` may wait for others to go with it."""
    max_pending_messages: int = 1000
    """Messages without a receipt, in all partitions; with more, `send` waits and `send_nowait` refuses."""
    message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution
    hashing_scheme: HashingScheme = HashingScheme.JavaStringHash
    message_router: MessageRouter | None = None
    """Given a message, which has no id yet, and the number of partitions: the index of its partition."""
    auto_update_partitions_interval: float = 60.0
    """How often to look whether the topic has more partitions."""
    properties: Mapping[str, str] = field(default_factory=dict)
    initial_sequence_id: int | None = None
    """The first message gets the number behind it; None: where the broker says that this producer's name left off."""
    encryption_keys: Collection[str] = ()
    crypto_key_reader: KeyReader | None = None

    def __post_init__(self) -> None:
        if min(self.batching_max_messages, self.batching_max_allowed_size_in_bytes, self.max_pending_messages) < 1:
            raise InvalidConfiguration("the limits of batches and of pending messages must be positive")
        if self.batching_max_publish_delay < 0:
            raise InvalidConfiguration("batching_max_publish_delay is negative")
        custom = self.message_routing_mode is PartitionsRoutingMode.CustomPartition
        if custom != (self.message_router is not None):
            raise InvalidConfiguration("a message_router and the routing mode CustomPartition go together")
        if self.auto_update_partitions_interval <= 0:
            raise InvalidConfiguration("auto_update_partitions_interval must be positive")
