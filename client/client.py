"""Connect to the brokers of a cluster, and make producers, consumers, readers and transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from pulsarium.client.arguments import arguments_of, takes
from pulsarium.client.connection.brokers import Brokers
from pulsarium.client.connection.settings import ClientOptions, Settings
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions, TableViewOptions
from pulsarium.client.consumer.raw_reader import RawReader, RawReaderOptions
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.core import Core
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import SchemaInfo, T
from pulsarium.client.schema.versions import VERSION_BYTES, fetch
from pulsarium.client.table_view import TableView
from pulsarium.client.topics import full_name, partitions_of
from pulsarium.client.transaction.options import TransactionOptions
from pulsarium.client.transaction.transaction import Transaction, begin, transaction
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client.admin.admin import Admin


class Client:
    """Makes producers, consumers, readers and transactions; made by `connect`, and usable until its block is left."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @arguments_of(ProducerOptions)
    def create_producer(self, options: ProducerOptions[T]) -> Producer[T]:
        """A producer on a topic: `async with` opens and closes it. What the options mean, ProducerOptions says.

        InvalidTopicName, InvalidConfiguration or CryptoError for arguments that make no sense. Opening raises
        ConnectError, or what the broker refuses it with.
        """
        return Producer(self._core, options)

    @arguments_of(ConsumerOptions)
    def subscribe(self, options: ConsumerOptions[T]) -> Consumer[T]:
        """A consumer on topics: `async with` subscribes and closes it. What the options mean, ConsumerOptions says.

        InvalidTopicName or InvalidConfiguration for arguments that make no sense. Opening raises ConnectError, or what
        the broker refuses it with.
        """
        return Consumer(self._core, options)

    @arguments_of(ReaderOptions)
    def create_reader(self, options: ReaderOptions[T]) -> Reader[T]:
        """A reader that begins behind `start_message_id`: `async with` opens and closes it. What the options mean,
        ReaderOptions says. Raises as `subscribe`."""
        return Reader(self._core, options)

    @arguments_of(RawReaderOptions)
    def create_raw_reader(self, options: RawReaderOptions) -> RawReader:
        """A reader of entries as they are stored: `async with` opens and closes it. Options as `create_reader` takes
        them; raises as `subscribe`."""
        return RawReader(self._core, options)

    @arguments_of(TableViewOptions)
    def create_table_view(self, options: TableViewOptions[T]) -> TableView[T]:
        """A topic as a table: `async with` reads it and closes it. What the options mean, TableViewOptions says.
        Raises as `subscribe`."""
        return TableView(self._core, options)

    @arguments_of(TransactionOptions)
    def transaction(self, options: TransactionOptions) -> AbstractAsyncContextManager[Transaction]:
        """A transaction: `async with` begins it, commits it at the end of its block, and aborts it by an exception.

        What `begin_transaction` and `Transaction.commit` raise.
        """
        return transaction(self._core.coordinators, options)

    @arguments_of(TransactionOptions)
    async def begin_transaction(self, options: TransactionOptions) -> Transaction:
        """A transaction that the application ends with its `commit` or `abort`.

        InvalidConfiguration for a timeout that makes no sense; TransactionCoordinatorNotFoundError from brokers without
        transactionCoordinatorEnabled, ConnectError, or what the broker refuses it with.
        """
        return await begin(self._core.coordinators, options)

    async def get_schema(self, topic: str, version: int | bytes | None = None) -> SchemaInfo:
        """The schema of a topic in a version, a number from 0 or `Message.schema_version()`; None: in the latest.

        TopicNotFound if there is no such topic, schema or version, InvalidTopicName if it is no name, ConnectError.
        """
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
        name = full_name(topic)
        brokers = self._core.brokers
        count = await brokers.patiently(lambda: brokers.partitions(name, create=metadata_auto_creation_enabled))
        return partitions_of(name, count)

    async def get_topics(self, namespace: str) -> list[str]:
        """Return the full names of the persistent topics of a namespace (`tenant/namespace`); of a partitioned topic
        those of its partitions.

        ConnectError, or the error with which the broker refuses.
        """
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


@takes(ClientOptions)
def connect(options: ClientOptions) -> AbstractAsyncContextManager[Client]:
    """A client of the brokers at a service URL, under trio or asyncio, until the block is left.

    What the options mean, ClientOptions says. Connections are made when something is opened. InvalidUrl for a URL that
    cannot be read, InvalidConfiguration for options that make no sense, and files that cannot be read.
    """
    return open_client(options.service_url, options)


@asynccontextmanager
async def open_client(service_url: str, settings: Settings) -> AsyncIterator[Client]:
    """`connect`, with its options made."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            client = Client(Core(Brokers(service_url, tasks, settings)))
            try:
                yield client
            finally:
                with anyio.CancelScope(shield=True):
                    await client.aclose()
        except Exception as error:  # the block's own, not to be wrapped into the task group's
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # it holds this frame
