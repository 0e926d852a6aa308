"""Publishes to a topic, with all its partitions."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import TracebackType
from typing import Generic

import anyio
import anyio.lowlevel
from typing_extensions import Unpack

from pulsarium.client.connection.waiting import printable
from pulsarium.client.core import Core
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import AlreadyClosed, MemoryBufferIsFull, ProducerQueueIsFull, PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import Draft, MessageOptions, draft_of
from pulsarium.client.producer.interceptors import Interceptors
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.outbox import Room
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.producer.router import Router
from pulsarium.client.producer.topic_producer import TopicProducer
from pulsarium.client.schema.of_info import AutoProduceBytesSchema
from pulsarium.client.schema.schema import T
from pulsarium.client.statistics import ProducerStatistics, Sent
from pulsarium.client.together import together
from pulsarium.client.topics import full_name, partitions_of
from pulsarium.client.transaction.transaction import Transaction

logger: logging.Logger = logging.getLogger(__name__)

_FULL = (MemoryBufferIsFull, ProducerQueueIsFull)


class Producer(Generic[T]):
    """Made by `Client.create_producer`, and open inside its `async with` block.

    A block that is left normally first waits for the receipts of all messages, `operation_timeout` at most. After the
    block: AlreadyClosed.

    Messages to a topic, or to one partition, go out in the order of a task's calls. After a lost connection, or when
    the broker closed the producer, it opens it again by itself, and sends those without a receipt again, in that order:
    with deduplication (PIP-6) on the broker each message is there once. After ProducerFenced it is over.

    An application that is started again goes on where it left off, if it gives the same `producer_name`: what
    `last_sequence_id` says was published.
    """

    def __init__(self, core: Core, options: ProducerOptions[T]) -> None:
        """Nothing is sent yet. InvalidTopicName or CryptoError for options that make no sense."""
        self._topic: str = full_name(options.topic)
        self._core = core
        self._options = options
        self._encoder = Encoder(options.compression_type.value, options.encryption_keys, options.crypto_key_reader)
        self._router = Router(self._topic, options)
        self._interceptors = Interceptors(self, options.interceptors) if options.interceptors else None
        self._partitions: list[TopicProducer] = []  # one that is the topic itself where it has none
        self._is_partitioned = False
        self._counts = Sent()
        self._scope = anyio.CancelScope()

    async def __aenter__(self) -> Producer[T]:
        brokers = self._core.brokers
        try:
            count = await brokers.patiently(lambda: brokers.partitions(self._topic))
            if isinstance(self._options.schema, AutoProduceBytesSchema):
                self._options = replace(self._options, schema=await self._options.schema.on(brokers, self._topic))
            topics = partitions_of(self._topic, count)
            self._is_partitioned = count > 0
            await self._open(topics[:1], count)  # who has the name for all of them, and the topic for itself
            await self._open(topics[1:], count)
        except BaseException:
            self.abandon()
            raise
        if count:
            brokers.task_group.start_soon(self._watch_partitions)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.aclose()
        finally:
            self.abandon()

    def topic(self) -> str:
        """The topic, in full."""
        return self._topic

    def producer_name(self) -> str:
        """Its name, in all partitions; the broker's choice if the application made none, "" until it is open."""
        return self._partitions[0].producer_name if self._partitions else self._options.producer_name or ""

    def last_sequence_id(self) -> int:
        """The number of the last message that was published, also before this producer was created; -1: none.

        Partitions are numbered each for itself: of several the highest.
        """
        return max((partition.last_sequence_id for partition in self._partitions), default=-1)

    def topic_epoch(self) -> int | None:
        """How many producers had the topic for themselves before this one (PIP-68); None if it has to share it.

        Partitions count each for itself: of several the highest.
        """
        epochs = [epoch for epoch in (partition.topic_epoch for partition in self._partitions) if epoch is not None]
        return max(epochs, default=None)

    def is_connected(self) -> bool:
        """Whether the brokers have it open now, for each partition."""
        return bool(self._partitions) and all(partition.is_connected for partition in self._partitions)

    async def send(
        self, content: T | None, *, txn: Transaction | None = None, **options: Unpack[MessageOptions]
    ) -> MessageId:
        """Publish a message; where it stands, once the broker has it.

        content: a value as the producer's schema takes it, bytes without one; None is no value, which deletes the key
        in a compacted topic. txn: the transaction that it belongs to. options: as MessageOptions says.

        A batch goes out as soon as every task that is ready to send has sent: `batching_max_publish_delay` is for
        `send_nowait`. Waits while `max_pending_messages` are without a receipt, or the client's memory limit is
        reached: cancelled in there, the message is not sent; cancelled later, it may be. No time limit: without a
        broker it waits for one.

        Raises MessageTooBig, InvalidMessage, AlreadyClosed, CryptoError, InvalidTxnStatusError for a transaction that
        is not open, or what the broker refused it with.
        """
        partition, receipt = await self._add(content, txn, options)
        if partition.has_batch:
            await anyio.lowlevel.checkpoint()  # who is about to send, too, joins the batch
            partition.send_batch()
        return await receipt.wait()

    async def submit(
        self, content: T | None, *, txn: Transaction | None = None, **options: Unpack[MessageOptions]
    ) -> Receipt:
        """As `send`, without waiting for the receipt: the way to send many messages in a row.

        Waits only for room, as `max_pending_messages` and the memory limit of the client have it, and the first time
        with a transaction until its coordinator knows the partition. Each call is a checkpoint; `send_nowait` is none.
        """
        if txn is None:
            await anyio.lowlevel.checkpoint()
        return (await self._add(content, txn, options))[1]

    def send_nowait(self, content: T | None, **options: Unpack[MessageOptions]) -> Receipt:
        """As `send`, without waiting, and therefore in no transaction: what becomes of the message, its Receipt says.

        ProducerQueueIsFull when `max_pending_messages` are without a receipt, MemoryBufferIsFull when the client's
        memory limit is reached.
        """
        message = self._draft(content, options)
        try:
            partition = self._route(message)
            partition.room.acquire_nowait(len(message.content))
            return partition.add(message)
        except PulsarError as error:
            if isinstance(error, _FULL):
                self._send_batches()
            message.receipt._fail(error)
            raise

    def statistics(self) -> ProducerStatistics:
        """Return what was sent, what is pending, and how long that took."""
        rooms = [partition.room for partition in self._partitions]
        return self._counts.picture(sum(room.messages for room in rooms), sum(room.bytes for room in rooms))

    async def flush(self) -> None:
        """Send what waits for its batch, and wait until everything sent so far is published or has failed.

        Failures are told to those who sent.
        """
        await together(partition.flush for partition in self._partitions)

    async def aclose(self) -> None:
        """Flush, for `operation_timeout` at most, and close it on the broker; cancelled, close it at once."""
        self._scope.cancel()
        try:
            await together(partition.aclose for partition in self._partitions)
        finally:
            self._close_interceptors()

    def abandon(self) -> None:
        """Close it at once; what has no receipt fails with AlreadyClosed."""
        self._scope.cancel()
        for partition in self._partitions:
            partition.abandon()
        self._close_interceptors()

    # ---- its own

    def _close_interceptors(self) -> None:
        if self._interceptors is not None:
            self._interceptors.close()

    def _draft(self, content: T | None, options: MessageOptions) -> Draft:
        if self._interceptors is not None:
            content, options = self._interceptors.before_send(content, options)
        message = draft_of(self._options.schema, content, options)
        if self._interceptors is not None:
            self._interceptors.hear_of(message.receipt, content, options)
        return message

    async def _add(
        self, content: T | None, txn: Transaction | None, options: MessageOptions
    ) -> tuple[TopicProducer, Receipt]:
        """Who sends a message, once it has its room, and its receipt. It is a checkpoint where it fails."""
        try:
            message = self._draft(content, options)
            try:
                partition = self._route(message)
                if txn is None:
                    await self._make_room(partition, message)
                    return partition, partition.add(message)
                with txn._operation():
                    await anyio.lowlevel.checkpoint()  # in here: cancelled, it is a part that has failed
                    message.txn = txn.id()
                    await txn._produces_to(partition.topic)
                    await self._make_room(partition, message)
                    txn._sending(message.receipt)
                    return partition, partition.add(message)
            except PulsarError as error:
                message.receipt._fail(error)
                raise
        except PulsarError:
            await anyio.lowlevel.checkpoint()
            raise

    async def _make_room(self, partition: TopicProducer, message: Draft) -> None:
        size = len(message.content)
        try:
            partition.room.acquire_nowait(size)
        except _FULL:
            self._send_batches()  # waiting for company would be waiting for ourselves
            await partition.room.acquire(size)

    def _route(self, message: Draft) -> TopicProducer:
        if not self._partitions:
            raise AlreadyClosed(f"{self._topic}: the producer is not open")
        return self._partitions[self._router.choose(message, self._partitions) if self._is_partitioned else 0]

    def _send_batches(self) -> None:
        for partition in self._partitions:
            partition.send_batch()

    async def _open(self, topics: list[str], count: int) -> None:
        """All or none of these, of so many partitions."""
        core, options, name = self._core, self._options, self.producer_name()
        places = options.max_pending_messages
        if count:
            places = min(places, max(1, options.max_pending_messages_across_partitions // count))
        rooms = [Room(topic, places, core.memory) for topic in topics]
        new = [
            TopicProducer(core.brokers, room.topic, options, self._encoder, room, name, self._counts) for room in rooms
        ]
        try:
            await together([partition.open for partition in new], all_or_none=True)
            if self._scope.cancel_called:
                raise AlreadyClosed(f"{self._topic}: the producer was closed")
        except BaseException:
            for partition in new:
                partition.abandon()
            raise
        self._partitions += new

    async def _watch_partitions(self) -> None:
        """Topics get more partitions, never less."""
        with self._scope:
            while True:
                await anyio.sleep(self._options.auto_update_partitions_interval)
                try:
                    count = await self._core.brokers.partitions(self._topic, create=False)
                    await self._open(partitions_of(self._topic, count)[len(self._partitions) :], count)
                except PulsarError as error:
                    logger.info("%s: partitions are looked for again later: %s", self._topic, printable(error))
