"""Make producers, consumers, readers, table views and transactions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import TYPE_CHECKING

import anyio.lowlevel

from pulsarium.client.connection.settings import given
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.interceptors import ConsumerInterceptor
from pulsarium.client.consumer.last_entry import PayloadToMessageIdConverter
from pulsarium.client.consumer.options import (
    ConsumerKeySharedPolicy,
    ConsumerOptions,
    ConsumerType,
    InitialPosition,
    ReaderOptions,
    RegexSubscriptionMode,
    TableViewOptions,
)
from pulsarium.client.consumer.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    RedeliveryBackoff,
)
from pulsarium.client.consumer.raw_reader import RawReader, RawReaderOptions
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.core import Core
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.entry.decoding import MessagePayloadProcessor
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.interceptors import ProducerInterceptor
from pulsarium.client.producer.options import (
    BatchingType,
    CompressionType,
    HashingScheme,
    MessageRouter,
    PartitionsRoutingMode,
    ProducerAccessMode,
    ProducerOptions,
)
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import BYTES, Schema, SchemaInfo, T
from pulsarium.client.schema.versions import VERSION_BYTES, fetch
from pulsarium.client.table_view import TableView
from pulsarium.client.topics import full_name, partitions_of
from pulsarium.client.transaction.transaction import Transaction, TransactionOptions, begin, transaction
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client.admin.admin import Admin

_BATCH = ConsumerBatchReceivePolicy()
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Client:
    """Makes producers, consumers, readers and transactions; made by `connect`, and usable until its block is left."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def create_producer(
        self,
        topic: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        producer_name: str | None = None,
        compression_type: CompressionType = CompressionType.NONE,
        batching_enabled: bool = True,
        batching_max_messages: int = 1000,
        batching_max_allowed_size_in_bytes: int = 128 * 1024,
        batching_max_publish_delay: float = 0.01,
        batching_type: BatchingType = BatchingType.Default,
        chunking_enabled: bool = False,
        chunk_max_message_size: int | None = None,
        max_pending_messages: int = 1000,
        max_pending_messages_across_partitions: int = 50000,
        message_routing_mode: PartitionsRoutingMode = PartitionsRoutingMode.RoundRobinDistribution,
        hashing_scheme: HashingScheme = HashingScheme.JavaStringHash,
        message_router: MessageRouter | None = None,
        auto_update_partitions_interval: float = 60.0,
        properties: Mapping[str, str] = _NOTHING,
        initial_sequence_id: int | None = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.Shared,
        initial_subscription_name: str | None = None,
        interceptors: Sequence[ProducerInterceptor[T]] = (),
        encryption_keys: Collection[str] = (),
        crypto_key_reader: KeyReader | None = None,
    ) -> Producer[T]:
        """Return a producer on a topic: `async with` opens and closes it. Durations are seconds.

        topic: With its partitions, where it has some.
        schema: Makes bytes of what is sent, and is told to the broker.
        producer_name: None: the broker chooses one.
        compression_type: Of contents, or of whole batches.
        batching_enabled: Put messages that are sent together into one entry.
        batching_max_messages: Messages of one batch.
        batching_max_allowed_size_in_bytes: Bytes of the contents of one batch, before compression.
        batching_max_publish_delay: How long a message of `send_nowait` may wait for others to go with it.
        batching_type: Which messages share a batch.
        chunking_enabled: Send what is larger than a message may be in several entries (PIP-37); needs
            `batching_enabled=False`.
        chunk_max_message_size: Bytes of a chunk's content, after compression; None or 0: what the broker's
            `maxMessageSize` leaves.
        max_pending_messages: Messages without a receipt, in each partition; with more, `send` waits and
            `send_nowait` refuses.
        max_pending_messages_across_partitions: And in all of them: each partition gets its share, if that is
            less.
        message_routing_mode: Which partition gets a message without a key.
        hashing_scheme: How a key finds its partition.
        message_router: Given a message, which has no id yet, and the number of partitions: the index of its
            partition.
        auto_update_partitions_interval: How often to look whether the topic has more partitions.
        properties: Shown in the stats of the topic.
        initial_sequence_id: The first message gets the number behind it; None: where the broker says that this
            producer's name left off.
        access_mode: Whether others may publish to the topic, too (PIP-68).
        initial_subscription_name: A subscription to be created with the topic, where this is the one that
            creates it (PIP-124).
        interceptors: Called in this order.
        encryption_keys: Names of the keys to encrypt for; none: nothing is encrypted.
        crypto_key_reader: Finds these keys.

        InvalidTopicName, InvalidConfiguration or CryptoError for arguments that make no sense. Opening raises
        ConnectError, or what the broker refuses it with.
        """
        return Producer(self._core, ProducerOptions(**given(locals())))

    def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        receiver_queue_size: int = 1000,
        max_total_receiver_queue_size_across_partitions: int = 50000,
        read_compacted: bool = False,
        start_message_id_inclusive: bool = False,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        payload_to_message_id_converter: PayloadToMessageIdConverter | None = None,
        message_payload_processor: MessagePayloadProcessor | None = None,
        max_pending_chunked_message: int = 10,
        auto_ack_oldest_chunked_message_on_queue_full: bool = False,
        expire_time_of_incomplete_chunked_message: float = 60.0,
        auto_update_partitions_interval: float = 60.0,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        initial_position: InitialPosition = InitialPosition.Latest,
        consumer_name: str = "",
        properties: Mapping[str, str] = _NOTHING,
        priority_level: int = 0,
        negative_ack_redelivery_delay: float = 60.0,
        negative_ack_redelivery_backoff: RedeliveryBackoff | None = None,
        unacked_messages_timeout: float | None = None,
        ack_timeout_redelivery_backoff: RedeliveryBackoff | None = None,
        dead_letter_policy: ConsumerDeadLetterPolicy | None = None,
        retry_enable: bool = False,
        batch_receive_policy: ConsumerBatchReceivePolicy = _BATCH,
        start_paused: bool = False,
        interceptors: Sequence[ConsumerInterceptor] = (),
        acknowledgement_group_time: float = 0.01,
        max_acknowledgement_group_size: int = 1000,
        batch_index_ack_enabled: bool = False,
        ack_receipt_enabled: bool = False,
        replicate_subscription_state_enabled: bool = False,
        key_shared_policy: ConsumerKeySharedPolicy | None = None,
        pattern_auto_discovery_period: float = 60.0,
        regex_subscription_mode: RegexSubscriptionMode = RegexSubscriptionMode.PersistentOnly,
    ) -> Consumer[T]:
        """Return a consumer on topics: `async with` subscribes and closes it. Durations are seconds.

        topic: One with its partitions, several, or a pattern; that one may begin with
            `persistent://tenant/namespace/`.
        subscription_name: Made by its first consumer.
        schema: What `Message.value` is; told to the broker.
        receiver_queue_size: Messages of each topic and partition that may wait here. 0, of a consumer on one
            topic without partitions: the broker is asked for each message when somebody wants it; then there
            must be no batches in the topic.
        max_total_receiver_queue_size_across_partitions: Messages of all of them.
        read_compacted: Of a compacted topic only the newest message of each key.
        start_message_id_inclusive: A seek, or a reader's start, at a message delivers that message, too.
        crypto_key_reader: Finds the keys that decrypt.
        crypto_failure_action: What becomes of a message that cannot be decrypted.
        payload_to_message_id_converter: Computes the last message's id where the broker sends its entry
            (PIP-429); None: understands Pulsar's format.
        message_payload_processor: Takes entries apart (PIP-96); None: understands Pulsar's format.
        max_pending_chunked_message: Messages of several chunks (PIP-37) of each topic and partition that may be
            incomplete here; with one more the oldest is given up. 0: any number.
        auto_ack_oldest_chunked_message_on_queue_full: What is given up then is acknowledged; else it is left
            for another delivery.
        expire_time_of_incomplete_chunked_message: After so long the chunks of a message that is still
            incomplete are acknowledged. 0: never.
        auto_update_partitions_interval: How often to look whether a topic has more partitions.
        consumer_type: Who of its consumers gets which message.
        initial_position: Where it begins, if it is made by this.
        consumer_name: Shown in the stats, and what Failover chooses by; "": the broker finds one.
        properties: Shown in the stats.
        priority_level: Of a Shared or Failover subscription those get messages first who have the lowest
            number.
        negative_ack_redelivery_delay: How long a negatively acknowledged message waits.
        negative_ack_redelivery_backoff: Says in its place how long a negatively acknowledged message waits, by
            how often it was delivered before.
        unacked_messages_timeout: How long a received message may be unacknowledged before it is delivered
            again, of a batch all of it; at least 1 second, None: for ever. Without
            `ack_timeout_redelivery_backoff`.
        ack_timeout_redelivery_backoff: Says how long that is, by how often the message was delivered before.
        dead_letter_policy: Where messages go that are delivered again too often; None: nowhere.
        retry_enable: `reconsume_later` may be called, and the retry letter topic is subscribed to, too. The
            topics are the names' first in the alphabet with `-<subscription>-RETRY` and `-DLQ`, and 16 the most
            redeliveries, unless `dead_letter_policy` says otherwise.
        batch_receive_policy: When `batch_receive` has enough.
        start_paused: Ask for no messages before `Consumer.resume`.
        interceptors: See and change what is received, and see what is acknowledged; in this order.
        acknowledgement_group_time: How long an acknowledgement may wait to go out with others; 0: it goes at
            once.
        max_acknowledgement_group_size: Acknowledgements that wait; with so many they go out.
        batch_index_ack_enabled: Tell the broker of each acknowledged message of a batch (PIP-54); else only
            when all of them are.
        ack_receipt_enabled: Acknowledging waits for the broker's word that it is kept.
        replicate_subscription_state_enabled: Keep its position in step in the other clusters (PIP-33).
        key_shared_policy: How KeyShared shares the keys.
        pattern_auto_discovery_period: How often to look which topics match a pattern.
        regex_subscription_mode: Which kind of topics a pattern is held against.

        InvalidTopicName or InvalidConfiguration for arguments that make no sense. Opening raises ConnectError, or what
        the broker refuses it with.
        """
        return Consumer(self._core, ConsumerOptions(**given(locals())))

    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | None = None,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        receiver_queue_size: int = 1000,
        max_total_receiver_queue_size_across_partitions: int = 50000,
        read_compacted: bool = False,
        start_message_id_inclusive: bool = False,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        payload_to_message_id_converter: PayloadToMessageIdConverter | None = None,
        message_payload_processor: MessagePayloadProcessor | None = None,
        max_pending_chunked_message: int = 10,
        auto_ack_oldest_chunked_message_on_queue_full: bool = False,
        expire_time_of_incomplete_chunked_message: float = 60.0,
        auto_update_partitions_interval: float = 60.0,
        start_message_from_rollback_duration: int = 0,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
    ) -> Reader[T]:
        """Return a reader that begins behind `start_message_id`: `async with` opens and closes it. Durations are
        seconds.

        topic: With its partitions, where it has some.
        start_message_id: Reading begins behind it; of partitioned topics the earliest or the latest.
        start_message_from_rollback_duration: In its place: begin with what is not older than so many seconds.
        reader_name: Shown in the stats.
        subscription_role_prefix: Put in front of the name of the reader's subscription: subscriptionAuthMode
            Prefix wants the role there.

        The others are as in `subscribe`, and so are the errors.
        """
        return Reader(self._core, ReaderOptions(**given(locals())))

    def create_raw_reader(
        self,
        topic: str,
        start_message_id: MessageId | None = None,
        *,
        receiver_queue_size: int = 1000,
        max_total_receiver_queue_size_across_partitions: int = 50000,
        read_compacted: bool = False,
        start_message_id_inclusive: bool = False,
        payload_to_message_id_converter: PayloadToMessageIdConverter | None = None,
        auto_update_partitions_interval: float = 60.0,
        start_message_from_rollback_duration: int = 0,
        reader_name: str | None = None,
        subscription_role_prefix: str | None = None,
    ) -> RawReader:
        """Return a reader of entries as they are stored: `async with` opens and closes it. Durations are seconds.

        Arguments and errors are as in `create_reader`.
        """
        return RawReader(self._core, RawReaderOptions(**given(locals())))

    def create_table_view(
        self,
        topic: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        receiver_queue_size: int = 1000,
        max_total_receiver_queue_size_across_partitions: int = 50000,
        read_compacted: bool = True,
        start_message_id_inclusive: bool = False,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        payload_to_message_id_converter: PayloadToMessageIdConverter | None = None,
        message_payload_processor: MessagePayloadProcessor | None = None,
        max_pending_chunked_message: int = 10,
        auto_ack_oldest_chunked_message_on_queue_full: bool = False,
        expire_time_of_incomplete_chunked_message: float = 60.0,
        auto_update_partitions_interval: float = 60.0,
        subscription_name: str | None = None,
    ) -> TableView[T]:
        """Return a topic as a table: `async with` reads it and closes it. Durations are seconds.

        topic: With its partitions, where it has some.
        read_compacted: Of each key the last message that compaction left, and what came since; not of topics
            that are not kept.
        subscription_name: Of the subscription that lasts as long as the view.

        The others are as in `subscribe`, and so are the errors.
        """
        return TableView(self._core, TableViewOptions(**given(locals())))

    def transaction(self, *, timeout: float = 60.0) -> AbstractAsyncContextManager[Transaction]:
        """Return a transaction: `async with` begins it, commits it at the end of its block, and aborts it by an
        exception.

        timeout: Seconds after which the broker aborts it, unless it has ended.

        Raises what `begin_transaction` and `Transaction.commit` raise.
        """
        return transaction(self._core.coordinators, TransactionOptions(timeout=timeout))

    async def begin_transaction(self, *, timeout: float = 60.0) -> Transaction:  # noqa: ASYNC109  # the broker's
        """Begin a transaction that the application ends with its `commit` or `abort`.

        timeout: Seconds after which the broker aborts it, unless it has ended.

        InvalidConfiguration for a timeout that makes no sense; TransactionCoordinatorNotFoundError from brokers without
        transactionCoordinatorEnabled, ConnectError, or what the broker refuses it with.
        """
        await anyio.lowlevel.checkpoint()
        return await begin(self._core.coordinators, TransactionOptions(timeout=timeout))

    async def get_schema(self, topic: str, version: int | bytes | None = None) -> SchemaInfo:
        """The schema of a topic in a version, a number from 0 or `Message.schema_version()`; None: in the latest.

        TopicNotFound if there is no such topic, schema or version, InvalidTopicName if it is no name, ConnectError.
        """
        await anyio.lowlevel.checkpoint()
        name = full_name(topic)
        if isinstance(version, int):
            version = version.to_bytes(VERSION_BYTES, "big", signed=True)
        brokers = self._core.brokers
        return await brokers.patiently(lambda: fetch(brokers, name, version))

    async def get_topic_partitions(self, topic: str, *, metadata_auto_creation_enabled: bool = True) -> list[str]:
        """Full names of the topic's partitions, or of itself if it is not partitioned.

        metadata_auto_creation_enabled: a topic that is not there gets the partitions that new ones have in its
        namespace (PIP-344). InvalidTopicName if it is no name, or what the broker refuses it with.
        """
        await anyio.lowlevel.checkpoint()
        name = full_name(topic)
        brokers = self._core.brokers
        count = await brokers.patiently(lambda: brokers.partitions(name, create=metadata_auto_creation_enabled))
        return partitions_of(name, count)

    async def get_topics(self, namespace: str) -> list[str]:
        """Return the full names of the persistent topics of a namespace (`tenant/namespace`); of a partitioned topic
        those of its partitions.

        ConnectError, or the error with which the broker refuses.
        """
        await anyio.lowlevel.checkpoint()
        brokers = self._core.brokers
        return await brokers.patiently(lambda: brokers.topics(namespace, pb.CommandGetTopicsOfNamespace.PERSISTENT))

    @property
    def admin(self) -> Admin:
        """The REST API at `admin_url`, with the client's credentials: opened by the first call, closed with the client.

        InvalidConfiguration without `admin_url`, InvalidUrl if it cannot be read.
        """
        return self._core.admin

    async def aclose(self) -> None:
        """Close every connection; what was open on them ends with AlreadyClosed."""
        await self._core.aclose()
