"""Make producers, consumers and transactions of scalable topics."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from types import MappingProxyType
from uuid import uuid4

import anyio.lowlevel
from typing_extensions import Unpack

from pulsarium.client.arguments import takes
from pulsarium.client.consumer.arguments import (
    CheckpointArguments,
    NamespaceArguments,
    QueueArguments,
    StreamArguments,
)
from pulsarium.client.consumer.options import ConsumerOptions, ConsumerType
from pulsarium.client.core import Core
from pulsarium.client.producer.arguments import ScalableProducerArguments
from pulsarium.client.producer.options import ProducerOptions
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


class ScalableTopics:
    """The scalable topics of a cluster (PIP-460), as `Client.scalable`. They need a broker of Pulsar 5.

    A topic is named `topic://tenant/namespace/topic`. A `persistent://` or short name is that of a topic that may still
    migrate: until then, its partitions are the segments. Brokers from 5.0.0 create missing `topic://` topics if their
    policies allow this.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._coordinators = ScalableCoordinators(core.brokers)

    @takes(ScalableProducerArguments, ProducerOptions)
    def create_producer(
        self,
        topic: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[ScalableProducerArguments],
    ) -> ScalableProducer[T]:
        """Return a producer of a scalable topic. `async with` opens and closes the producer.

        The arguments, their units and the errors are those of `Client.create_producer`. With an access mode other than
        Shared, the producer opens all segments at once. Otherwise it opens a segment with the first message.

        Args:
            topic: The topic.
            schema: The schema that encodes the values.
            producer_name: The name of the producer. With None, the client chooses one.
            batching_enabled: Put several messages of one entry bucket into one entry.
            max_pending_messages: The most messages without a receipt, in all segments together.
            initial_sequence_id: The first message of each segment gets the next higher sequence id.
            **options: Options, as in `ScalableProducerArguments`.

        Raises:
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            CryptoError: An encryption key cannot be used.
            TopicNotFound: The producer opens, and the topic does not exist.
            OperationNotSupported: The producer opens, and the broker has no scalable topics.
            PulsarError: The producer opens, and the broker refuses it.
        """
        return ScalableProducer(self._core, ProducerOptions(topic, schema=schema, **options))

    @takes(QueueArguments, ConsumerOptions)
    def subscribe_queue(
        self,
        topic: str,
        subscription_name: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[QueueArguments],
    ) -> QueueConsumer[T]:
        """Return a consumer that shares the messages with others, without an order. `async with` opens and closes it.

        The arguments, their units and the errors are those of `Client.subscribe`.

        Args:
            topic: The topic.
            subscription_name: The subscription. Its first consumer creates it.
            schema: The schema that decodes `Message.value`.
            receiver_queue_size: The most messages of each segment that wait in the client.
            consumer_name: The name in the stats. With "", the broker chooses one.
            dead_letter_policy: The topic of messages that are delivered too often. With dead_letter_topic=None, this is
                the scalable topic `<topic>-DLQ`, as in Java. There is no retry letter topic.
            **options: Options, as in `QueueArguments`.

        Raises:
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            TopicNotFound: The consumer opens, and the topic does not exist.
            PulsarError: The consumer opens, and the broker refuses it.
        """
        asked = ConsumerOptions(topic, subscription_name, schema=schema, consumer_type=ConsumerType.Shared, **options)
        letters = asked.dead_letter_policy
        policy = None if letters is None else with_dead_letters(letters, topic)
        return QueueConsumer(self._core, _with_queue(replace(asked, dead_letter_policy=policy)))

    @takes(StreamArguments, ConsumerOptions)
    def subscribe_stream(
        self,
        topic: str,
        subscription_name: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[StreamArguments],
    ) -> StreamConsumer[T]:
        """Return a consumer that receives the messages of each key in order. `async with` opens and closes it.

        The arguments, their units and the errors are those of `Client.subscribe`, and of `subscribe_queue`.

        Args:
            topic: The topic.
            subscription_name: The subscription. Its first consumer creates it.
            schema: The schema that decodes `Message.value`.
            receiver_queue_size: The most messages of each segment that wait in the client.
            consumer_name: The name by which the controller knows the consumer again after a lost connection. With "",
                the client chooses one.
            **options: Options, as in `StreamArguments`.
        """
        asked = ConsumerOptions(topic, subscription_name, schema=schema, **options)
        return StreamConsumer(self._core, _with_name(asked))

    @takes(NamespaceArguments, ConsumerOptions)
    def subscribe_namespace(
        self,
        namespace: str,
        subscription_name: str,
        *,
        property_filters: Mapping[str, str] = _NOTHING,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[NamespaceArguments],
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
            **options: Options, as in `NamespaceArguments`.
        """
        asked = ConsumerOptions(namespace, subscription_name, schema=schema, **options)
        return NamespaceStreamConsumer(self._core, namespace, _with_name(asked), property_filters)

    @takes(CheckpointArguments, ConsumerOptions)
    def create_checkpoint_consumer(
        self,
        topic: str,
        start: Checkpoint = Checkpoint.latest,
        *,
        group: str | None = None,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[CheckpointArguments],
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
            **options: Options, as in `CheckpointArguments`.
        """
        asked = ConsumerOptions(topic, "checkpoint", schema=schema, **options)
        return CheckpointConsumer(self._core, _with_name(asked), CheckpointOptions(start, group))

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


def _with_queue(options: ConsumerOptions[T]) -> ConsumerOptions[T]:
    """Return the options with a queue of at least one message."""
    return replace(options, receiver_queue_size=max(1, options.receiver_queue_size))


def _with_name(options: ConsumerOptions[T]) -> ConsumerOptions[T]:
    """Return the options with a queue and a consumer name, which the client chooses unless there is one."""
    return replace(_with_queue(options), consumer_name=options.consumer_name or f"pulsarium-{uuid4().hex[:10]}")
