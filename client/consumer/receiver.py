"""What the broker sends to a consumer, from its entries to the messages that wait to be received."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from anyio.abc import TaskGroup

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.protocol import DEFAULT_MAX_MESSAGE_SIZE
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.consumer import commands
from pulsarium.client.consumer.acknowledgements import Acknowledgements
from pulsarium.client.consumer.chunks import Chunks
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.queue import ReceiveQueue, Waiting
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.decoding import Decoded, Single, Unreadable, join, messages
from pulsarium.client.errors import ConnectError, CryptoError, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

MOST_UNASKED = 1000  # entries beyond the room of the queue; a broker reads 100 at a time (dispatcherMaxReadBatchSize)


class Receiver(ReceiveQueue):
    """A consumer's handler on the connection. Only one connection feeds it at a time."""

    def __init__(
        self,
        topic: str,
        consumer_id: int,
        options: ConsumerOptions[Any],
        acknowledgements: Acknowledgements,
        lost: Callable[[PulsarError, BrokerUrls | None], None],
        inbox: Inbox,
        tasks: TaskGroup,
        reading_from: Start | None = None,
    ) -> None:
        """`lost` is told when the consumer is not open any more, and whose the topic is now.

        `reading_from`: of a reader, whose subscription is not kept.
        """
        super().__init__(consumer_id, options, acknowledgements, inbox)
        self.start = reading_from
        """Where a reader, or a seek, begins: what is before it is not delivered."""
        self.last_seen: tuple[int, int] | None = None
        """The last entry that came since the start: nothing up to it comes again."""
        self.is_active: bool | None = None
        self.end_of_topic: bool = False
        self.error: PulsarError | None = None
        self.epoch = 0
        self.once_too_often: Callable[[tuple[int, int], list[Message[Any]], int], bool] | None = None
        """Told of each entry that was delivered before, and how often: whether nobody shall receive it."""
        self.on_batch: Callable[[MessageId], None] | None = None
        """Told of batches, which are not received then."""
        self.on_nothing: Callable[[], None] | None = None
        """Told of entries without a message to deliver."""
        self.on_unreadable: Callable[[MessageId, Unreadable], None] | None = None
        """Told of damaged entries, which nobody gets."""
        self._topic = topic
        self._durable = reading_from is None
        self._schema = options.schema
        self._processor = options.message_payload_processor
        self._decoder = options.decoder()
        self._chunks = Chunks(options, tasks, self._acknowledge_all)
        self._lost = lost
        self._unasked = 0  # entries on this connection for which there was no room

    # ---- for the consumer

    def attach(self, connection: Connection) -> None:
        """SUBSCRIBE is about to be sent on this connection."""
        self.end_of_topic = False
        self.is_active = None
        self._is_open = False
        self._unasked = 0
        self._connection = connection
        connection.attach_consumer(self._consumer_id, self)

    def detach(self) -> None:
        """Nothing more is taken from the connection."""
        if self._connection is not None:
            self._connection.detach_consumer(self._consumer_id)
            self._connection = None

    def fail(self, error: PulsarError) -> None:
        """Nothing comes any more: whoever waits, or asks later, gets the error."""
        self.error = error
        self._queue.clear()
        self._chunks.clear()
        self._inbox.wake(self)

    def clear(self) -> None:
        """Drop what waits, because the broker will send it again; the consumer stays open."""
        self._free(len(self._queue))
        self._queue.clear()
        self._chunks.clear()
        self._acknowledgements.clear()

    def moved(self, start: Start | None) -> None:
        """A seek was done; nothing of the old place is wanted."""
        self.clear()
        self.start = start
        self.last_seen = None

    # ---- for the connection

    def on_message(self, command: pb.CommandMessage, trailing: bytes) -> None:
        if len(self._queue) <= self._size:
            self._unasked = 0
        elif self._is_too_many():
            return
        if command.HasField("consumer_epoch") and command.consumer_epoch < self.epoch:  # PIP-84: sent before a rewind
            self._free(_charged(command, trailing))
            return
        message_id = MessageId.from_data(command.message_id)
        self.last_seen = message_id.entry
        try:
            decoded = self._decoder.decode(trailing)
            if decoded.is_chunk:
                whole = self._chunks.add(message_id, decoded, self._max_message_size)
                if whole is None:
                    self._free(1)
                    self._nothing()
                    return
                message_id = whole.message_id
                decoded = join(whole.chunks)
            found = messages(decoded, command.ack_set, self._processor)
        except Unreadable as error:
            if self.on_unreadable is not None:
                self.on_unreadable(message_id, error)
            if error.validation_error == pb.CommandAck.DecryptionError:
                self._chunks.fail(parse_metadata(trailing), acknowledge=True)
            self._acknowledge(message_id, error.validation_error)
            self._free(_charged(command, trailing))
            self._nothing()
        except Exception as error:  # no key, or the application's processor: `receive` raises it
            told = 0
            if not isinstance(error, CryptoError) or self._chunks.fail(parse_metadata(trailing), acknowledge=False):
                self._queue.append(Waiting(message_id, error))
                self._inbox.wake(self)
                told = 1
            self._free(_charged(command, trailing) - told)
            if not told:
                self._nothing()
        else:
            if self.on_batch is not None and decoded.metadata.HasField("num_messages_in_batch"):
                self.on_batch(message_id)
                return
            wanted = self._wanted(message_id.entry, found)
            self._free(_left(command, decoded.metadata) - len(wanted))
            self._deliver(message_id, decoded, wanted, command.redelivery_count)

    def _is_too_many(self) -> bool:
        """An entry came for which there is no room. Some are usual: brokers read entries, permits are messages."""
        self._unasked += 1
        if self._unasked > max(MOST_UNASKED, self._size) and self._connection is not None:
            error = ConnectError(f"{self._topic}: the broker broke the protocol: more messages than there is room for")
            self._connection.abort(error)
            return True
        return False

    def on_end_of_topic(self) -> None:
        self.end_of_topic = True
        self._inbox.wake(self)

    def on_active_change(self, is_active: bool) -> None:
        self.is_active = is_active

    def on_lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        """What waits here comes again; a reader says where to go on."""
        self._connection = None
        if not self._durable:
            self.start = self._next_start()
            self.last_seen = None
        self._queue.clear()
        self._chunks.clear()
        self._acknowledgements.clear()
        self._lost(error, owner)

    # ---- inside

    def _next_start(self) -> Start | None:
        """Where a reader goes on; the broker sends again all chunks of what was not read."""
        start, seen = self.start, self.last_seen
        needed = [MessageId(*waiting.message_id.entries[0]) for waiting in self._queue if waiting.message_id.chunks]
        if self._chunks.first is not None:
            needed.append(self._chunks.first)
        if self._queue:
            return Start.needing(needed, self._queue[0].message_id, inclusive=True)
        if seen is None or (start is not None and start.is_behind(seen)):
            return start
        return Start.needing(needed, MessageId(*seen))

    def _wanted(self, entry: tuple[int, int], found: list[Single]) -> list[Single]:
        """Without what is before the start."""
        start = self.start
        if start is None or (entry != start.message_id.entry and not start.is_behind(entry)):
            return found
        return [single for single in found if not start.skips(entry, single[0])]

    def _deliver(self, message_id: MessageId, decoded: Decoded, found: list[Single], redelivery_count: int) -> None:
        if not found:
            self._acknowledge(message_id)
            self._nothing()
            return
        metadata, entry = decoded.metadata, message_id.entry
        size = metadata.num_messages_in_batch if found[0][0] >= 0 else 0
        if size:
            self._acknowledgements.received(entry, size, [index for index, _, _ in found])
        made: list[Message[Any]] = []
        for index, single, data in found:
            own = MessageId(*entry, message_id.partition, index, size, message_id.first_chunk, message_id.chunks)
            message: Message[Any] = Message(
                self._topic,
                own,
                metadata,
                single,
                data,
                redelivery_count,
                schema=self._schema,
                broker_metadata=decoded.broker_metadata,
            )
            made.append(message)
        if redelivery_count and self.once_too_often is not None and self.once_too_often(entry, made, redelivery_count):
            self._free(len(made))
            return
        self._queue.extend([Waiting(message.message_id(), message) for message in made])
        self._inbox.wake(self)

    def _nothing(self) -> None:
        """An entry of which nothing is delivered."""
        if self.on_nothing is not None:
            self.on_nothing()

    def _acknowledge(self, message_id: MessageId, error: pb.CommandAck.ValidationError | None = None) -> None:
        """An entry that the application will not see; or all of a chunked message."""
        self._acknowledge_all([MessageId(*entry, message_id.partition) for entry in message_id.entries], error)

    def _acknowledge_all(
        self, message_ids: Iterable[MessageId], error: pb.CommandAck.ValidationError | None = None
    ) -> None:
        entries = [message_id.to_data() for message_id in message_ids]
        self._send(commands.ack(self._consumer_id, pb.CommandAck.Individual, entries, error))

    @property
    def _max_message_size(self) -> int:
        return DEFAULT_MAX_MESSAGE_SIZE if self._connection is None else self._connection.max_message_size


def _charged(command: pb.CommandMessage, entry: bytes) -> int:
    """The permits that the broker took for an entry which is not decoded."""
    try:
        return _left(command, parse_metadata(entry))
    except EntryError:
        return 1


def _left(command: pb.CommandMessage, metadata: pb.MessageMetadata) -> int:
    """The messages of an entry, of a partly acknowledged batch the rest (S54-16): the permits the broker took."""
    size = max(1, metadata.num_messages_in_batch)
    if not command.ack_set:
        return size
    return min(size, sum((word & 2**64 - 1).bit_count() for word in command.ack_set))
