"""Convert the entries that the broker sends to a consumer into messages, and queue the messages."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from anyio.abc import TaskGroup

from pulsarium.client.connection.connection import Connection
from pulsarium.client.connection.service_url import BrokerUrls
from pulsarium.client.consumer import commands
from pulsarium.client.consumer.acknowledgements import Acknowledgements
from pulsarium.client.consumer.awaited_keys import HeldEntries
from pulsarium.client.consumer.chunks import Chunks
from pulsarium.client.consumer.flow import OnDemand, Permits
from pulsarium.client.consumer.options import ConsumerOptions
from pulsarium.client.consumer.redelivery import Redelivery
from pulsarium.client.consumer.start import Start
from pulsarium.client.entry.decoding import Decoded, Single, UnreadableEntry, join, messages
from pulsarium.client.entry.encryption import KeyAwaited
from pulsarium.client.errors import ConnectError, CryptoError, InvalidMessage, PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId, received_id
from pulsarium.client.statistics import ReceivedCounts
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.framing import MAX_MESSAGE_SIZE
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import INT_MAX

logger: logging.Logger = logging.getLogger(__name__)

MOST_UNASKED = 1000  # entries beyond the size of the queue; a broker reads 100 at a time (dispatcherMaxReadBatchSize)


class ReceiveFailure(NamedTuple):
    """An error in the queue in place of a message. It uses one permit, as a message does."""

    id: MessageId
    error: Exception

    def message_id(self) -> MessageId:
        return self.id


class ReceiverOwner(Protocol):
    """The receiver's consumer, which handles events of the connection. No method may wait."""

    def lost(self, error: PulsarError, owner: BrokerUrls | None) -> None:
        """Open the consumer again, at broker `owner` of the topic if it is known."""
        ...

    def refuse(self, error: PulsarError) -> None:
        """Close the consumer after a message that it cannot receive."""
        ...


class Onlooker:
    """Handle entries without messages for the application. Override the methods of interest. No method may wait."""

    def nothing(self, entry: tuple[int, int] | None) -> None:
        """Handle an entry without a message to deliver."""

    def unreadable(self, message_id: MessageId, error: PulsarError) -> None:
        """Handle a damaged entry, which is not delivered."""


