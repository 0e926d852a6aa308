"""What the broker sends to a consumer, from its entries to the messages that wait to be received."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.consumer import commands
from pulsarium.client.consumer.acknowledgements import Acknowledgements
from pulsarium.client.consumer.flow import Permits
from pulsarium.client.consumer.inbox import Inbox
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.decoding import Decoder, Single, Unreadable, messages
from pulsarium.client.errors import OperationNotSupported, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class _Waiting(NamedTuple):
    """In the queue: a message, or why there is none; either took one permit."""

    message_id: MessageId
    content: Message[Any] | Exception


class Receiver:
    """A consumer's queue, and its handler on the connection. Only one connection feeds it at a time."""

    def __init__(
        self,
        topic: str,
        consumer_id: int,
        options: ConsumerOptions[Any],
        acknowledgements: Acknowledgements,
        lost: Callable[[BrokerUrls | None], None],
        inbox: Inbox,
        reading_from: Start | None = None,
    ) -> None:
        """`lost` is told when the consumer is not open any more, and whose the topic is now.

        `reading_from`: of a reader, whose subscription is not kept.
        """
        self.start = reading_from
        """Where a reader, or a seek, begins: what is before it is not delivered."""
        self.last_seen: tuple[int, int] | None = None
        """The last entry that came since the start: nothing up to it comes again."""
        self.is_active: bool | None = None
        self.end_of_topic = False
        self.error: PulsarError | None = None
        self.epoch = 0
        self._topic = topic
        self._consumer_id = consumer_id
        self._durable = reading_from is None
        self._inbox = inbox
        self._schema = options.schema
        self._processor = options.message_payload_processor
        self._decoder = Decoder(options.crypto_key_reader, crypto_failure_action=options.crypto_failure_action)
        self._acknowledgements = acknowledgements
        self._lost = lost
        self._permits = Permits(options.receiver_queue_size)
        self._queue: deque[_Waiting] = deque()
        self._connection: Connection | None = None

    # ---- for the consumer

    def attach(self, connection: Connection) -> None:
        """SUBSCRIBE is about to be sent on this connection."""
        self.end_of_topic = False
        self.is_active = None
        self._connection = connection
        connection.attach_consumer(self._consumer_id, self)

    def opened(self) -> None:
        """SUBSCRIBE was answered: ask for messages."""
        self._flow(self._permits.opened())

    def detach(self) -> None:
        """Nothing more is taken from the connection."""
        if self._connection is not None:
            self._connection.detach_consumer(self._consumer_id)
            self._connection = None

    def fail(self, error: PulsarError) -> None:
        """Nothing comes any more: whoever waits, or asks later, gets the error."""
        self.error = error
        self._queue.clear()
        self._inbox.wake(self)

    def __len__(self) -> int:
        """Messages that can be received at once."""
        return len(self._queue)

    def take(self) -> Message[Any]:
        """The next message of the queue, which must hold one; raises what is there instead."""
        waiting = self._queue.popleft()
        self._free(1)
        if isinstance(waiting.content, Exception):
            raise waiting.content
        return waiting.content

    def clear(self) -> None:
        """Drop what waits, because the broker will send it again; the consumer stays open."""
        self._free(len(self._queue))
        self._queue.clear()
        self._acknowledgements.clear()

    def drop(self, entries: set[tuple[int, int]]) -> None:
        """Drop what waits of these entries."""
        kept = [waiting for waiting in self._queue if waiting.message_id.entry not in entries]
        self._free(len(self._queue) - len(kept))
        self._queue = deque(kept)
        for entry in entries:
            self._acknowledgements.forget(entry)

    def moved(self, start: Start | None) -> None:
        """A seek was done; nothing of the old place is wanted."""
        self.clear()
        self.start = start
        self.last_seen = None

    # ---- for the connection

    def on_message(self, command: pb.CommandMessage, trailing: bytes) -> None:
        if command.HasField("consumer_epoch") and command.consumer_epoch < self.epoch:  # PIP-84: sent before a rewind
            self._free(_charged(command, trailing))
            return
        message_id = MessageId.from_data(command.message_id)
        self.last_seen = message_id.entry
        try:
            decoded = self._decoder.decode(trailing)
            if decoded.is_chunk:
                raise OperationNotSupported(f"{message_id}: part of a chunked message (PIP-37), which is not built yet")
            found = messages(decoded, command.ack_set, self._processor)
        except Unreadable as error:
            self._acknowledge(message_id, error.validation_error)
            self._free(_charged(command, trailing))
        except Exception as error:  # no key, a chunk, or the application's processor: `receive` raises it
            self._put(message_id, error)
            self._free(_charged(command, trailing) - 1)
        else:
            wanted = self._wanted(message_id.entry, found)
            self._free(_left(command, decoded.metadata) - len(wanted))
            self._deliver(message_id, decoded.metadata, wanted, command.redelivery_count)

    def on_end_of_topic(self) -> None:
        self.end_of_topic = True
        self._inbox.wake(self)

    def on_active_change(self, is_active: bool) -> None:
        self.is_active = is_active

    def on_lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        """What waits here comes again; a reader says where to go on."""
        self._connection = None
        if not self._durable:
            if self._queue:
                self.start = Start(self._queue[0].message_id, inclusive=True)
            elif self.last_seen is not None:
                self.start = Start(MessageId(*self.last_seen))
            self.last_seen = None
        self._queue.clear()
        self._acknowledgements.clear()
        self._lost(owner)

    # ---- inside

    def _wanted(self, entry: tuple[int, int], found: list[Single]) -> list[Single]:
        """Without what is before the start."""
        start = self.start
        if start is None or entry != start.message_id.entry:
            return found
        return [single for single in found if not start.skips(entry, single[0])]

    def _deliver(
        self, message_id: MessageId, metadata: pb.MessageMetadata, found: list[Single], redelivery_count: int
    ) -> None:
        if not found:
            self._acknowledge(message_id)
            return
        entry = message_id.entry
        size = metadata.num_messages_in_batch if found[0][0] >= 0 else 0
        if size:
            self._acknowledgements.received(entry, size, [index for index, _, _ in found])
        for index, single, data in found:
            own = MessageId(*entry, message_id.partition, index, size)
            self._put(own, Message(self._topic, own, metadata, single, data, redelivery_count, schema=self._schema))

    def _put(self, message_id: MessageId, content: Message[Any] | Exception) -> None:
        self._queue.append(_Waiting(message_id, content))
        self._inbox.wake(self)

    def _acknowledge(self, message_id: MessageId, error: pb.CommandAck.ValidationError | None = None) -> None:
        """An entry that the application will not see."""
        entry = MessageId(*message_id.entry, message_id.partition).to_data()
        self._send(commands.ack(self._consumer_id, pb.CommandAck.Individual, [entry], error))

    def _free(self, count: int) -> None:
        self._flow(self._permits.free(count))

    def _flow(self, permits: int) -> None:
        if permits > 0:
            self._send(commands.flow(self._consumer_id, permits))

    def _send(self, command: pb.BaseCommand) -> None:
        if self._connection is not None:
            self._connection.send_nowait(command)


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
