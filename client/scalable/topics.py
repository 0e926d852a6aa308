"""Make producers, consumers and transactions of scalable topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from uuid import uuid4

import anyio.lowlevel

from pulsarium.client.consumer.options import ConsumerOptions, ConsumerType, InitialPosition
from pulsarium.client.consumer.policies import ConsumerBatchReceivePolicy, ConsumerDeadLetterPolicy, RedeliveryBackoff
from pulsarium.client.core import Core
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.producer.options import CompressionType, ProducerAccessMode, ProducerOptions
from pulsarium.client.scalable.checkpoint import Checkpoint
from pulsarium.client.scalable.checkpoint_consumer import CheckpointConsumer, CheckpointOptions
from pulsarium.client.scalable.coordinators import ScalableCoordinators
from pulsarium.client.scalable.letters import with_dead_letters
from pulsarium.client.scalable.namespace_consumer import NamespaceStreamConsumer
from pulsarium.client.scalable.producer import ScalableProducer
from pulsarium.client.scalable.queue_consumer import QueueConsumer
from pulsarium.client.scalable.stream_consumer import StreamConsumer
from pulsarium.client.schema.schema import BYTES, Schema, T
from pulsarium.client.transaction.transaction import Transaction, TransactionOptions, begin, transaction

_NOTHING: Mapping[str, str] = MappingProxyType({})
_BATCH = ConsumerBatchReceivePolicy()


class ScalableTopics:
    """The scalable topics of a cluster (PIP-460), as `Client.scalable`. They need a broker of Pulsar 5.

    A topic is named `topic://tenant/namespace/topic`. A `persistent://` or short name is that of a topic that may still
    migrate: until then, its partitions are the segments. Brokers from 5.0.0 create missing `topic://` topics if their
    policies allow this.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._coordinators = ScalableCoordinators(core.brokers)

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
        chunking_enabled: bool = False,
        max_pending_messages: int = 1000,
        properties: Mapping[str, str] = _NOTHING,
        initial_sequence_id: int | None = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.Shared,
        encryption_keys: Collection[str] = (),
        crypto_key_reader: KeyReader | None = None,
    ) -> ScalableProducer[T]:
        """Return a producer of a scalable topic. `async with` opens and closes the producer.

        The arguments, their units and the errors are those of `Client.create_producer`. With an access mode other than
        Shared, the producer opens all segments at once. Otherwise it opens a segment with the first message.

        Args:
            topic: The topic.
            schema: The schema that encodes the values.
            producer_name: The name of the producer. With None, the client chooses one.
            compression_type: The compression of message contents, or of whole batches.
            batching_enabled: Put several messages of one entry bucket into one entry.
            batching_max_messages: The most messages in one batch.
            batching_max_allowed_size_in_bytes: The most bytes of contents in one batch, before compression.
            batching_max_publish_delay: The longest time in seconds that a message waits for its batch.
            chunking_enabled: Send a message that is too large for one entry in several entries (PIP-37).
            max_pending_messages: The most messages without a receipt, in all segments together.
            properties: Properties that the segments' stats show.
            initial_sequence_id: The first message of each segment gets the next higher sequence id.
            access_mode: The access of other producers to the topic (PIP-68).
            encryption_keys: The names of the keys to encrypt for.
            crypto_key_reader: The reader of the encryption keys.

        Raises:
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            CryptoError: An encryption key cannot be used.
            TopicNotFound: The producer opens, and the topic does not exist.
            OperationNotSupported: The producer opens, and the broker has no scalable topics.
            PulsarError: The producer opens, and the broker refuses it.
        """
        options = ProducerOptions(
            topic,
            schema=schema,
            producer_name=producer_name,
            compression_type=compression_type,
            batching_enabled=batching_enabled,
            batching_max_messages=batching_max_messages,
            batching_max_allowed_size_in_bytes=batching_max_allowed_size_in_bytes,
            batching_max_publish_delay=batching_max_publish_delay,
            chunking_enabled=chunking_enabled,
            max_pending_messages=max_pending_messages,
            properties=properties,
            initial_sequence_id=initial_sequence_id,
            access_mode=access_mode,
            encryption_keys=encryption_keys,
            crypto_key_reader=crypto_key_reader,
        )
        return ScalableProducer(self._core, options)

    def subscribe_queue(
        self,
        topic: str,
        subscription_name: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        receiver_queue_size: int = 1000,
        initial_position: InitialPosition = InitialPosition.Latest,
        consumer_name: str = "",
        properties: Mapping[str, str] = _NOTHING,
        priority_level: int = 0,
        negative_ack_redelivery_delay: float = 60.0,
        negative_ack_redelivery_backoff: RedeliveryBackoff | None = None,
        dead_letter_policy: ConsumerDeadLetterPolicy | None = None,
        acknowledgement_group_time: float = 0.01,
        ack_receipt_enabled: bool = False,
        batch_receive_policy: ConsumerBatchReceivePolicy = _BATCH,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> QueueConsumer[T]:
        """Return a consumer that shares the messages with others, without an order. `async with` opens and closes it.

        The arguments, their units and the errors are those of `Client.subscribe`.

        Args:
            topic: The topic.
            subscription_name: The subscription. Its first consumer creates it.
            schema: The schema that decodes `Message.value`.
            receiver_queue_size: The most messages of each segment that wait in the client.
            initial_position: The position at which a new subscription begins.
            consumer_name: The name in the stats. With "", the broker chooses one.
            properties: Properties that the segments' stats show.
            priority_level: The priority of the consumer. The lowest number comes first.
            negative_ack_redelivery_delay: The time in seconds before a negatively acknowledged message is redelivered.
            negative_ack_redelivery_backoff: Computes this delay from the message's redelivery count.
            dead_letter_policy: The topic of messages that are delivered too often. With dead_letter_topic=None, this is
                the scalable topic `<topic>-DLQ`, as in Java. There is no retry letter topic.
            acknowledgement_group_time: The longest time in seconds that an acknowledgement waits for others.
            ack_receipt_enabled: Wait at each acknowledgement until the broker has confirmed it.
            batch_receive_policy: The limits at which `batch_receive` returns.
            crypto_key_reader: The reader of the decryption keys.
            crypto_failure_action: The treatment of a message that cannot be decrypted.

        Raises:
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            TopicNotFound: The consumer opens, and the topic does not exist.
            PulsarError: The consumer opens, and the broker refuses it.
        """
        options = ConsumerOptions(
            topic,
            subscription_name,
            schema=schema,
            consumer_type=ConsumerType.Shared,
            receiver_queue_size=max(1, receiver_queue_size),
            initial_position=initial_position,
            consumer_name=consumer_name,
            properties=properties,
            priority_level=priority_level,
            negative_ack_redelivery_delay=negative_ack_redelivery_delay,
            negative_ack_redelivery_backoff=negative_ack_redelivery_backoff,
            dead_letter_policy=None if dead_letter_policy is None else with_dead_letters(dead_letter_policy, topic),
            acknowledgement_group_time=acknowledgement_group_time,
            ack_receipt_enabled=ack_receipt_enabled,
            batch_receive_policy=batch_receive_policy,
            crypto_key_reader=crypto_key_reader,
            crypto_failure_action=crypto_failure_action,
        )
        return QueueConsumer(self._core, options)

    def subscribe_stream(
        self,
        topic: str,
        subscription_name: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        receiver_queue_size: int = 1000,
        initial_position: InitialPosition = InitialPosition.Latest,
        consumer_name: str = "",
        properties: Mapping[str, str] = _NOTHING,
        read_compacted: bool = False,
        ack_receipt_enabled: bool = False,
        batch_receive_policy: ConsumerBatchReceivePolicy = _BATCH,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> StreamConsumer[T]:
        """Return a consumer that receives the messages of each key in order. `async with` opens and closes it.

        The arguments, their units and the errors are those of `Client.subscribe`, and of `subscribe_queue`.

        Args:
            topic: The topic.
            subscription_name: The subscription. Its first consumer creates it.
            schema: The schema that decodes `Message.value`.
            receiver_queue_size: The most messages of each segment that wait in the client.
            initial_position: The position at which a new subscription begins.
            consumer_name: The name by which the controller knows the consumer again after a lost connection. With "",
                the client chooses one.
            properties: Properties that the segments' stats show.
            read_compacted: Receive only the newest message of each key from the compacted part of a segment.
            ack_receipt_enabled: Wait at each acknowledgement until the broker has confirmed it.
            batch_receive_policy: The limits at which `batch_receive` returns.
            crypto_key_reader: The reader of the decryption keys.
            crypto_failure_action: The treatment of a message that cannot be decrypted.
        """
        options = ConsumerOptions(
            topic,
            subscription_name,
            schema=schema,
            receiver_queue_size=max(1, receiver_queue_size),
            initial_position=initial_position,
            consumer_name=consumer_name or f"pulsarium-{uuid4().hex[:10]}",
            properties=properties,
            read_compacted=read_compacted,
            ack_receipt_enabled=ack_receipt_enabled,
            batch_receive_policy=batch_receive_policy,
            crypto_key_reader=crypto_key_reader,
            crypto_failure_action=crypto_failure_action,
        )
        return StreamConsumer(self._core, options)

    def subscribe_namespace(
        self,
        namespace: str,
        subscription_name: str,
        *,
        property_filters: Mapping[str, str] = _NOTHING,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        receiver_queue_size: int = 1000,
        initial_position: InitialPosition = InitialPosition.Latest,
        consumer_name: str = "",
        properties: Mapping[str, str] = _NOTHING,
        read_compacted: bool = False,
        ack_receipt_enabled: bool = False,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> NamespaceStreamConsumer[T]:
        """Return a stream consumer of all scalable topics of a namespace. `async with` opens and closes it.

        The consumer follows topics that are created and deleted. The arguments that are not listed, and the errors, are
        those of `subscribe_stream`.

        Args:
            namespace: The namespace, `tenant/namespace`.
            subscription_name: The subscription of each topic.
            property_filters: The properties that a topic must have.
            schema: The schema that decodes `Message.value`.
            receiver_queue_size: The most messages of each segment that wait in the client.
            initial_position: The position at which a new subscription begins, on the topics that exist when the
                consumer opens. On later topics, the subscription begins at the earliest message.
            consumer_name: The name of the consumer in all topics. With "", the client chooses one.
            properties: Properties that the segments' stats show.
            read_compacted: Receive only the newest message of each key from the compacted part of a segment.
            ack_receipt_enabled: Wait at each acknowledgement until the broker has confirmed it.
            crypto_key_reader: The reader of the decryption keys.
            crypto_failure_action: The treatment of a message that cannot be decrypted.
        """
        options = ConsumerOptions(
            namespace,
            subscription_name,
            schema=schema,
            receiver_queue_size=max(1, receiver_queue_size),
            initial_position=initial_position,
            consumer_name=consumer_name or f"pulsarium-{uuid4().hex[:10]}",
            properties=properties,
            read_compacted=read_compacted,
            ack_receipt_enabled=ack_receipt_enabled,
            crypto_key_reader=crypto_key_reader,
            crypto_failure_action=crypto_failure_action,
        )
        return NamespaceStreamConsumer(self._core, namespace, options, property_filters)

    def create_checkpoint_consumer(
        self,
        topic: str,
        start: Checkpoint = Checkpoint.latest,
        *,
        group: str | None = None,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        receiver_queue_size: int = 1000,
        consumer_name: str = "",
        properties: Mapping[str, str] = _NOTHING,
        read_compacted: bool = False,
        batch_receive_policy: ConsumerBatchReceivePolicy = _BATCH,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
    ) -> CheckpointConsumer[T]:
        """Return a consumer whose position the application keeps. `async with` opens and closes it.

        The arguments that are not listed, and the errors, are those of `subscribe_stream`.

        Args:
            topic: The topic. The consumer does not create it.
            start: The checkpoint to begin at: one of `CheckpointConsumer.checkpoint`, `Checkpoint.earliest` or
                `Checkpoint.latest`.
            group: A name of consumers that divide the segments among them. With None, the consumer reads all segments.
            schema: The schema that decodes `Message.value`.
            receiver_queue_size: The most messages of each segment that wait in the client.
            consumer_name: The name in its group. With "", the client chooses one.
            properties: Properties that the segments' stats show.
            read_compacted: Receive only the newest message of each key from the compacted part of a segment.
            batch_receive_policy: The limits at which `batch_receive` returns.
            crypto_key_reader: The reader of the decryption keys.
            crypto_failure_action: The treatment of a message that cannot be decrypted.
        """
        options = ConsumerOptions(
            topic,
            "checkpoint",
            schema=schema,
            receiver_queue_size=max(1, receiver_queue_size),
            consumer_name=consumer_name or f"pulsarium-{uuid4().hex[:10]}",
            properties=properties,
            read_compacted=read_compacted,
            batch_receive_policy=batch_receive_policy,
            crypto_key_reader=crypto_key_reader,
            crypto_failure_action=crypto_failure_action,
        )
        return CheckpointConsumer(self._core, options, CheckpointOptions(start, group))

    def transaction(self, *, timeout: float = 60.0) -> AbstractAsyncContextManager[Transaction]:
        """Return a transaction of scalable topics (PIP-473). `async with` begins and ends it, as `Client.transaction`.

        Args:
            timeout: The time in seconds after which the broker aborts the transaction, unless it has ended.
        """
        return transaction(self._coordinators, TransactionOptions(timeout=timeout))

    async def begin_transaction(self, *, timeout: float = 60.0) -> Transaction:  # noqa: ASYNC109  # the broker's
        """Begin a transaction of scalable topics, which the application ends with `commit` or `abort`.

        Args:
            timeout: The time in seconds after which the broker aborts the transaction, unless it has ended.

        Returns:
            The open transaction.

        Raises:
            InvalidConfiguration: The timeout is invalid.
            OperationNotSupported: The broker has no transactions of scalable topics.
            PulsarError: The broker refuses the transaction.
        """
        await anyio.lowlevel.checkpoint()
        return await begin(self._coordinators, TransactionOptions(timeout=timeout))