class Receiver:
    """Receive the messages of one consumer, from one connection at a time."""

    def __init__(
        self,
        topic: str,
        consumer_id: int,
        options: ConsumerOptions[Any],
        acknowledgements: Acknowledgements,
        redelivery: Redelivery,
        wake: Callable[[Receiver], None],
        onlooker: Onlooker,
        tasks: TaskGroup,
        owner: ReceiverOwner,
        counts: ReceivedCounts,
        reading_from: Start | None = None,
    ) -> None:
        """Make a receiver. `wake` is called when it has a message, reached the end of its topic, or failed.

        `reading_from` is the start of a reader, whose subscription is not durable.
        """
        self.start = reading_from
        """The start of a reader, or the target of a seek. Messages before it are not delivered."""
        self.last_seen: tuple[int, int] | None = None
        """The last entry since the start, up to which nothing is delivered again."""
        self.is_active: bool | None = None
        self.end_of_topic: bool = False
        self.error: PulsarError | None = None
        self.epoch = 0
        self._topic = topic
        self._consumer_id = consumer_id
        self._acknowledgements = acknowledgements
        self._redelivery = redelivery
        self._wake = wake
        self._onlooker = onlooker
        self._owner = owner
        self._counts = counts
        self._durable = reading_from is None
        self._schema = options.schema
        self._processor = options.message_payload_processor
        self._decoder = options.decoder()
        self._held = HeldEntries(self._decoder, tasks, self._receive, self._ended)
        self._chunks = Chunks(options, tasks, self._acknowledge_all)
        self._size = options.receiver_queue_size
        permits = Permits(self._size, paused=options.start_paused)
        self._permits = permits if self._size else OnDemand(paused=options.start_paused)
        self._queue: deque[Message[Any] | ReceiveFailure] = deque()
        self._connection: Connection | None = None
        self._is_open = False
        self._unasked = 0  # entries on this connection beyond the size of the queue
        self._warned = False  # of a broker that counts permits otherwise

    # ---- what waits to be received, and the permits it takes

    def opened(self) -> None:
        """Ask for messages, after SUBSCRIBE has succeeded."""
        self._is_open = True
        self._flow(self._permits.opened())

    def __len__(self) -> int:
        """Return the number of messages in the queue."""
        return len(self._queue)

    def size(self) -> int:
        """Return the size of the messages in the queue, in bytes."""
        return sum(len(one.data()) for one in self._queue if not isinstance(one, ReceiveFailure))

    @property
    def is_full(self) -> bool:
        """Return whether the queue has no room for more messages."""
        return len(self._queue) >= self._size

    def offer_room(self) -> None:
        """Give the broker permits for all the room of the queue, because the application waits for more messages."""
        self._flow(self._permits.rest())

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """Ask for a message, without a queue, while a call waits."""
        assert isinstance(self._permits, OnDemand)
        self._flow(self._permits.wait())
        try:
            yield
        finally:
            self._permits.waited()

    def widen(self, size: int) -> None:
        """Ask for more messages, because the queue now has room for `size` of them."""
        self._size = size
        self._flow(self._permits.widen(size))

    def pause(self) -> None:
        """Ask for no more messages."""
        self._permits.pause()

    def resume(self) -> None:
        """Ask for messages again."""
        self._flow(self._permits.resume())

    @property
    def head(self) -> Message[Any] | Exception:
        """Return the message or error that `take` returns or raises next."""
        head = self._queue[0]
        return head.error if isinstance(head, ReceiveFailure) else head

    def take(self) -> Message[Any]:
        """Return the next message of the queue, which must not be empty, or raise the error in its place."""
        taken = self._queue.popleft()
        self._free(1)
        if isinstance(taken, ReceiveFailure):
            self._redelivery.received(taken.id)
            raise taken.error
        return taken

    def drop(self, entries: set[tuple[int, int]]) -> None:
        """Drop the messages of these entries from the queue."""
        kept = [one for one in self._queue if one.message_id().entry not in entries]
        self._free(len(self._queue) - len(kept))
        self._queue = deque(kept)
        for entry in entries:
            self._acknowledgements.forget(entry)

    def too_early(self) -> set[tuple[int, int]]:
        """Return the entries in the queue that must go back to the broker, because their keys are being retried."""
        firsts: dict[tuple[int, int], Message[Any]] = {}
        for one in self._queue:
            if isinstance(one, Message):
                firsts.setdefault(one.message_id().entry, one)
        early = (one for one in firsts.values() if self._redelivery.keys.returns(one))
        return {entry for one in early for entry in one.message_id().entries}

    def skip(self, message_id: MessageId) -> None:
        """Drop one message from the queue."""
        kept = [one for one in self._queue if one.message_id() != message_id]
        self._free(len(self._queue) - len(kept))
        self._queue = deque(kept)

    # ---- for the consumer

    def attach(self, connection: Connection) -> None:
        """Receive from this connection, on which SUBSCRIBE is sent next."""
        self.end_of_topic = False
        self.is_active = None
        self._is_open = False
        self._unasked = 0
        self._connection = connection
        connection.attach_consumer(self._consumer_id, self)

    def detach(self) -> None:
        """Receive no more from the connection."""
        if self._connection is not None:
            self._connection.detach_consumer(self._consumer_id)
            self._connection = None
        self._held.clear()

    def fail(self, error: PulsarError) -> None:
        """Raise the error in all calls that wait, or come later."""
        self.error = error
        self._held.clear()
        self._queue.clear()
        self._chunks.clear()
        self._wake(self)

    def clear(self) -> None:
        """Drop all messages, because the broker sends them again. The consumer stays open."""
        held = sum(self._charged(command, entry, is_intact=True) for command, entry in self._held.clear())
        self._free(len(self._queue) + held)
        self._queue.clear()
        self._chunks.clear()
        self._acknowledgements.clear()

    def moved(self, start: Start | None) -> None:
        """Drop all messages, and begin at the target of a seek."""
        self.clear()
        self.start = start
        self.last_seen = None

    # ---- for the connection

    def on_message(self, command: pb.CommandMessage, trailing: bytes) -> None:
        if len(self._queue) + len(self._held) <= self._size:
            self._unasked = 0
        elif self._is_too_many():
            return
        self._held.on_message(command, trailing)

    def _receive(self, command: pb.CommandMessage, trailing: bytes) -> None:
        """Queue the messages of an entry. Raise `KeyAwaited`, without an effect, when the entry must wait for a key."""
        # PIP-84: sent before a rewind
        if self.epoch and command.HasField("consumer_epoch") and command.consumer_epoch < self.epoch:
            self._free(self._charged(command, trailing, is_intact=False))
            return
        message_id = MessageId.from_data(command.message_id)
        before, self.last_seen = self.last_seen, message_id.entry
        try:
            decoded = self._decoder.decode(trailing)
            if decoded.is_chunk:
                whole = self._chunks.add(message_id, decoded, self._max_message_size)
                if whole is None:
                    self._free(1)
                    self._onlooker.nothing(self.last_seen)
                    return
                message_id = whole.message_id
                decoded = join(whole.chunks)
            ack_set = command.ack_set
            found = messages(decoded, ack_set, self._processor)
        except KeyAwaited:
            self.last_seen = before
            raise
        except UnreadableEntry as error:
            self._onlooker.unreadable(message_id, error)
            if error.validation_error == pb.CommandAck.DecryptionError:
                self._chunks.fail(parse_metadata(trailing), acknowledge=True)
            self._acknowledge(message_id, error.validation_error)
            is_intact = error.validation_error != pb.CommandAck.ChecksumMismatch
            self._free(self._charged(command, trailing, is_intact=is_intact))
            self._onlooker.nothing(self.last_seen)
        except Exception as error:  # no key, or an error of the application's processor: `receive` raises it
            told = 0
            if not isinstance(error, CryptoError) or self._chunks.fail(parse_metadata(trailing), acknowledge=False):
                self._queue.append(ReceiveFailure(message_id, error))
                self._wake(self)
                told = 1
            self._free(self._charged(command, trailing, is_intact=True) - told)
            if not told:
                self._onlooker.nothing(self.last_seen)
        else:
            if not self._size and decoded.metadata.HasField("num_messages_in_batch"):
                text = f"{message_id}: batches cannot be received with receiver_queue_size 0"
                self._owner.refuse(InvalidMessage(text))
                return
            wanted = found if self.start is None else self._wanted(self.start, message_id.entry, found)
            keys = self._redelivery.keys
            if keys and (left := keys.left_of(message_id.entry)) is not None:
                wanted = [single for single in wanted if single[0] in left]
            if unused := self._agreed(command, _left(ack_set, decoded.metadata)) - len(wanted):
                self._free(unused)
            self._deliver(message_id, decoded, wanted, command.redelivery_count)

    def _is_too_many(self) -> bool:
        """Count an entry beyond the size of the queue, and abort the connection at the limit.

        Some are usual, because brokers read entries, while permits count messages.
        """
        self._unasked += 1
        if self._unasked > max(MOST_UNASKED, self._size) and self._connection is not None:
            error = ConnectError(f"{self._topic}: the broker broke the protocol: it sent more messages than permits")
            self._connection.abort(error)
            return True
        return False

    def on_end_of_topic(self) -> None:
        self._held.on_end_of_topic()

    def _ended(self) -> None:
        self.end_of_topic = True
        self._wake(self)

    def on_active_change(self, is_active: bool) -> None:
        self.is_active = is_active

    def on_lost(self, error: PulsarError, owner: BrokerUrls | None = None) -> None:
        """Drop all messages, because the broker sends them again. A reader stores its position as the next start."""
        self._connection = None
        if not self._durable:
            self.start = self._next_start()
            self.last_seen = None
        self._held.clear()
        self._queue.clear()
        self._chunks.clear()
        self._acknowledgements.clear()
        self._owner.lost(error, owner)

    # ---- inside

    def _next_start(self) -> Start | None:
        """Return the next start of a reader, from which the broker sends all chunks of unread messages again."""
        start, seen = self.start, self.last_seen
        ids = [one.message_id() for one in self._queue]
        needed = [MessageId(*message_id.entries[0]) for message_id in ids if message_id.chunks]
        if self._chunks.first is not None:
            needed.append(self._chunks.first)
        if ids:
            return Start.needing(needed, ids[0], inclusive=True)
        if seen is None or (start is not None and start.is_behind(seen)):
            return start
        return Start.needing(needed, MessageId(*seen))

    def _wanted(self, start: Start, entry: tuple[int, int], found: list[Single]) -> list[Single]:
        """Return the messages that are not before the start."""
        if entry != start.message_id.entry and not start.is_behind(entry):
            return found
        return [single for single in found if not start.skips(entry, single[0])]

    def _deliver(self, message_id: MessageId, decoded: Decoded, found: list[Single], redelivery_count: int) -> None:
        if not found:
            self._acknowledge(message_id)
            self._onlooker.nothing(self.last_seen)
            return
        metadata, entry = decoded.metadata, message_id.entry
        size = metadata.num_messages_in_batch if found[0][0] >= 0 else 0
        if size:
            self._acknowledgements.received(entry, size, [index for index, _, _ in found])
        made: list[Message[Any]] = []
        bytes_received = 0
        topic, schema, broker_metadata = self._topic, self._schema, decoded.broker_metadata
        for index, single, data in found:
            own = message_id
            if index != own.batch_index or size != own.batch_size:
                own = received_id(*entry, own.partition, index, size, own.first_chunk, own.chunks)
            bytes_received += len(data)
            made.append(
                Message(
                    topic, own, metadata, single, data, redelivery_count, schema=schema, broker_metadata=broker_metadata
                )
            )
        if self._redelivery.keys and self._redelivery.keys.returns(made[0]):
            self._send(commands.negative_ack(self._consumer_id, (), message_id.entries))
            self._acknowledgements.forget(entry)
            self._free(len(made))
            return
        if redelivery_count and self._redelivery.is_once_too_often(entry, made, redelivery_count):
            self._free(len(made))
            return
        self._counts.messages += len(made)
        self._counts.bytes += bytes_received
        self._queue.extend(made)
        self._wake(self)

    def _acknowledge(self, message_id: MessageId, error: pb.CommandAck.ValidationError | None = None) -> None:
        """Acknowledge an entry, or all chunks of a message, that the application does not receive."""
        self._acknowledge_all([MessageId(*entry, message_id.partition) for entry in message_id.entries], error)

    def _acknowledge_all(
        self, message_ids: Iterable[MessageId], error: pb.CommandAck.ValidationError | None = None
    ) -> None:
        entries = [message_id.to_data() for message_id in message_ids]
        self._send(commands.ack(self._consumer_id, pb.CommandAck.Individual, entries, error))

    def _free(self, count: int) -> None:
        self._flow(self._permits.free(count))

    def _charged(self, command: pb.CommandMessage, entry: bytes, *, is_intact: bool) -> int:
        """Return the permits that the broker counted for an entry that is not decoded.

        The command of a new broker says them (PIP-491). Only metadata that is surely intact may contradict it.
        """
        if not is_intact and 0 < command.message_permits <= INT_MAX:
            return command.message_permits
        try:
            left = _left(command.ack_set, parse_metadata(entry))
        except EntryError:
            left = 1
        return self._agreed(command, left)

    def _agreed(self, command: pb.CommandMessage, left: int) -> int:
        """Return `left`, the permits by the metadata, and log the first command that says another number (PIP-491)."""
        if command.HasField("message_permits") and command.message_permits != left and not self._warned:
            self._warned = True
            logger.warning(
                "entry %d:%d: the broker says %d permits, and the entry has %d messages to deliver: %d go back",
                *(command.message_id.ledgerId, command.message_id.entryId, command.message_permits, left, left),
            )
        return left

    def _flow(self, permits: int) -> None:
        if permits > 0 and self._is_open:
            self._send(commands.flow(self._consumer_id, min(permits, INT_MAX)))

    def _send(self, command: pb.BaseCommand) -> None:
        if self._connection is not None:
            self._connection.send_nowait(command)

    @property
    def _max_message_size(self) -> int:
        return MAX_MESSAGE_SIZE if self._connection is None else self._connection.max_message_size


def _left(ack_set: Sequence[int], metadata: pb.MessageMetadata) -> int:
    """Return the permits that the broker counted for an entry: its unacknowledged messages."""
    size = max(1, metadata.num_messages_in_batch)
    if not ack_set:
        return size
    return min(size, sum((word & 2**64 - 1).bit_count() for word in ack_set))
