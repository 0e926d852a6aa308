"""Publishes to a topic, with all its partitions."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Generic

import anyio
import anyio.lowlevel
from typing_extensions import Unpack

from pulsarium.client.connection.link import patiently
from pulsarium.client.entry.encoding import Encoder
from pulsarium.client.errors import AlreadyClosed, ProducerQueueIsFull, PulsarError
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.batching import Draft, MessageOptions, Receipt, draft
from pulsarium.client.producer.options import ProducerOptions
from pulsarium.client.producer.router import Router
from pulsarium.client.producer.topic_producer import TopicProducer
from pulsarium.client.schema.schema import T
from pulsarium.client.together import together
from pulsarium.client.topics import full_name, partitions_of

if TYPE_CHECKING:
    from pulsarium.client.client import Client


class Producer(Generic[T]):
    """Made by `Client.create_producer`, and open inside its `async with` block.

    A block that is left normally first waits for the receipts of all messages, `operation_timeout` at most. After the
    block: AlreadyClosed.

    Messages to a topic, or to one partition, go out in the order of the calls. After a lost connection, or when the
    broker closed the producer, it opens it again by itself, and sends those without a receipt again, in that order.
    """

    def __init__(self, client: Client, options: ProducerOptions[T]) -> None:
        """Nothing is sent yet. InvalidTopicName or CryptoError for options that make no sense."""
        self.topic = full_name(options.topic)
        self._client = client
        self._options = options
        self._encoder = Encoder(options.compression_type.value, options.encryption_keys, options.crypto_key_reader)
        self._router = Router(self.topic, options)
        self._slots = anyio.Semaphore(options.max_pending_messages, fast_acquire=True)
        self._partitions: list[TopicProducer] = []  # one that is the topic itself where it has none
        self._is_partitioned = False
        self._scope = anyio.CancelScope()

    async def __aenter__(self) -> Producer[T]:
        try:
            count = await patiently(self._client, lambda: self._client.partitions(self.topic))
            topics = partitions_of(self.topic, count)
            await self._open(topics[:1])  # who has the name for all of them
            await self._open(topics[1:])
        except BaseException:
            self.abandon()
            raise
        if count:
            self._is_partitioned = True
            self._client.task_group.start_soon(self._watch_partitions)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.aclose()
        finally:
            self.abandon()

    @property
    def producer_name(self) -> str:
        """Its name, in all partitions; the broker's choice if the application made none, "" until it is open."""
        return self._partitions[0].producer_name if self._partitions else self._options.producer_name or ""

    @property
    def last_sequence_id(self) -> int:
        """The number of the last message that was published, also before this producer was created; -1: none.

        Partitions are numbered each for itself: of several the highest.
        """
        return max((partition.last_sequence_id for partition in self._partitions), default=-1)

    @property
    def is_connected(self) -> bool:
        """Whether the brokers have it open now, for each partition."""
        return bool(self._partitions) and all(partition.is_connected for partition in self._partitions)

    async def send(self, content: T | None, **options: Unpack[MessageOptions]) -> MessageId:
        """Publish a message; where it stands, once the broker has it.

        content: a value as the producer's schema takes it, bytes without one; None is no value, which deletes the key
        in a compacted topic. options: as MessageOptions says.

        A batch goes out as soon as every task that is ready to send has sent: `batching_max_publish_delay` is for
        `send_nowait`. Waits while `max_pending_messages` are without a receipt: cancelled in there, the message is not
        sent; cancelled later, it may be. No time limit: without a broker it waits for one.

        Raises MessageTooBig, InvalidMessage, AlreadyClosed, CryptoError, or what the broker refused it with.
        """
        message = self._draft(content, options)
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            self._send_batches()  # waiting for company would be waiting for ourselves
            await self._slots.acquire()
        partition = self._route(message)
        receipt = partition.add(message)
        if not receipt.is_done:
            await anyio.lowlevel.checkpoint()  # who is about to send, too, joins the batch
            partition.send_batch()
        return await receipt.wait()

    def send_nowait(self, content: T | None, **options: Unpack[MessageOptions]) -> Receipt:
        """As `send`, without waiting: what becomes of the message, its Receipt says.

        ProducerQueueIsFull when `max_pending_messages` are without a receipt.
        """
        message = self._draft(content, options)
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            self._send_batches()
            raise ProducerQueueIsFull(f"{self.topic}: {self._options.max_pending_messages} messages pending") from None
        return self._route(message).add(message)

    async def flush(self) -> None:
        """Send what waits for its batch, and wait until everything sent so far is published or has failed.

        Failures are told to those who sent.
        """
        await together(partition.flush for partition in self._partitions)

    async def aclose(self) -> None:
        """Flush, for `operation_timeout` at most, and close it on the broker."""
        self._scope.cancel()
        await together(partition.aclose for partition in self._partitions)

    def abandon(self) -> None:
        """Close it at once; what has no receipt fails with AlreadyClosed."""
        self._scope.cancel()
        for partition in self._partitions:
            partition.abandon()

    # ---- its own

    def _draft(self, content: T | None, options: MessageOptions) -> Draft:
        return draft(None if content is None else self._options.schema.encode(content), **options)

    def _route(self, message: Draft) -> TopicProducer:
        """Who sends a message, which has its slot."""
        try:
            if not self._partitions:
                raise AlreadyClosed(f"{self.topic}: the producer is not open")
            return self._partitions[self._router.choose(message, self._partitions) if self._is_partitioned else 0]
        except BaseException:
            self._slots.release()
            raise

    def _send_batches(self) -> None:
        for partition in self._partitions:
            partition.send_batch()

    async def _open(self, topics: list[str]) -> None:
        """All or none of these."""
        name = self.producer_name
        new = [TopicProducer(self._client, topic, self._options, self._encoder, self._slots, name) for topic in topics]
        try:
            await together([partition.open for partition in new], all_or_none=True)
            if self._scope.cancel_called:
                raise AlreadyClosed(f"{self.topic}: the producer was closed")
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
                with suppress(PulsarError):  # the next time
                    count = await self._client.partitions(self.topic, create=False)
                    await self._open(partitions_of(self.topic, count)[len(self._partitions) :])
