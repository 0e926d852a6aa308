"""Make producers, consumers, readers, table views and transactions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import anyio.lowlevel
from typing_extensions import Unpack

from pulsarium.client.arguments import takes
from pulsarium.client.consumer.arguments import (
    ConsumerArguments,
    RawReaderArguments,
    ReaderArguments,
    TableViewArguments,
)
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions, TableViewOptions
from pulsarium.client.consumer.raw_reader import RawReader, RawReaderOptions
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.core import Core
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.arguments import ProducerArguments
from pulsarium.client.producer.options import ProducerOptions
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


class Client:
    """A client of a cluster, made by `connect` and usable inside its `async with` block."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._scalable = ScalableTopics(core)

    @takes(ProducerArguments, ProducerOptions)
    def create_producer(
        self,
        topic: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[ProducerArguments[T]],
    ) -> Producer[T]:
        """Return a producer of a topic. `async with` opens and closes the producer.

        Durations are in seconds. Errors of the broker are raised when the producer opens.

        Args:
            topic: The topic. A producer of a partitioned topic publishes to all partitions.
            schema: The schema that encodes the values. The producer registers it with the broker.
            **options: Options, as in `ProducerArguments`.

        Raises:
            InvalidTopicName: `topic` is no valid name.
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            CryptoError: An encryption key cannot be used.
            ConnectError: The producer opens, and no broker can be reached.
            PulsarError: The producer opens, and the broker refuses it.
        """
        return Producer(self._core, ProducerOptions(topic, schema=schema, **options))

    @takes(ConsumerArguments, ConsumerOptions)
    def subscribe(
        self,
        topic: str | Sequence[str] | re.Pattern[str],
        subscription_name: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[ConsumerArguments],
    ) -> Consumer[T]:
        """Return a consumer of one or more topics. `async with` subscribes and closes the consumer.

        Durations are in seconds. Errors of the broker are raised when the consumer subscribes.

        Args:
            topic: A topic with all its partitions, several topics, or a pattern. A pattern may begin with
                `persistent://tenant/namespace/`.
            subscription_name: The subscription. Its first consumer creates it.
            schema: The schema that decodes `Message.value`. The consumer announces it to the broker.
            **options: Options, as in `ConsumerArguments`.

        Raises:
            InvalidTopicName: `topic` contains an invalid name.
            InvalidConfiguration: An option is invalid, or two options exclude each other.
            ConnectError: The consumer subscribes, and no broker can be reached.
            PulsarError: The consumer subscribes, and the broker refuses it.
        """
        return Consumer(self._core, ConsumerOptions(topic, subscription_name, schema=schema, **options))

    @takes(ReaderArguments, ReaderOptions)
    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId | None = None,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[ReaderArguments],
    ) -> Reader[T]:
        """Return a reader of a topic. `async with` opens and closes the reader.

        Durations are in seconds. The errors are those of `subscribe`.

        Args:
            topic: The topic, with all its partitions.
            start_message_id: The message behind which reading begins. For a partitioned topic, it is
                `MessageId.earliest` or `MessageId.latest`.
            schema: The schema that decodes `Message.value`. The reader announces it to the broker.
            receiver_queue_size: The most messages of each partition that wait in the client, at least 1.
            **options: Options, as in `ReaderArguments`.
        """
        return Reader(self._core, ReaderOptions(topic, start_message_id, schema=schema, **options))

    @takes(RawReaderArguments, RawReaderOptions)
    def create_raw_reader(
        self, topic: str, start_message_id: MessageId | None = None, **options: Unpack[RawReaderArguments]
    ) -> RawReader:
        """Return a reader of entries as they are stored. `async with` opens and closes the reader.

        Durations are in seconds. The errors are those of `create_reader`.

        Args:
            topic: The topic, with all its partitions.
            start_message_id: The message behind whose entry reading begins, as in `create_reader`.
            **options: Options, as in `RawReaderArguments`.
        """
        return RawReader(self._core, RawReaderOptions(topic, start_message_id, **options))

    @takes(TableViewArguments, TableViewOptions)
    def create_table_view(
        self,
        topic: str,
        *,
        schema: Schema[T] = BYTES,  # type: ignore[assignment]  # mypy: T may be another
        **options: Unpack[TableViewArguments],
    ) -> TableView[T]:
        """Return a topic as a table of the last value of each key. `async with` reads the topic and closes the view.

        Durations are in seconds. The errors are those of `subscribe`.

        Args:
            topic: The topic, with all its partitions.
            schema: The schema that decodes `Message.value`. The view announces it to the broker.
            read_compacted: Read the compacted part of the topic, and the messages behind it. Ignored for a
                non-persistent topic.
            **options: Options, as in `TableViewArguments`.
        """
        return TableView(self._core, TableViewOptions(topic, schema=schema, **options))

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
