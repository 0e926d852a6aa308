"""Read and write in bulk, as the Spark pipeline does. The module is public.

A `TopicReader` returns queued messages without a checkpoint for each one, and an `EntryReader` returns whole entries. A
`BatchProducer` publishes batches that the program packs itself. The other names are parts of the client: they decode
entries, choose partitions and convert the values of a schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from uuid import uuid4

from typing_extensions import Unpack

from pulsarium.client.client import Client
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.discovery import Matching
from pulsarium.client.consumer.indexes import message_at
from pulsarium.client.consumer.options import ConsumerOptions, ConsumerType, InitialPosition, RegexSubscriptionMode
from pulsarium.client.consumer.reader import ReaderPosition
from pulsarium.client.consumer.receiver import Onlooker, Receiver
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.decoding import Decoded, Decoder, RawDecoder, UnreadableEntry, messages
from pulsarium.client.errors import InvalidMessage
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.draft import MessageOptions, draft
from pulsarium.client.producer.packing import PackedBatch
from pulsarium.client.producer.producer import Producer
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.producer.router import hash_of
from pulsarium.client.schema.key_value import encoding_of, halves
from pulsarium.client.schema.nodes import EPOCH, DataForm, Misfit, expected
from pulsarium.client.schema.protobuf_native import message_of
from pulsarium.client.schema.schema import BYTES, Schema
from pulsarium.client.schema.structured import read_definition
from pulsarium.client.together import together
from pulsarium.proto.generated import PulsarApi_pb2 as pb

__all__ = [
    "BYTES",
    "EPOCH",
    "BatchProducer",
    "DataForm",
    "Decoded",
    "Decoder",
    "EntryReader",
    "Misfit",
    "Onlooker",
    "PackedBatch",
    "TopicReader",
    "encoding_of",
    "expected",
    "first_entry",
    "halves",
    "hash_of",
    "last_message",
    "message_at",
    "message_of",
    "messages_of",
    "read_definition",
    "standing_consumer",
    "together",
    "topics_matching",
    "use_admin_of",
]

_MOST_WANTED = 5000  # messages that an `EntryReader` asks for in advance, because later ones may be larger
READ_AHEAD = 16 * 2**20
"""Bytes of entries that wait in an `EntryReader`, beyond which the reader asks the broker for no more."""


@dataclass(frozen=True, kw_only=True)
class _Options(ConsumerOptions[Any]):
    own_decoder: Decoder = field(default_factory=Decoder)

    def decoder(self) -> Decoder:
        return self.own_decoder

    @property
    def creates_topic(self) -> bool:
        return False


class TopicReader:
    """A reader of a topic without partitions, or of one partition. It is open inside its `async with` block.

    The reader discards no incomplete chunked message, however many of them there are. It creates no topic.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        start: MessageId,
        *,
        schema: Schema[Any] = BYTES,
        receiver_queue_size: int = 1000,
        consumer_name: str = "",
        needed_from: MessageId | None = None,
        decoder: Decoder | None = None,
        onlooker: Onlooker | None = None,
    ) -> None:
        """Prepare to read from `start`.

        Args:
            client: The client.
            topic: A topic without partitions, or one partition.
            start: The first message to receive.
            schema: The schema that decodes the values.
            receiver_queue_size: The most messages that wait in the client.
            consumer_name: The name in the stats.
            needed_from: The position of the first chunk to read, for chunked messages that end at `start` or later.
            decoder: The decoder of entries.
            onlooker: The object to notify of entries without a message to receive.

        Raises:
            InvalidTopicName: `topic` is no valid name.
        """
        options = _Options(
            topic,
            f"reader-{uuid4().hex[:10]}",
            schema=schema,
            consumer_name=consumer_name,
            receiver_queue_size=receiver_queue_size,
            max_pending_chunked_message=0,
            expire_time_of_incomplete_chunked_message=0,
            own_decoder=decoder or Decoder(),
        )
        self._consumer: Consumer[Any] = Consumer(client._core, options, Start(start, True, needed_from), onlooker)
        self._inbox = self._consumer._inbox
        self._place: ReaderPosition
        self.take: Callable[[], Message[Any]] = self._inbox.take
        """Return the next message, which must be queued, or raise the queued error."""

    async def __aenter__(self) -> TopicReader:
        await self._consumer.__aenter__()
        self._place = ReaderPosition(self._consumer._parts.all[0], 1, inclusive=False)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._consumer.aclose()

    def __bool__(self) -> bool:
        """Return whether a message or an error is queued."""
        return bool(self._inbox)

    def __len__(self) -> int:
        """Return the number of queued messages, once the schema of the first one is known."""
        return len(self._inbox)

    def head(self) -> Message[Any] | Exception | None:
        """Return the message or the error that `take` returns or raises next, or None."""
        return self._inbox.head

    async def arrival(self) -> None:
        """Wait until a message or an error is queued. Raise the error that ended the reader."""
        await self._inbox.arrival()

    async def has_more(self) -> bool:
        """Return whether a message can be read now. Ask the broker unless one is queued."""
        return await self._place.has_more()

    def read_through(self, message_id: MessageId) -> None:
        """Acknowledge everything up to this entry."""
        self._consumer._parts.all[0].read_through(message_id)

    async def first_unread(self) -> tuple[int, int] | None:
        """Return the ledger and entry ids behind everything that is acknowledged or expired, or None if unknown."""
        return _behind((await last_message(self._consumer))[1])


