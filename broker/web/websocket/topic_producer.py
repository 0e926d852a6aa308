"""The producer of one topic for a WebSocket: its batches, its messages without a receipt, and its retries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pulsarium.broker.clock import Timer
from pulsarium.broker.web.websocket.link import BrokerFailure, BrokerLink, BrokerLinks
from pulsarium.broker.web.websocket.options import ProducerOptions
from pulsarium.broker.web.websocket.retry import Retry, is_final
from pulsarium.proto import batch, entry
from pulsarium.proto.compression import compress
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId
from pulsarium.proto.numbers import unsigned
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

BATCH_BYTES: Final = 128 << 10
Sent = Callable[[MessageId | BrokerFailure], None]
Opened = Callable[[BrokerFailure | None], None]
QUEUE_FULL: Final = "Producer send queue is full"


class OutgoingMessage(NamedTuple):
    """A message to publish: its metadata without name and sequence id, and its payload."""

    metadata: pb.MessageMetadata
    payload: bytes
    sent: Sent


@dataclass(slots=True)
class Unanswered:
    """An entry without a receipt."""

    sequence_id: int
    entry: bytes
    batched: bool
    dones: list[Sent]
    at: float
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.dones)


class TopicProducer:
    """A producer of one topic. It opens again after an unload, and sends again what has no receipt."""

    def __init__(self, links: BrokerLinks, topic: TopicName, options: ProducerOptions) -> None:
        self._links = links
        self._clock = links.broker.clock_of(topic)
        self._options = options
        self.topic = topic
        self.name = options.name
        self.waiting_bytes = 0  # of messages without a receipt
        self._sequence_id = -1 if options.initial_sequence_id is None else options.initial_sequence_id
        self._link: BrokerLink | None = None  # while the producer is open
        self._number = 0
        self._opened: Opened | None = None  # until the first answer
        self._failed: BrokerFailure | None = None  # the refusal that no retry overcomes
        self._retry = Retry(self._clock.machine, self._open)
        self._batch: list[OutgoingMessage] = []
        self._batch_bytes = 0
        self._batch_timer: Timer | None = None
        self._unanswered: deque[Unanswered] = deque()
        self._timeout: Timer | None = None

    @property
    def unanswered(self) -> int:
        """Return how many messages have no receipt."""
        return len(self._batch) + sum(each.count for each in self._unanswered)

    @property
    def has_batch(self) -> bool:
        """Return whether messages wait for a batch."""
        return bool(self._batch)

    def open(self, opened: Opened) -> None:
        """Create the producer. `opened` hears the first answer."""
        self._opened = opened
        self._open()

    def _open(self) -> None:
        self._links.look_up(str(self.topic), self._found)

    def _found(self, link: BrokerLink | BrokerFailure) -> None:
        if isinstance(link, BrokerFailure):
            self._refused(link)
            return
        number = self._number = link.number()
        request = link.number()
        link.producers[number] = self
        asked = pb.CommandProducer(
            topic=str(self.topic),
            producer_id=number,
            request_id=request,
            encrypted=bool(self._options.keys),
            user_provided_producer_name=bool(self._options.name),
        )
        if self.name:
            asked.producer_name = self.name

        def answered(answer: pb.BaseCommand | BrokerFailure) -> None:
            if isinstance(answer, BrokerFailure):
                link.producers.pop(number, None)
                self._refused(answer)
                return
            success = answer.producer_success
            self.name = text_of(success.producer_name)
            if self._options.initial_sequence_id is None and not self._unanswered:
                self._sequence_id = max(self._sequence_id, success.last_sequence_id)
            self._link = link
            self._retry.succeeded()
            for each in self._unanswered:
                self._send(each)
            self._tell(None)

        link.request(pb.BaseCommand(type=pb.BaseCommand.PRODUCER, producer=asked), request, answered)

    def _refused(self, failed: BrokerFailure) -> None:
        if self._links.closed:
            return
        if self._opened is None and not is_final(failed):
            self._retry.later()
            return
        self._failed = failed
        self._fail_all(failed)
        self._tell(failed)

    def _tell(self, failed: BrokerFailure | None) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened(failed)

    def send(self, message: OutgoingMessage) -> None:
        """Publish a message, perhaps in a batch. `message.sent` hears the message's id, or an error."""
        options, size = self._options, len(message.payload)
        if self._failed is not None:
            message.sent(self._failed)
            return
        if 0 < options.most_pending <= self.unanswered:
            message.sent(BrokerFailure(pb.UnknownError, QUEUE_FULL))
            return
        self.waiting_bytes += size
        if not options.batching or message.metadata.HasField("deliver_at_time"):
            self.flush()
            self._add(message.metadata, message.payload, [message.sent], batched=False)
            return
        if self._batch and self._batch_bytes + size > BATCH_BYTES:
            self.flush()
        self._batch.append(message)
        self._batch_bytes += size
        if len(self._batch) == 1:
            self._batch_timer = self._clock.call_later(options.batch_delay, self.flush)
        if len(self._batch) >= options.batch_messages > 0 or self._batch_bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Publish the batch that waits."""
        if self._batch_timer is not None:
            self._batch_timer.cancel()
            self._batch_timer = None
        messages, self._batch, self._batch_bytes = self._batch, [], 0
        if not messages:
            return
        first = messages[0].metadata
        metadata = pb.MessageMetadata(
            publish_time=first.publish_time, num_messages_in_batch=len(messages), replicate_to=first.replicate_to
        )
        payload = batch.pack((_single(each), each.payload) for each in messages)
        self._add(metadata, payload, [each.sent for each in messages], batched=True)

    def _add(self, metadata: pb.MessageMetadata, payload: bytes, dones: list[Sent], *, batched: bool) -> None:
        self._sequence_id += 1
        options = self._options
        metadata.producer_name = self.name
        metadata.sequence_id = unsigned(self._sequence_id)
        if batched:
            self._sequence_id += len(dones) - 1
            metadata.highest_sequence_id = unsigned(self._sequence_id)
        if not metadata.HasField("uncompressed_size"):
            metadata.uncompressed_size = len(payload)
        if options.compression != pb.NONE:
            payload = compress(options.compression, payload)
            metadata.compression = options.compression
        for key in options.keys:
            added = metadata.encryption_keys.add(key=key.name, value=key.value)
            for name, value in key.metadata.items():
                added.metadata.add(key=name, value=value)
        made = entry.build(metadata, payload)
        unanswered = Unanswered(metadata.sequence_id, made, batched, dones, self._clock.monotonic())
        most = self._links.broker.config.maxMessageSize
        if len(payload) > most:
            text = f"The producer {self.name} of the topic {self.topic} sends a message with {len(payload)} bytes that"
            self._answer(unanswered, BrokerFailure(pb.UnknownError, f"{text} exceeds {most} bytes"))
            return
        self._unanswered.append(unanswered)
        if self._timeout is None and options.send_timeout > 0:
            self._timeout = self._clock.call_later(options.send_timeout, self._timed_out)
        self._send(unanswered)

    def _send(self, unanswered: Unanswered) -> None:
        if self._link is None:
            return
        sent = pb.CommandSend(producer_id=self._number, sequence_id=unanswered.sequence_id)
        if unanswered.batched:
            sent.num_messages = unanswered.count
            sent.highest_sequence_id = unsigned(unanswered.sequence_id + unanswered.count - 1)
        self._link.send(pb.BaseCommand(type=pb.BaseCommand.SEND, send=sent), unanswered.entry)

    def _timed_out(self) -> None:
        self._timeout = None
        limit, now = self._options.send_timeout, self._clock.monotonic()
        text = f"The producer {self.name} can not send message to the topic {self.topic} within given timeout"
        while self._unanswered and self._unanswered[0].at + limit <= now:
            self._answer(self._unanswered.popleft(), BrokerFailure(pb.UnknownError, text))
        if self._unanswered:
            self._timeout = self._clock.call_later(self._unanswered[0].at + limit - now, self._timed_out)

    def received(self, command: pb.BaseCommand, trailing: bytes) -> None:
        """Handle a receipt, an error or the end of the producer."""
        if command.type == pb.BaseCommand.SEND_RECEIPT:
            receipt = command.send_receipt
            answer: MessageId | BrokerFailure = MessageId(
                receipt.message_id.ledgerId, receipt.message_id.entryId, self.topic.partition_index
            )
            self._answered(receipt.sequence_id, answer)
        elif command.type == pb.BaseCommand.SEND_ERROR:
            error = command.send_error
            self._answered(error.sequence_id, BrokerFailure(error.error, text_of(error.message)))
        else:
            self.lost()

    def lost(self) -> None:
        """Open the producer again, because the broker closed it or its connection ended."""
        if self._link is not None:
            self._link.producers.pop(self._number, None)
            self._link = None
        self._retry.later()

    def close(self) -> None:
        """Stop all timers, and forget messages without a receipt."""
        self._retry.stop()
        for timer in (self._timeout, self._batch_timer):
            if timer is not None:
                timer.cancel()
        self._batch.clear()
        self._unanswered.clear()

    def _answered(self, sequence_id: int, answer: MessageId | BrokerFailure) -> None:
        """Pass the answer to the first entry that it fits. Answers to entries that timed out fit none."""
        for each in self._unanswered:
            if sequence_id in (each.sequence_id, unsigned(each.sequence_id + each.count - 1)):
                self._unanswered.remove(each)
                self._answer(each, answer)
                return

    def _answer(self, unanswered: Unanswered, answer: MessageId | BrokerFailure) -> None:
        self.waiting_bytes -= len(unanswered.entry)
        if not self._unanswered and not self._batch:
            self.waiting_bytes = 0
        for index, done in enumerate(unanswered.dones):
            if unanswered.batched and isinstance(answer, MessageId):
                done(MessageId(answer.ledger_id, answer.entry_id, answer.partition, index))
            else:
                done(answer)

    def _fail_all(self, failed: BrokerFailure) -> None:
        self.flush()
        while self._unanswered:
            self._answer(self._unanswered.popleft(), failed)


def _single(message: OutgoingMessage) -> pb.SingleMessageMetadata:
    """Return the metadata of a message inside a batch."""
    metadata = message.metadata
    single = pb.SingleMessageMetadata(payload_size=len(message.payload), properties=metadata.properties)
    if metadata.HasField("partition_key"):
        single.partition_key = metadata.partition_key
    if metadata.HasField("event_time"):
        single.event_time = metadata.event_time
    return single
