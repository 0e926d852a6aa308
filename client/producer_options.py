"""What a producer may be told when it is created."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pulsarium.client.crypto import KeyReader
from pulsarium.client.errors import InvalidConfiguration
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class CompressionType(enum.Enum):
    """How message contents, or whole batches, are compressed."""

    NONE = pb.NONE
    LZ4 = pb.LZ4
    ZLib = pb.ZLIB
    ZSTD = pb.ZSTD
    SNAPPY = pb.SNAPPY


@dataclass(frozen=True, kw_only=True)
class ProducerOptions:
    """Everything beyond the topic. Names as in the official Python client, times in seconds."""

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
    """Messages without a receipt; with more, `send` waits and `send_nowait` refuses."""
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