class _ReadAhead(RawDecoder):
    """Decoder that reports the bytes of entries that wait to be taken."""

    def __init__(self, arrived: Callable[[int, pb.MessageMetadata], None]) -> None:
        super().__init__()
        self._arrived = arrived

    def decode(self, entry: bytes) -> Decoded:
        try:
            decoded = super().decode(entry)
        except UnreadableEntry:
            decoded = Decoded(pb.MessageMetadata(), entry, still_encrypted=True)
        self._arrived(len(entry), decoded.metadata)
        return decoded


class EntryReader(TopicReader):
    """A reader of entries in their stored form, for one topic without partitions or one partition.

    Entries arrive while the application works with those that it took. While `READ_AHEAD` bytes wait, the reader asks
    for no more. For small messages the reader asks for more than `receiver_queue_size`. An entry whose metadata cannot
    be parsed has uninitialized metadata.
    """

    def __init__(
        self, client: Client, topic: str, start: MessageId, *, receiver_queue_size: int, consumer_name: str = ""
    ) -> None:
        """Prepare to read from the entry of `start`. Raise `InvalidTopicName` when `topic` is no valid name."""
        super().__init__(
            client,
            topic,
            MessageId(*start.entry),
            receiver_queue_size=receiver_queue_size,
            consumer_name=consumer_name,
            decoder=_ReadAhead(self._arrived),
        )
        self._window = receiver_queue_size
        self._waiting = 0

    async def __aenter__(self) -> EntryReader:
        await super().__aenter__()
        return self

    def take_all(self) -> list[Message[bytes]]:
        """Return all entries that have arrived, as messages whose data is the entry."""
        taken = [self.take() for _ in range(len(self))]
        self._waiting = 0
        self._receiver.resume()
        return taken

    @property
    def _receiver(self) -> Receiver:
        return self._consumer._parts.all[0].receiver

    def _arrived(self, size: int, metadata: pb.MessageMetadata) -> None:
        self._waiting += size
        if self._waiting > READ_AHEAD:
            self._receiver.pause()
        elif self._window < _MOST_WANTED:
            room = READ_AHEAD // 2 * max(1, metadata.num_messages_in_batch) // size
            if room > 2 * self._window:
                self._window = min(room, _MOST_WANTED)
                self._receiver.widen(self._window)


def messages_of(entry: Message[bytes], schema: Schema[Any]) -> list[Message[Any]]:
    """Return the messages of an entry that an `EntryReader` returned.

    Raise `PulsarError` for an entry that is damaged, encrypted, or a chunk.
    """
    decoded = Decoder().decode(entry.data())
    if decoded.is_chunk:
        raise InvalidMessage(f"{entry.message_id()}: the entry is one chunk of a message")
    metadata, found = decoded.metadata, messages(decoded)
    at = entry.message_id()
    size = metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 0
    return [
        Message(
            entry.topic_name(),
            MessageId(*at.entry, at.partition, index, size),
            metadata,
            single,
            data,
            schema=schema,
            broker_metadata=decoded.broker_metadata,
        )
        for index, single, data in found
    ]


