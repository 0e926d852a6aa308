"""Publish to a topic and all its partitions."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Generic

import anyio
import anyio.lowlevel
from typing_extensions import Unpack

from pulsarium.client.blocks import Publishing
from pulsarium.client.checkpoints import checkpoint
from pulsarium.client.connection.waiting import shortened
from pulsarium.client.core import Core
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import AlreadyClosed, MemoryBufferIsFull, ProducerQueueIsFull, PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import Draft, MessageOptions, draft_of
from pulsarium.client.producer.intercepting import Interceptors
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.producer.room import Room
from pulsarium.client.producer.router import Router
from pulsarium.client.producer.topic_producer import TopicProducer
from pulsarium.client.schema.of_info import AutoProduceBytesSchema
from pulsarium.client.schema.schema import T
from pulsarium.client.statistics import ProducerStatistics, SentCounts
from pulsarium.client.together import together
from pulsarium.client.topics import full_name, partitions_of
from pulsarium.client.transaction.transaction import Transaction

logger: logging.Logger = logging.getLogger(__name__)

_FULL = (MemoryBufferIsFull, ProducerQueueIsFull)


class Producer(Publishing, Generic[T]):
    """A producer of one topic, made by `Client.create_producer` and open inside its `async with` block.

    At the end of the block the producer waits for the receipts of all messages, at most for the client's
    `operation_timeout`. After an exception in the block the producer is closed at once. After the block, calls raise
    `AlreadyClosed`.

    Messages to a topic without partitions, or to one partition, are sent in the order of a task's calls. After a lost
    connection, or when the broker closes the producer, the client opens the producer again. Then it sends all messages
    without a receipt again, in the same order. With deduplication on the broker (PIP-6), each message is stored once.
    `ProducerFenced` ends the producer.

    An application that starts again with the same `producer_name` continues behind `last_sequence_id`.
    """

    def __init__(self, core: Core, options: ProducerOptions[T]) -> None:
        """Check the options without sending anything. Raise `InvalidTopicName` or `CryptoError` for invalid ones."""
        self._topic: str = full_name(options.topic)
        self._core = core
        self._options = options
        self._encoder = Encoder(options.compression_type.value, options.encryption_keys, options.crypto_key_reader)
        self._router = Router(self._topic, options)
        self._interceptors = Interceptors(self, options.interceptors) if options.interceptors else None
        self._partitions: list[TopicProducer] = []  # the topic itself when it has no partitions
        self._is_partitioned = False
        self._counts = SentCounts()
        self._scope = anyio.CancelScope()

    async def __aenter__(self) -> Producer[T]:
        brokers = self._core.brokers
        try:
            await self._encoder.open(brokers.task_group)
            count = await brokers.patiently(lambda: brokers.partitions(self._topic))
            if isinstance(self._options.schema, AutoProduceBytesSchema):
                self._options = replace(self._options, schema=await self._options.schema.on(brokers, self._topic))
            topics = partitions_of(self._topic, count)
            self._is_partitioned = count > 0
            await self._open(topics[:1], count)  # the first one obtains the name, and exclusive access
            await self._open(topics[1:], count)
        except BaseException:
            self.abandon()
            raise
        if count:
            brokers.task_group.start_soon(self._watch_partitions)
        return self

    def __repr__(self) -> str:
        return f"<Producer {self.producer_name()!r} of {self._topic}>"

    def topic(self) -> str:
        """Return the full name of the topic."""
        return self._topic

    def producer_name(self) -> str:
        """Return the name of the producer, the same in all partitions.

        The broker chooses the name if the application gives none. It is "" then until the producer is open.
        """
        return self._partitions[0].producer_name if self._partitions else self._options.producer_name or ""

    def last_sequence_id(self) -> int:
        """Return the sequence id of the last published message, or -1 without one.

        Messages that an earlier producer of the same name published count, too. Partitions have separate sequence ids:
        the result is the highest.
        """
        return max((partition.last_sequence_id for partition in self._partitions), default=-1)

    def topic_epoch(self) -> int | None:
        """Return the number of earlier producers with exclusive access (PIP-68), or None with shared access.

        Partitions have separate epochs: the result is the highest.
        """
        epochs = [epoch for epoch in (partition.topic_epoch for partition in self._partitions) if epoch is not None]
        return max(epochs, default=None)

    def is_connected(self) -> bool:
        """Return whether the producer is open on the broker of each partition."""
        return bool(self._partitions) and all(partition.is_connected for partition in self._partitions)

    async def send(
        self, content: T | None, *, txn: Transaction | None = None, **options: Unpack[MessageOptions]
    ) -> MessageId:
        """Publish a message, wait for its receipt, and return its message id.

        A batch is sent as soon as every task that is ready to send has added its message. `batching_max_publish_delay`
        applies to `submit` and `send_nowait` only. The call waits while `max_pending_messages` messages have no
        receipt, or while the client's `memory_limit` is reached. Canceled during this time, it does not send the
        message. Canceled later, it may have sent the message. There is no time limit: without a broker the call waits
        for one.

        Args:
            content: A value of the producer's schema, bytes without a schema. None is a message without a value, which
                deletes its key from a compacted topic.
            txn: The transaction of the message.
            **options: Options of the message, as in `MessageOptions`.

        Returns:
            The id of the message.

        Raises:
            MessageTooBig: The message, or its batch, is larger than the broker allows.
            InvalidMessage: The value or an option is invalid.
            CryptoError: The message cannot be encrypted.
            InvalidTxnStatusError: The transaction is not open.
            AlreadyClosed: The producer is closed.
            PulsarError: The error with which the broker refused the message.
        """
        partition, receipt = await self._add(content, txn, options)
        if partition.has_batch:
            await anyio.lowlevel.checkpoint()  # tasks that are about to send join the batch
            partition.send_batch()
        return await receipt.wait()

    async def submit(
        self, content: T | None, *, txn: Transaction | None = None, **options: Unpack[MessageOptions]
    ) -> Receipt:
        """Send a message without waiting for its receipt, and return the receipt.

        Use this method to send many messages in a row.

        The call waits only while `max_pending_messages` or the client's `memory_limit` is reached. The first message of
        a transaction to a partition also waits until the transaction coordinator has registered the partition. Each
        call is a checkpoint, unlike `send_nowait`.

        Args:
            content: The value, as in `send`.
            txn: The transaction of the message.
            **options: Options of the message, as in `MessageOptions`.

        Returns:
            The receipt, whose `wait` returns the message id or raises the errors of `send`.

        Raises:
            InvalidMessage: The value or an option is invalid.
            InvalidTxnStatusError: The transaction is not open.
            AlreadyClosed: The producer is closed.
        """
        if txn is None:
            await checkpoint()
        return (await self._add(content, txn, options))[1]

    def send_nowait(self, content: T | None, **options: Unpack[MessageOptions]) -> Receipt:
        """Send a message without waiting for anything, and return its receipt. The message cannot be in a transaction.

        Args:
            content: The value, as in `send`.
            **options: Options of the message, as in `MessageOptions`.

        Returns:
            The receipt, whose `wait` returns the message id or raises the errors of `send`.

        Raises:
            ProducerQueueIsFull: `max_pending_messages` messages have no receipt.
            MemoryBufferIsFull: The client's `memory_limit` is reached.
            InvalidMessage: The value or an option is invalid.
            AlreadyClosed: The producer is closed.
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
        """Return the counts of sent and pending messages, and the latencies."""
        rooms = [partition.room for partition in self._partitions]
        return self._counts.picture(sum(room.messages for room in rooms), sum(room.bytes for room in rooms))

    async def flush(self) -> None:
        """Send all waiting batches, and wait until every message sent so far is published or has failed.

        Failures of single messages are raised by `send` and by their receipts only.

        Raises:
            AlreadyClosed: The producer is closed.
            PulsarError: The error that ended the producer.
        """
        await together(partition.flush for partition in self._partitions)

    async def aclose(self) -> None:
        """Flush for at most `operation_timeout`, and close the producer on the broker. Canceled, close it at once."""
        self._scope.cancel()
        try:
            await together(partition.aclose for partition in self._partitions)
        finally:
            self._encoder.close()
            self._close_interceptors()

    def abandon(self) -> None:
        """Close the producer at once. Messages without a receipt fail with `AlreadyClosed`."""
        self._scope.cancel()
        self._encoder.close()
        for partition in self._partitions:
            partition.abandon()
        self._close_interceptors()

    # ---- private

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
        """Wait for room, add a message to its partition, and return both. Be a checkpoint on failure, too."""
        try:
            message = self._draft(content, options)
            try:
                partition = self._route(message)
                if txn is None:
                    await self._make_room(partition, message)
                    return partition, partition.add(message)
                with txn._operation():
                    await anyio.lowlevel.checkpoint()  # canceled here, the operation counts as failed
                    message.txn = txn.id()
                    await txn._produces_to(partition.topic)
                    partition.enable_transactions()
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
            self._send_batches()  # the pending messages may be those of our own batches
            await partition.room.acquire(size)

    def _route(self, message: Draft) -> TopicProducer:
        if not self._partitions:
            raise AlreadyClosed(f"{self._topic}: the producer is not open: use it inside its `async with` block")
        return self._partitions[self._router.choose(message, self._partitions) if self._is_partitioned else 0]

    def _send_batches(self) -> None:
        for partition in self._partitions:
            partition.send_batch()

    async def _open(self, topics: list[str], count: int) -> None:
        """Open all of these partitions, or none. `count` is the number of all partitions."""
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
        """Open partitions that are added to the topic."""
        with self._scope:
            while True:
                await anyio.sleep(self._options.auto_update_partitions_interval)
                try:
                    count = await self._core.brokers.partitions(self._topic, create=False)
                    await self._open(partitions_of(self._topic, count)[len(self._partitions) :], count)
                except PulsarError as error:
                    logger.info(
                        "%s: the lookup of new partitions failed, trying again later: %s", self._topic, shortened(error)
                    )
