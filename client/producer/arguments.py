"""Options of `create_producer`, each with its type and its text. `ProducerOptions` has their defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Generic

from typing_extensions import TypedDict

from pulsarium.client.entry.crypto import KeyReader
from pulsarium.client.producer.interceptors import ProducerInterceptor
from pulsarium.client.producer.options import (
    BatchingType,
    CompressionType,
    HashingScheme,
    MessageRouter,
    PartitionsRoutingMode,
    ProducerAccessMode,
)
from pulsarium.client.schema.schema import T


class ScalableProducerArguments(TypedDict, total=False):
    """Options of each producer.

    Attributes:
        producer_name: The name of the producer. With None, the broker chooses one.
        compression_type: The compression of message contents, or of whole batches.
        batching_enabled: Put several messages into one entry.
        batching_max_messages: The most messages in one batch.
        batching_max_allowed_size_in_bytes: The most bytes of contents in one batch, before compression.
        batching_max_publish_delay: The longest time that a message of `submit` or `send_nowait` waits for its batch.
        chunking_enabled: Send a message that is too large for one entry in several entries (PIP-37). Needs
            `batching_enabled=False`.
        max_pending_messages: The most messages without a receipt in each partition. At the limit, `send` waits and
            `send_nowait` raises an error.
        properties: Properties that the topic's stats show.
        initial_sequence_id: The first message gets the next higher sequence id. With None, it continues behind the
            last sequence id that the broker knows for the producer's name.
        access_mode: The access of other producers to the topic (PIP-68).
        encryption_keys: The names of the keys to encrypt for. Without names, nothing is encrypted.
        crypto_key_reader: The reader of the encryption keys.
    """

    producer_name: str | None
    compression_type: CompressionType
    batching_enabled: bool
    batching_max_messages: int
    batching_max_allowed_size_in_bytes: int
    batching_max_publish_delay: float
    chunking_enabled: bool
    max_pending_messages: int
    properties: Mapping[str, str]
    initial_sequence_id: int | None
    access_mode: ProducerAccessMode
    encryption_keys: Collection[str]
    crypto_key_reader: KeyReader | None


class ProducerArguments(ScalableProducerArguments, Generic[T], total=False):
    """Options of a producer of a topic that is not scalable.

    Attributes:
        batching_type: The rule that puts messages into one batch.
        chunk_max_message_size: The most bytes of a chunk's content, after compression. With None or 0, a chunk is as
            large as the broker's `maxMessageSize` allows.
        max_pending_messages_across_partitions: The most messages without a receipt in all partitions together. Each
            partition gets an equal share, at most `max_pending_messages`.
        message_routing_mode: The choice of the partition for a message without a key.
        hashing_scheme: The hash that maps a key to a partition.
        message_router: A function of a message, without an id, and the number of partitions. It returns the index of
            the message's partition. Needs the routing mode CustomPartition.
        auto_update_partitions_interval: The time between two looks for new partitions.
        initial_subscription_name: A subscription that the broker creates if it creates the topic for this producer
            (PIP-124).
        interceptors: Interceptors of messages, called in this order.
    """

    batching_type: BatchingType
    chunk_max_message_size: int | None
    max_pending_messages_across_partitions: int
    message_routing_mode: PartitionsRoutingMode
    hashing_scheme: HashingScheme
    message_router: MessageRouter | None
    auto_update_partitions_interval: float
    initial_subscription_name: str | None
    interceptors: Sequence[ProducerInterceptor[T]]
