"""The client: what producers, consumers and readers of one application share."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from pulsarium.client.arguments import arguments_of
from pulsarium.client.connection.authentication import Authentication
from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.link import Backoff
from pulsarium.client.connection.lookup import Lookup
from pulsarium.client.connection.pool import Pool, Settings
from pulsarium.client.connection.protocol import MAX_PROTOCOL_VERSION
from pulsarium.client.connection.service_url import Address, BrokerUrls, parse
from pulsarium.client.connection.tls import Tls
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.options import ConsumerOptions, ReaderOptions
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.errors import AlreadyClosed
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import T
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class Client:
    """Made by `connect`, and usable until its block is left."""

    def __init__(self, service: list[Address], tasks: TaskGroup, settings: Settings) -> None:
        self.operation_timeout = settings.operation_timeout
        self.task_group = tasks
        self._pool = Pool(tasks, settings)
        self._lookup = Lookup(self._pool, service)
        self._producer_ids = itertools.count()
        self._consumer_ids = itertools.count()
        self._closed = False

    # ---- for producers, consumers and readers

    def next_producer_id(self) -> int:
        return next(self._producer_ids)

    def next_consumer_id(self) -> int:
        return next(self._consumer_ids)

    def new_backoff(self) -> Backoff:
        """The waits of one link."""
        return Backoff()

    async def connect_to(self, topic: str) -> Connection:
        """A connection to the broker that serves the topic (a full name), looked up now."""
        return await self._open_lookup().connection_for(topic)

    async def connect_to_broker(self, broker: BrokerUrls, proxy: Address | None) -> Connection:
        """A connection to this broker, through the proxy if there is one."""
        return await self._open_lookup().connection_to(broker, proxy)

    async def partitions(self, topic: str, *, create: bool = True) -> int:
        """How many partitions a topic (a full name) has, 0: none; `create`: as its namespace has it, if it is new."""
        return await self._open_lookup().partitions(topic, create=create)

    async def topics(self, namespace: str, mode: pb.CommandGetTopicsOfNamespace.Mode) -> list[str]:
        """The topics of a namespace (`tenant/namespace`), of partitioned ones the partitions."""
        return await self._open_lookup().topics(namespace, mode)

    def _open_lookup(self) -> Lookup:
        if self._closed:
            raise AlreadyClosed("the client was closed")
        return self._lookup

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

    async def aclose(self) -> None:
        """Close every connection; what was open on them ends with AlreadyClosed."""
        self._closed = True
        await self._pool.aclose()


@asynccontextmanager
async def connect(
    service_url: str,
    *,
    operation_timeout: float = 30.0,
    connection_timeout: float = 10.0,
    max_protocol_version: int = MAX_PROTOCOL_VERSION,
    authentication: Authentication | None = None,
    tls_trust_certs_file_path: str | None = None,
    tls_allow_insecure_connection: bool = False,
    tls_validate_hostname: bool = True,
    tls_certificate_file_path: str | None = None,
    tls_private_key_file_path: str | None = None,
) -> AsyncIterator[Client]:
    """A client of the brokers at `service_url`, under trio or asyncio, until the block is left.

    operation_timeout: seconds the broker may take for an answer, and the first opening of anything altogether.
    connection_timeout: seconds until a connection has to be there.
    max_protocol_version: the highest version of the protocol to offer.
    authentication: AuthenticationToken, AuthenticationBasic or AuthenticationTLS.

    For `pulsar+ssl://`, paths of PEM files: tls_trust_certs_file_path, the authorities to believe, the system's if none
    are named; tls_certificate_file_path and tls_private_key_file_path, the client's own, which AuthenticationTLS names
    as well. tls_validate_hostname, unlike in the official client, is on unless it is turned off;
    tls_allow_insecure_connection believes any certificate.

    Connections are made when something is opened. InvalidUrl for a URL that cannot be read, InvalidConfiguration for
    files that cannot.
    """
    certificate, key = tls_certificate_file_path, tls_private_key_file_path
    if certificate is None and authentication is not None and authentication.certificate is not None:
        certificate, key = authentication.certificate
    tls = Tls(
        trust_certs_file_path=tls_trust_certs_file_path,
        allow_insecure_connection=tls_allow_insecure_connection,
        validate_hostname=tls_validate_hostname,
        certificate_file_path=certificate,
        private_key_file_path=key,
    )
    settings = Settings(
        operation_timeout, connection_timeout, max_protocol_version, authentication=authentication, tls=tls
    )
    async with open_client(service_url, settings) as client:
        yield client


@asynccontextmanager
async def open_client(service_url: str, settings: Settings) -> AsyncIterator[Client]:
    """`connect`, with all there is to set."""
    service = parse(service_url)
    if service[0].tls:
        settings.tls.context()  # what is wrong with it shall show now
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        client = Client(service, tasks, settings)
        try:
            yield client
        except Exception as error:  # the block's own, not to be wrapped into the task group's
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()
            tasks.cancel_scope.cancel()
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # it holds this frame
