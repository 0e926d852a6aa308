"""The client: what producers, consumers and readers of one application share."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.arguments import arguments_of, takes
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Backoff, patiently
from pulsarium.client.connection.lookup import BinaryLookup, Lookup, connection_to
from pulsarium.client.connection.pool import Pool
from pulsarium.client.connection.service_url import Address, BrokerUrls, is_http, parse
from pulsarium.client.connection.settings import ClientOptions, Settings
from pulsarium.client.connection.waiting import Waiting
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions, TableViewOptions
from pulsarium.client.consumer.raw_reader import RawReader, RawReaderOptions
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.errors import AlreadyClosed, InvalidConfiguration, Timeout
from pulsarium.client.memory import MemoryLimit
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import SchemaInfo, T
from pulsarium.client.schema.versions import VERSION_BYTES, Versions, fetch
from pulsarium.client.table_view import TableView
from pulsarium.client.topics import bounded, full_name, partitions_of
from pulsarium.client.transaction.coordinator import Coordinators
from pulsarium.client.transaction.options import TransactionOptions
from pulsarium.client.transaction.transaction import Transaction, begin, transaction
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.client.admin.admin import Admin


class Client:
    """Made by `connect`, and usable until its block is left."""

    def __init__(self, service_url: str, tasks: TaskGroup, settings: Settings) -> None:
        """InvalidUrl if it cannot be read, InvalidConfiguration for files that cannot."""
        self.settings = settings
        self.operation_timeout: float = settings.operation_timeout
        self.task_group = tasks
        self.memory: MemoryLimit = MemoryLimit(settings.memory_limit)
        """What messages without a receipt take."""
        self.schemas: Versions = Versions(self)
        """With which schemas messages were written."""
        self.coordinators: Coordinators = Coordinators(self)
        """Of transactions."""
        self._pool = Pool(tasks, settings)
        self.waiting: Waiting = self._pool.waiting
        """Logs what this client waits for."""
        self._lookup = self._lookup_at(service_url)
        self._producer_ids = itertools.count()
        self._consumer_ids = itertools.count()
        self._watcher_ids = itertools.count()
        self._closed = False
        self._admin: Admin | None = None

    # ---- for producers, consumers and readers

    def next_producer_id(self) -> int:
        return next(self._producer_ids)

    def next_consumer_id(self) -> int:
        return next(self._consumer_ids)

    def next_watcher_id(self) -> int:
        return next(self._watcher_ids)

    def new_backoff(self) -> Backoff:
        """The waits of one link."""
        return Backoff(self.settings.starting_backoff_interval, self.settings.max_backoff_interval)

    async def connect_to(self, topic: str, cluster: BrokerUrls | None = None) -> Connection:
        """A connection to the broker that serves the topic (a full name), looked up now; `cluster`: at this one.

        Timeout if brokers take longer than `operation_timeout` to say which, however often they name another.
        """
        lookup = self._open_lookup()
        if cluster is not None:
            lookup = self._binary(cluster.addresses(tls=lookup.tls))
        with anyio.move_on_after(self.operation_timeout):
            return await lookup.connection_for(topic)
        raise Timeout(f"{topic}: no broker of it was found in {self.operation_timeout:g} s")

    async def connect_to_broker(self, broker: BrokerUrls, proxy: Address | None) -> Connection:
        """A connection to this broker, through the proxy if there is one."""
        return await connection_to(self._pool, broker, tls=self._open_lookup().tls, proxy=proxy)

    async def connect_to_any(self) -> Connection:
        """A connection to some broker; OperationNotSupported where the service URL is for lookups only."""
        return await self._open_lookup().connection()

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        """How many partitions a topic (a full name) has, 0: none; `create`: as its namespace has it, if it is new.

        OperationNotSupported for more than can be open.
        """
        return bounded(await self._open_lookup().partitions(topic, create=create), topic)

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        """The topics of a namespace (`tenant/namespace`), of partitioned ones the partitions."""
        return await self._open_lookup().topics(namespace, mode)

    def _open_lookup(self) -> Lookup:
        if self._closed:
            raise AlreadyClosed("the client was closed")
        return self._lookup

    def _lookup_at(self, url: str) -> Lookup:
        if is_http(url):
            from pulsarium.client.connection.http_lookup import HttpLookup  # what it stands on need not be installed

            return HttpLookup(self._pool, url, self.settings)
        service = parse(url)
        if service[0].tls:
            self.settings.tls.context()  # what is wrong with it shall show now
        return self._binary(service)

    def _binary(self, service: list[Address]) -> BinaryLookup:
        settings = self.settings
        return BinaryLookup(
            self._pool, service, listener_name=settings.listener_name, max_redirects=settings.max_lookup_redirects
        )

    # ---- for applications

    @arguments_of(ProducerOptions)
    def create_producer(self, options: ProducerOptions[T]) -> Producer[T]:
        """A producer on a topic: `async with` opens and closes it. What the options mean, ProducerOptions says.

        InvalidTopicName, InvalidConfiguration or CryptoError for arguments that make no sense. Opening raises
        ConnectError, or what the broker refuses it with.
        """
        return Producer(self, options)

    @arguments_of(ConsumerOptions)
    def subscribe(self, options: ConsumerOptions[T]) -> Consumer[T]:
        """A consumer on topics: `async with` subscribes and closes it. What the options mean, ConsumerOptions says.

        InvalidTopicName or InvalidConfiguration for arguments that make no sense. Opening raises ConnectError, or what
        the broker refuses it with.
        """
        return Consumer(self, options)

    @arguments_of(ReaderOptions)
    def create_reader(self, options: ReaderOptions[T]) -> Reader[T]:
        """A reader that begins behind `start_message_id`: `async with` opens and closes it. What the options mean,
        ReaderOptions says. Raises as `subscribe`."""
        return Reader(self, options)

    @arguments_of(RawReaderOptions)
    def create_raw_reader(self, options: RawReaderOptions) -> RawReader:
        """A reader of entries as they are stored: `async with` opens and closes it. Options as `create_reader` takes
        them; raises as `subscribe`."""
        return RawReader(self, options)

    @arguments_of(TableViewOptions)
    def create_table_view(self, options: TableViewOptions[T]) -> TableView[T]:
        """A topic as a table: `async with` reads it and closes it. What the options mean, TableViewOptions says.
        Raises as `subscribe`."""
        return TableView(self, options)

    @arguments_of(TransactionOptions)
    def transaction(self, options: TransactionOptions) -> AbstractAsyncContextManager[Transaction]:
        """A transaction: `async with` begins it, commits it at the end of its block, and aborts it by an exception.

        What `begin_transaction` and `Transaction.commit` raise.
        """
        return transaction(self, options)

    @arguments_of(TransactionOptions)
    async def begin_transaction(self, options: TransactionOptions) -> Transaction:
        """A transaction that the application ends with its `commit` or `abort`.

        InvalidConfiguration for a timeout that makes no sense; TransactionCoordinatorNotFoundError from brokers without
        transactionCoordinatorEnabled, ConnectError, or what the broker refuses it with.
        """
        return await begin(self, options)

    async def get_schema(self, topic: str, version: int | bytes | None = None) -> SchemaInfo:
        """The schema of a topic in a version, a number from 0 or `Message.schema_version()`; None: in the latest.

        TopicNotFound if there is no such topic, schema or version, InvalidTopicName if it is no name, ConnectError.
        """
        name = full_name(topic)
        if isinstance(version, int):
            version = version.to_bytes(VERSION_BYTES, "big", signed=True)
        return await patiently(self, lambda: fetch(self, name, version))

    async def get_topic_partitions(self, topic: str, *, metadata_auto_creation_enabled: bool = True) -> list[str]:
        """Full names of the topic's partitions, or of itself if it is not partitioned.

        metadata_auto_creation_enabled: a topic that is not there gets the partitions that new ones have in its
        namespace (PIP-344). InvalidTopicName if it is no name, or what the broker refuses it with.
        """
        name = full_name(topic)
        count = await patiently(self, lambda: self.partitions(name, create=metadata_auto_creation_enabled))
        return partitions_of(name, count)

    @property
    def admin(self) -> Admin:
        """The REST API at `admin_url`, with the client's credentials: opened by the first call, closed with the client.

        InvalidConfiguration without `admin_url`, InvalidUrl if it cannot be read.
        """
        self._open_lookup()
        if self._admin is None:
            if self.settings.admin_url is None:
                raise InvalidConfiguration("this needs connect(admin_url=...)")
            from pulsarium.client.admin.admin import admin_at  # takes its time

            self._admin = admin_at(self.settings.admin_url, self.settings)
        return self._admin

    async def aclose(self) -> None:
        """Close every connection; what was open on them ends with AlreadyClosed."""
        self._closed = True
        await self._pool.aclose()
        await self._lookup.aclose()
        if self._admin is not None:
            await self._admin.aclose()


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
            client = Client(service_url, tasks, settings)
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
