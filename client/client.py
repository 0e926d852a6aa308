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
    OrderedNegativeAckMode,
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
from pulsarium.client.scalable.topics import ScalableTopics
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
    """A client of a cluster, made by `connect` and usable inside its `async with` block."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._scalable = ScalableTopics(core)

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
        """Return a producer of a topic. `async with` opens and closes the producer.

        Durations are in seconds. Errors of the broker are raised when the producer opens.

        Args:
            topic: The topic. A producer of a partitioned topic publishes to all partitions.
            schema: The schema that encodes the values. The producer registers it with the broker.
            producer_name: The name of the producer. With None, the broker chooses one.
            compression_type: The compression of message contents, or of whole batches.
            batching_enabled: Put several messages into one entry.
            batching_max_messages: The most messages in one batch.
            batching_max_allowed_size_in_bytes: The most bytes of contents in one batch, before compression.
            batching_max_publish_delay: The longest time that a message of `submit` or `send_nowait` waits for its
                batch.
            batching_type: The rule that puts messages into one batch.
            chunking_enabled: Send a message that is too large for one entry in several entries (PIP-37). Needs
                `batching_enabled=False`.
            chunk_max_message_size: The most bytes of a chunk's content, after compression. With None or 0, a chunk is
                as large as the broker's `maxMessageSize` allows.
            max_pending_messages: The most messages without a receipt in each partition. At the limit, `send` waits and
                `send_nowait` raises an error.
            max_pending_messages_across_partitions: The most messages without a receipt in all partitions together.
                Each partition gets an equal share, at most `max_pending_messages`.
            message_routing_mode: The choice of the partition for a message without a key.
            hashing_scheme: The hash that maps a key to a partition.
            message_router: A function of a message, without an id, and the number of partitions. It returns the index
                of the message's partition. Needs the routing mode CustomPartition.
            auto_update_partitions_interval: The time between two looks for new partitions.
            properties: Properties that the topic's stats show.
            initial_sequence_id: The first message gets the next higher sequence id. With None, it continues behind the
                last sequence id that the broker knows for the producer's name.
            access_mode: The access of other producers to the topic (PIP-68).
            initial_subscription_name: A subscription that the broker creates if it creates the topic for this producer
                (PIP-124).
            interceptors: Interceptors of messages, called in this order.
            encryption_keys: The names of the keys to encrypt for. Without names, nothing is encrypted.
            crypto_key_reader: The reader of the encryption keys.

        Raises:
            InvalidTopicName: `topic` is no valid name.
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            CryptoError: An encryption key cannot be used.
            ConnectError: The producer opens, and no broker can be reached.
            PulsarError: The producer opens, and the broker refuses it.
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
        ordered_negative_ack: OrderedNegativeAckMode = OrderedNegativeAckMode.Disabled,
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
        """Return a consumer of one or more topics. `async with` subscribes and closes the consumer.

        Durations are in seconds. Errors of the broker are raised when the consumer subscribes.

        Args:
            topic: A topic with all its partitions, several topics, or a pattern. A pattern may begin with
                `persistent://tenant/namespace/`.
            subscription_name: The subscription. Its first consumer creates it.
            schema: The schema that decodes `Message.value`. The consumer announces it to the broker.
            receiver_queue_size: The most messages of each topic and partition that wait in the client. With 0, the
                consumer requests each message when the application receives; it can have one topic without partitions
                and without batches then.
            max_total_receiver_queue_size_across_partitions: The most messages that wait in the client for all topics
                and partitions together.
            read_compacted: Receive only the newest message of each key from the compacted part of a topic.
            start_message_id_inclusive: Deliver the message at the target of a seek, or at a reader's start, too.
            crypto_key_reader: The reader of the decryption keys.
            crypto_failure_action: The treatment of a message that cannot be decrypted.
            payload_to_message_id_converter: Computes the id of the last message from its entry (PIP-429). With None,
                only Pulsar's own format is understood.
            message_payload_processor: Splits entries into messages (PIP-96). With None, only Pulsar's own format is
                understood.
            max_pending_chunked_message: The most incomplete chunked messages (PIP-37) of each topic and partition. At
                the limit, the oldest one is discarded. 0 is no limit.
            auto_ack_oldest_chunked_message_on_queue_full: Acknowledge the chunks that `max_pending_chunked_message`
                discards. Otherwise the broker redelivers them.
            expire_time_of_incomplete_chunked_message: The time after which the chunks of an incomplete message are
                acknowledged. 0 is never.
            auto_update_partitions_interval: The time between two looks for new partitions.
            consumer_type: The subscription type, which shares the messages among the consumers.
            initial_position: The position at which a new subscription begins.
            consumer_name: The name in the stats, by which a Failover subscription sorts its consumers. With "", the
                broker chooses one.
            properties: Properties that the topic's stats show.
            priority_level: The priority of the consumer in a Shared or Failover subscription. The lowest number comes
                first.
            negative_ack_redelivery_delay: The time before a negatively acknowledged message is redelivered.
            negative_ack_redelivery_backoff: Computes this delay from the message's redelivery count, in place of
                `negative_ack_redelivery_delay`.
            ordered_negative_ack: Whether negative acknowledgements keep the order of keys on KeyShared subscriptions,
                as the draft PIP-493 proposes. No release of Pulsar can do that.
            unacked_messages_timeout: The time after which an unacknowledged message is redelivered, with all messages
                of its batch. At least 1 second. None is never. Ignored with `ack_timeout_redelivery_backoff`.
            ack_timeout_redelivery_backoff: Computes this time from the message's redelivery count.
            dead_letter_policy: The treatment of messages that are redelivered too often, on Shared and KeyShared
                subscriptions. With None, they are redelivered without end.
            retry_enable: Allow `reconsume_later`, and subscribe to the retry letter topic. By default, a message is
                redelivered at most 16 times. The retry letter topic and the dead letter topic have the name of the
                alphabetically first topic, followed by `-<subscription>-RETRY` and `-<subscription>-DLQ`. The
                `dead_letter_policy` may change these defaults.
            batch_receive_policy: The limits at which `batch_receive` returns.
            start_paused: Request no messages before `Consumer.resume`.
            interceptors: Interceptors of received and acknowledged messages, called in this order.
            acknowledgement_group_time: The longest time that an acknowledgement waits to be sent with others. With 0,
                it is sent at once.
            max_acknowledgement_group_size: The number of waiting acknowledgements at which they are sent.
            batch_index_ack_enabled: Acknowledge each message of a batch on the broker (PIP-54). Otherwise a batch is
                acknowledged when all its messages are.
            ack_receipt_enabled: Wait at each acknowledgement until the broker has confirmed it.
            replicate_subscription_state_enabled: Replicate the subscription's position to the other clusters (PIP-33).
            key_shared_policy: The distribution of hash ranges in a Key_Shared subscription.
            pattern_auto_discovery_period: The time between two looks for topics that match a pattern.
            regex_subscription_mode: The kind of topics that a pattern can match.

        Raises:
            InvalidTopicName: `topic` contains an invalid name.
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            ConnectError: The consumer subscribes, and no broker can be reached.
            PulsarError: The consumer subscribes, and the broker refuses it.
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
        """Return a reader of a topic. `async with` opens and closes the reader.

        Durations are in seconds. The arguments that are not listed, and the errors, are those of `subscribe`.

        Args:
            topic: The topic, with all its partitions.
            start_message_id: The message behind which reading begins. For a partitioned topic, it is
                `MessageId.earliest` or `MessageId.latest`.
            start_message_from_rollback_duration: Begin with the messages of this many last seconds, in place of
                `start_message_id`.
            reader_name: The name in the stats.
            subscription_role_prefix: A prefix of the name of the reader's subscription. The subscriptionAuthMode
                Prefix requires the role as prefix.
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
        """Return a reader of entries as they are stored. `async with` opens and closes the reader.

        Durations are in seconds. The arguments and errors are those of `create_reader`.
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
        """Return a topic as a table of the last value of each key. `async with` reads the topic and closes the view.

        Durations are in seconds. The arguments that are not listed, and the errors, are those of `subscribe`.

        Args:
            topic: The topic, with all its partitions.
            read_compacted: Read the compacted part of the topic, and the messages behind it. Ignored for a
                non-persistent topic.
            subscription_name: The name of the view's subscription, which lasts as long as the view.
        """
        return TableView(self._core, TableViewOptions(**given(locals())))

    def transaction(self, *, timeout: float = 60.0) -> AbstractAsyncContextManager[Transaction]:
        """Return a transaction.

        `async with` begins it, commits it at the end of the block, and aborts it after an exception.

        The block raises the errors of `begin_transaction` and `Transaction.commit`.

        Args:
            timeout: The time in seconds after which the broker aborts the transaction, unless it has ended.
        """
        return transaction(self._core.coordinators, TransactionOptions(timeout=timeout))

    async def begin_transaction(self, *, timeout: float = 60.0) -> Transaction:  # noqa: ASYNC109  # the broker's
        """Begin a transaction, which the application ends with `commit` or `abort`.

        Args:
            timeout: The time in seconds after which the broker aborts the transaction, unless it has ended.

        Returns:
            The open transaction.

        Raises:
            InvalidConfiguration: The timeout is invalid.
            TransactionCoordinatorNotFoundError: The broker has no transactionCoordinatorEnabled.
            ConnectError: No broker can be reached.
            PulsarError: The broker refuses the transaction.
        """
        await anyio.lowlevel.checkpoint()
        return await begin(self._core.coordinators, TransactionOptions(timeout=timeout))

    async def get_schema(self, topic: str, version: int | bytes | None = None) -> SchemaInfo:
        """Return the schema of a topic.

        Args:
            topic: The topic.
            version: The version of the schema: a number from 0, or the bytes of `Message.schema_version()`. None is
                the latest version.

        Raises:
            TopicNotFound: The topic, its schema or the version does not exist.
            InvalidTopicName: `topic` is no valid name.
            ConnectError: No broker can be reached.
        """
        await anyio.lowlevel.checkpoint()
        name = full_name(topic)
        if isinstance(version, int):
            version = version.to_bytes(VERSION_BYTES, "big", signed=True)
        brokers = self._core.brokers
        return await brokers.patiently(lambda: fetch(brokers, name, version))

    async def get_topic_partitions(self, topic: str, *, metadata_auto_creation_enabled: bool = True) -> list[str]:
        """Return the full names of a topic's partitions, or the topic's own full name if it is not partitioned.

        Args:
            topic: The topic.
            metadata_auto_creation_enabled: Create a missing topic with the partitions that its namespace gives to new
                topics (PIP-344).

        Raises:
            InvalidTopicName: `topic` is no valid name.
            PulsarError: The broker refuses the request.
        """
        await anyio.lowlevel.checkpoint()
        name = full_name(topic)
        brokers = self._core.brokers
        count = await brokers.patiently(lambda: brokers.partitions(name, create=metadata_auto_creation_enabled))
        return partitions_of(name, count)

    async def get_topics(self, namespace: str) -> list[str]:
        """Return the full names of the persistent topics in a namespace. Each partition counts as a topic.

        Args:
            namespace: The namespace, as `tenant/namespace`.

        Raises:
            ConnectError: No broker can be reached.
            PulsarError: The broker refuses the request.
        """
        await anyio.lowlevel.checkpoint()
        brokers = self._core.brokers
        return await brokers.patiently(lambda: brokers.topics(namespace, pb.CommandGetTopicsOfNamespace.PERSISTENT))

    @property
    def admin(self) -> Admin:
        """Return the client of the REST API at `admin_url`, with the client's credentials.

        The first call opens the connection. It is closed with the client.

        Raises:
            InvalidConfiguration: The client has no `admin_url`.
            InvalidUrl: The `admin_url` cannot be read.
        """
        return self._core.admin

    @property
    def scalable(self) -> ScalableTopics:
        """Return the scalable topics of the cluster (PIP-460), which need a broker of Pulsar 5."""
        return self._scalable

    async def aclose(self) -> None:
        """Close all connections. Producers, consumers and requests that are open end with `AlreadyClosed`."""
        await self._core.aclose()
