"""The client: what producers, consumers and readers of one application share."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from pulsarium.client import errors
from pulsarium.client.connection import Connection
from pulsarium.client.consumer import Consumer
from pulsarium.client.consumer_options import ConsumerKeySharedPolicy, ConsumerOptions, ConsumerType, InitialPosition
from pulsarium.client.crypto import ConsumerCryptoFailureAction, KeyReader
from pulsarium.client.errors import AlreadyClosed, OperationNotSupported
from pulsarium.client.last_entry import PayloadToMessageIdConverter
from pulsarium.client.link import Backoff
from pulsarium.client.lookup import Lookup
from pulsarium.client.message_id import MessageId
from pulsarium.client.payload_processor import MessagePayloadProcessor
from pulsarium.client.pool import Pool, Settings
from pulsarium.client.producer import Producer
from pulsarium.client.producer_options import CompressionType, ProducerOptions
from pulsarium.client.protocol import MAX_PROTOCOL_VERSION
from pulsarium.client.reader import Reader
from pulsarium.client.service_url import Address, parse
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName


class Client:
    """Made by `connect`, and usable until its block is left."""

    def __init__(self, service: list[Address], tasks: TaskGroup, settings: Settings) -> None:
        self.operation_timeout = settings.operation_timeout
        self.task_group = tasks
        self._pool = Pool(tasks, settings)
        self._lookup = Lookup(self._pool, service)
        self._producer_ids = itertools.count()
        self._consumer_ids = itertools.count()
        self._plain: set[str] = set()  # topics that are known to have no partitions
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
        """A connection to the broker that serves the topic (a full name), looked up now.

        OperationNotSupported for a topic that has partitions: not built yet.
        """
        if self._closed:
            raise AlreadyClosed("the client was closed")
        if topic not in self._plain:
            if await self._lookup.partitions(topic) > 0:
                raise OperationNotSupported(f"{topic} is partitioned: not built yet, but its partitions can be named")
            self._plain.add(topic)
        return await self._lookup.connection_for(topic)

    @staticmethod
    def full_name(topic: str) -> str:
        """`persistent://public/default/topic` of `topic`; InvalidTopicName if it is no name."""
        try:
            return str(TopicName.parse(topic))
        except InvalidTopicName as error:
            raise errors.InvalidTopicName(*error.args) from None

    def create_producer(
        self,
        topic: str,
        *,
        producer_name: str | None = None,
        compression_type: CompressionType = CompressionType.NONE,
        batching_enabled: bool = True,
        batching_max_messages: int = 1000,
        batching_max_allowed_size_in_bytes: int = 128 * 1024,
        batching_max_publish_delay: float = 0.01,
        max_pending_messages: int = 1000,
        properties: Mapping[str, str] | None = None,
        initial_sequence_id: int | None = None,
        encryption_keys: Collection[str] = (),
        crypto_key_reader: KeyReader | None = None,
    ) -> Producer:
        """A producer on a topic: `async with` opens and closes it. What the options mean, ProducerOptions says.

        InvalidTopicName, InvalidConfiguration or CryptoError for arguments that make no sense. Opening raises
        ConnectError, or what the broker refuses it with.
        """
        options = ProducerOptions(
            producer_name=producer_name,
            compression_type=compression_type,
            batching_enabled=batching_enabled,
            batching_max_messages=batching_max_messages,
            batching_max_allowed_size_in_bytes=batching_max_allowed_size_in_bytes,
            batching_max_publish_delay=batching_max_publish_delay,
            max_pending_messages=max_pending_messages,
            properties=properties or {},
            initial_sequence_id=initial_sequence_id,
            encryption_keys=encryption_keys,
            crypto_key_reader=crypto_key_reader,
        )
        return Producer(self, self.full_name(topic), options)

    def subscribe(
        self,
        topic: str,
        subscription_name: str,
        *,
        consumer_type: ConsumerType = ConsumerType.Exclusive,
        initial_position: InitialPosition = InitialPosition.Latest,
        consumer_name: str = "",
        receiver_queue_size: int = 1000,
        read_compacted: bool = False,
        properties: Mapping[str, str] | None = None,
        negative_ack_redelivery_delay: float = 60.0,
        batch_index_ack_enabled: bool = False,
        ack_receipt_enabled: bool = False,
        start_message_id_inclusive: bool = False,
        replicate_subscription_state_enabled: bool = False,
        key_shared_policy: ConsumerKeySharedPolicy | None = None,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        payload_to_message_id_converter: PayloadToMessageIdConverter | None = None,
        message_payload_processor: MessagePayloadProcessor | None = None,
    ) -> Consumer:
        """A consumer on a topic: `async with` subscribes and closes it. What the options mean, ConsumerOptions says.

        InvalidTopicName or ValueError for arguments that make no sense. Opening raises ConnectError, or what the broker
        refuses it with.
        """
        options = ConsumerOptions(
            consumer_type=consumer_type,
            initial_position=initial_position,
            consumer_name=consumer_name,
            receiver_queue_size=receiver_queue_size,
            read_compacted=read_compacted,
            properties=properties or {},
            negative_ack_redelivery_delay=negative_ack_redelivery_delay,
            batch_index_ack_enabled=batch_index_ack_enabled,
            ack_receipt_enabled=ack_receipt_enabled,
            start_message_id_inclusive=start_message_id_inclusive,
            replicate_subscription_state_enabled=replicate_subscription_state_enabled,
            key_shared_policy=key_shared_policy,
            crypto_key_reader=crypto_key_reader,
            crypto_failure_action=crypto_failure_action,
            payload_to_message_id_converter=payload_to_message_id_converter,
            message_payload_processor=message_payload_processor,
        )
        return Consumer(self, topic, subscription_name, options)

    def create_reader(
        self,
        topic: str,
        start_message_id: MessageId,
        *,
        reader_name: str | None = None,
        read_compacted: bool = False,
        receiver_queue_size: int = 1000,
        start_message_id_inclusive: bool = False,
        crypto_key_reader: KeyReader | None = None,
        crypto_failure_action: ConsumerCryptoFailureAction = ConsumerCryptoFailureAction.FAIL,
        payload_to_message_id_converter: PayloadToMessageIdConverter | None = None,
        message_payload_processor: MessagePayloadProcessor | None = None,
    ) -> Reader:
        """A reader that begins behind `start_message_id`: `async with` opens and closes it. Raises as `subscribe`."""
        options = ConsumerOptions(
            receiver_queue_size=receiver_queue_size,
            read_compacted=read_compacted,
            start_message_id_inclusive=start_message_id_inclusive,
            crypto_key_reader=crypto_key_reader,
            crypto_failure_action=crypto_failure_action,
            payload_to_message_id_converter=payload_to_message_id_converter,
            message_payload_processor=message_payload_processor,
        )
        return Reader(self, topic, start_message_id, options, reader_name)

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
) -> AsyncIterator[Client]:
    """A client of the brokers at `service_url`, under trio or asyncio, until the block is left.

    operation_timeout: seconds the broker may take for an answer, and the first opening of anything altogether.
    connection_timeout: seconds until a connection has to be there.
    max_protocol_version: the highest version of the protocol to offer.

    Connections are made when something is opened. InvalidUrl for a URL that cannot be read.
    """
    settings = Settings(operation_timeout, connection_timeout, max_protocol_version)
    async with open_client(service_url, settings) as client:
        yield client


@asynccontextmanager
async def open_client(service_url: str, settings: Settings) -> AsyncIterator[Client]:
    """`connect`, with all there is to set."""
    service = parse(service_url)
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