class BatchProducer:
    """A producer for programs that choose the partition of each message and pack batches themselves.

    The class takes a producer of `Client.create_producer`, whose `async with` block opens and closes it. The program
    gives each message of a partition a higher sequence id than the one before. With deduplication, an earlier producer
    of the same name may have sent messages up to `highest_sequence_id`: the program sends none of them but the last,
    after `omit_through`.
    """

    def __init__(self, producer: Producer[Any]) -> None:
        self._producer = producer
        self.last_sequence_id: Callable[[], int] = producer.last_sequence_id
        self.abandon: Callable[[], None] = producer.abandon

    @property
    def partitions(self) -> int:
        """Return the number of partitions, or 1 for a topic without partitions."""
        return len(self._producer._partitions)

    @property
    def most_messages(self) -> int:
        """Return the limit of pending messages of a partition."""
        return self._producer._partitions[0].room.places

    def most_bytes(self, partition: int) -> int:
        """Return how many bytes of packed messages the broker accepts in one entry of a partition."""
        return self._producer._partitions[partition].max_message_size // 2  # the entry may repeat as many as its key

    def highest_sequence_id(self, partition: int) -> int:
        """Return the highest sequence id that the partition has or that was sent to it, or -1.

        The broker may drop an entry that begins with a sequence id up to this one as a duplicate.
        """
        return self._producer._partitions[partition].highest_sequence_id

    def omit_through(self, partition: int, sequence_id: int) -> None:
        """Note that of the messages up to this sequence id, an earlier producer's, the program sends only the last.

        The broker stores messages in order. So when it drops the last one as a duplicate, it has the others, too: the
        receipt has no ledger then. When the broker lost them instead, the producer ends with `ProducerFenced` before
        it sends anything again.
        """
        self._producer._partitions[partition].omit_through(sequence_id)

    async def send(self, partition: int, content: bytes | None, **options: Unpack[MessageOptions]) -> Receipt:
        """Send one message in an entry of its own, as soon as the limits of pending messages allow.

        Raise `InvalidMessage`, and `AlreadyClosed` when the producer is closed.
        """
        target = self._producer._partitions[partition]
        message = draft(content, **options)
        await target.room.acquire(len(message.content))
        receipt = target.add(message)
        target.send_batch()
        return receipt

    async def send_batch(self, partition: int, batch: PackedBatch) -> Receipt:
        """Send a batch in one entry, as soon as the limits of pending messages allow.

        The receipt is that of all its messages. Raise `AlreadyClosed` when the producer is closed.
        """
        target = self._producer._partitions[partition]
        await target.room.acquire(batch.size, batch.count)
        return target.add_packed(batch)


def standing_consumer(
    client: Client, topic: str, subscription: str, initial_position: InitialPosition, consumer_name: str
) -> Consumer[bytes]:
    """Return a consumer that keeps a durable subscription of a topic, receives no messages and creates no topic.

    Its type is Exclusive, so opening it raises `ConsumerBusy` where another program has the subscription. Raise
    `InvalidTopicName`.
    """
    options = _Options(
        topic,
        subscription,
        consumer_type=ConsumerType.Exclusive,
        initial_position=initial_position,
        consumer_name=consumer_name,
        start_paused=True,
        start_message_id_inclusive=True,
        ack_receipt_enabled=True,
    )
    return Consumer(client._core, options)


async def last_message(consumer: Consumer[Any]) -> tuple[MessageId, MessageId | None]:
    """Return the last message of a consumer's only topic, and the mark-delete position if the broker sends it."""
    return await consumer._parts.all[0].last_message()


async def first_entry(client: Client, topic: str) -> tuple[int, int] | None:
    """Return the ledger and entry ids of the first entry that a topic still has, or gets next when it has none.

    Return None when the broker does not tell it. Raise `TopicNotFound` rather than create the topic.
    """
    async with TopicReader(client, topic, MessageId.earliest, receiver_queue_size=1) as reader:
        return await reader.first_unread()


def _behind(done: MessageId | None) -> tuple[int, int] | None:
    return None if done is None else (done.ledger_id, done.entry_id + 1)


async def topics_matching(client: Client, pattern: str) -> list[str]:
    """Return the sorted persistent topics, or partitions of topics, that match a pattern, as in `subscribe`."""
    matching = Matching(re.compile(pattern), RegexSubscriptionMode.PersistentOnly, 60)
    return sorted(await matching.find(client._core.brokers, first=False))


def use_admin_of(client: Client, other: Client) -> None:
    """Let `client.admin` be that of a client with other credentials, which must stay open as long."""
    client._core.use_admin_of(other._core)
