"""State of a connection, by which the rules judge its next frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyroaring import BitMap64

from pulsarium.capture.lint.exchanges import LintedExchange, Matcher
from pulsarium.capture.lint.frames import Conversation, Frame, SentEntry
from pulsarium.capture.lint.members import Bounded, Chunked, Consumer, Phase, Producer
from pulsarium.capture.lint.scalable import Sessions
from pulsarium.capture.lint.shared import Shared, position_of, transaction_of
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import messages_in
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandAck
from pulsarium.proto.message_id import bits_of

_T = BaseCommand
_MOST_MEMBERS = 20_000
"""Most producers, and most consumers, that are kept. The oldest are forgotten first."""
_MOST_CONTAINERS = 10_000
"""Most containers of a bitmap. A container has up to 65,536 adjacent ids, or a few scattered ones."""
_LOOK_EVERY = 1024


class LintedConnection:
    """State of one connection. `apply` gets each frame after the rules.

    `shared` is None when no rules apply. Then state that only rules need is not kept.
    """

    def __init__(self, shared: Shared | None) -> None:
        self.conversation = Conversation()
        self.matcher = Matcher()
        self.shared = shared
        self.connects = 0
        self.connected = False
        self.producers: Bounded[int, Producer] = Bounded(_MOST_MEMBERS)
        self.consumers: Bounded[int, Consumer] = Bounded(_MOST_MEMBERS)
        self.partitions: Bounded[str, int] = Bounded(_MOST_MEMBERS)
        """Numbers of partitions by topic, from the broker's last answer."""
        self.coordinators: set[int] = set()
        """Ids of transaction coordinators that this connection has connected to."""
        self.answered = BitMap64()
        """Ids of requests with their final answer. When many ids are scattered, the lower ones are forgotten."""
        self.scalable = Sessions(None if shared is None else shared.scalable)
        self._sent: SentEntry | None = None

    def sent(self, frame: Frame) -> SentEntry:
        """Return the entry of a SEND, parsed once for all rules."""
        if self._sent is None or self._sent.frame is not frame:
            self._sent = SentEntry(frame)
        return self._sent

    def producer(self, frame: Frame) -> Producer | None:
        """Return the producer that a command names, or None."""
        return self.producers.get(frame.producer_id)

    def consumer(self, frame: Frame) -> Consumer | None:
        """Return the consumer that a command names, or None."""
        return self.consumers.get(frame.consumer_id)

    def apply(self, frame: Frame) -> list[LintedExchange]:
        """Update the state, and return the exchanges that the frame ends."""
        done = self.matcher.feed(frame)
        for exchange in done:
            self._ended(exchange)
        if frame.spec is not None:
            react = _REACTIONS.get((frame.spec.type, frame.sender))
            if react is not None:
                react(self, frame)
            self.scalable.apply(frame, self.sent, self._name)
        return done

    def _name(self, frame: Frame) -> str:
        """Return the name of an open producer, or "": a closed one drops what it gets."""
        producer = self.producer(frame)
        return producer.name if producer is not None and producer.phase is Phase.OPEN else ""

    # ---- commands of the client

    def _connect(self, frame: Frame) -> None:
        self.connects += 1

    def _produce(self, frame: Frame) -> None:
        known, body = self.producer(frame), frame.body
        if frame.producer_id is None or (known is not None and known.phase is Phase.OPEN):
            return
        made = Producer(body.topic, frame.number, body.user_provided_producer_name, epoch=body.epoch)
        if known is not None and known.phase is not Phase.CLOSED_BY_CLIENT and not known.closing:
            made.name, made.topic_epoch = known.name, known.topic_epoch
        self.producers[frame.producer_id] = made

    def _subscribe(self, frame: Frame) -> None:
        known, body = self.consumer(frame), frame.body
        if frame.consumer_id is None or (known is not None and known.phase is Phase.OPEN):
            return
        made = Consumer(body.topic, body.subscription, body.subType, frame.number, epoch=body.consumer_epoch)
        self.consumers[frame.consumer_id] = made

    def _send(self, frame: Frame) -> None:
        producer = self.producer(frame)
        if producer is None:
            return
        producer.last_sequence = max(producer.last_sequence, frame.sequence_id or 0)
        metadata = self.sent(frame).metadata if self.shared is not None and frame.body.is_chunk else None
        if metadata is not None:
            _chunk(producer, metadata, len(self.sent(frame).payload))

    def _flow(self, frame: Frame) -> None:
        consumer = self.consumer(frame)
        if consumer is not None:
            consumer.permits += frame.body.messagePermits
            consumer.entries = max(consumer.entries, consumer.permits)

    def _ack(self, frame: Frame) -> None:
        consumer, body = self.consumer(frame), frame.body
        if consumer is None or self.shared is None:
            return
        if transaction_of(body) is not None:
            return  # the transaction may be aborted
        subscription = self.shared.of(consumer.topic, consumer.subscription)
        if body.ack_type == CommandAck.Cumulative:
            consumer.cumulative = max([consumer.cumulative, *map(position_of, body.message_id)])
            subscription.acknowledge_through(consumer.cumulative)
        else:
            for message_id in body.message_id:
                subscription.acknowledge(position_of(message_id), message_id.ack_set)

    def _redeliver(self, frame: Frame) -> None:
        consumer = self.consumer(frame)
        if consumer is not None:
            consumer.epoch = max(consumer.epoch, frame.body.consumer_epoch)
            consumer.cumulative = (-1, -1)

    def _seek(self, frame: Frame) -> None:
        consumer = self.consumer(frame)
        if consumer is not None:
            consumer.seeking = True
            consumer.cumulative = (-1, -1)

    def _closes_producer(self, frame: Frame) -> None:
        producer = self.producer(frame)
        if producer is not None:
            producer.closing = True

    def _ends_consumer(self, frame: Frame) -> None:
        consumer = self.consumer(frame)
        if consumer is not None:
            consumer.ending = frame.name

    # ---- commands of the broker

    def _greeted(self, frame: Frame) -> None:
        self.connected = True

    def _send_error(self, frame: Frame) -> None:
        producer = self.producer(frame)
        if producer is not None:  # the client resends from this message on
            producer.last_sequence = min(producer.last_sequence, (frame.sequence_id or 0) - 1)
            producer.chunked = Producer("", 0).chunked

    def _producer_closed(self, frame: Frame) -> None:
        producer = self.producer(frame)
        if producer is not None:
            producer.phase, producer.closed_ns = Phase.CLOSED_BY_BROKER, frame.record.monotonic_ns

    def _consumer_closed(self, frame: Frame) -> None:
        consumer = self.consumer(frame)
        if consumer is not None:
            consumer.phase, consumer.closed_ns = Phase.CLOSED_BY_BROKER, frame.record.monotonic_ns

    def _delivered(self, frame: Frame) -> None:
        consumer = self.consumer(frame)
        if consumer is not None and self.shared is not None:
            consumer.permits -= messages_of(frame)
            consumer.entries = max(consumer.entries - 1, consumer.permits)
            subscription = self.shared.of(consumer.topic, consumer.subscription)
            subscription.deliver(position_of(frame.body.message_id), frame.entry, whole=frame.whole)

    def _partitioned(self, frame: Frame) -> None:
        if frame.topic is not None:
            if frame.error is None and frame.body.partitions > 0:
                self.partitions[frame.topic] = frame.body.partitions
            else:
                self.partitions.pop(frame.topic)

    # ---- ends of exchanges

    def _answered(self, request_id: int) -> None:
        ids = self.answered
        ids.add(request_id)
        if len(ids) % _LOOK_EVERY == 0 and ids.get_statistics()["n_containers"] > _MOST_CONTAINERS:
            ids.remove_range(0, ids[len(ids) // 2])

    def _ended(self, exchange: LintedExchange) -> None:
        request, answer = exchange.request, exchange.answer
        if answer is None:
            return
        if request.request_id is not None and self.shared is not None:
            self._answered(request.request_id)
        kind = request.spec.type if request.spec else None
        refused = answer.error is not None
        if kind in (_T.PRODUCER, _T.SUBSCRIBE):
            self._opened(kind, exchange)
        elif kind in (_T.CLOSE_PRODUCER, _T.CLOSE_CONSUMER, _T.UNSUBSCRIBE):
            self._closed(kind, request, refused)
        elif kind == _T.SEEK and (consumer := self.consumer(request)) is not None:
            consumer.seeking = False
        elif request.spec is not None and answer.spec is not None and answer.spec.type != request.spec.reply:
            return
        elif not refused and kind is not None and self.shared is not None:
            self._transacted(kind, request, answer, self.shared)

    def _opened(self, kind: int, exchange: LintedExchange) -> None:
        request, answer = exchange.request, exchange.answer
        made = self.producer(request) if kind == _T.PRODUCER else self.consumer(request)
        if made is None or answer is None or made.opened != request.number or made.phase is not Phase.OPENING:
            return
        if answer.error is not None:
            made.phase, made.closed_ns = Phase.CLOSED_BY_BROKER, answer.record.monotonic_ns
            return
        made.phase = Phase.OPEN
        if isinstance(made, Producer) and answer.name == "PRODUCER_SUCCESS":
            made.was_open = True
            made.name = answer.body.producer_name
            made.topic_epoch = answer.body.topic_epoch if answer.body.HasField("topic_epoch") else None

    def _closed(self, kind: int, request: Frame, refused: bool) -> None:
        made = self.producer(request) if kind == _T.CLOSE_PRODUCER else self.consumer(request)
        if made is None or made.opened > request.number:  # the id was opened again since
            return
        if not refused:
            made.phase = Phase.CLOSED_BY_CLIENT
        elif isinstance(made, Producer):
            made.closing = False
        else:
            made.ending = ""

    def _transacted(self, kind: int, request: Frame, answer: Frame, shared: Shared) -> None:
        if kind == _T.TC_CLIENT_CONNECT_REQUEST:
            self.coordinators.add(request.body.tc_id)
        elif kind == _T.NEW_TXN and (given := transaction_of(answer.body)) is not None:
            shared.transactions.give(given)
        elif kind == _T.END_TXN and (ended := transaction_of(request.body)) is not None:
            shared.transactions.end(ended)


def _chunk(producer: Producer, metadata: Any, size: int) -> None:
    """Record a chunk, and forget its message after the last chunk."""
    uuid, chunk = metadata.uuid, metadata.chunk_id
    before = producer.chunked.get(uuid)
    if chunk >= metadata.num_chunks_from_msg - 1:
        producer.chunked.pop(uuid)
        return
    so_far = size if chunk == 0 else None
    if before is not None and before.size is not None and chunk == before.chunk + 1:
        so_far = before.size + size
    producer.chunked[uuid] = Chunked(chunk, metadata.num_chunks_from_msg, metadata.total_chunk_msg_size, so_far)


def messages_of(frame: Frame) -> int:
    """Return the number of permits that a MESSAGE uses. A broker with PIP-491 says it."""
    if frame.body.message_permits:
        return int(frame.body.message_permits)
    if frame.body.ack_set:
        return bits_of(frame.body.ack_set).bit_count()
    return messages_in(frame.entry) or 1


_CLIENT, _BROKER = Direction.CLIENT, Direction.BROKER
_REACTIONS: dict[tuple[int, Direction], Callable[[LintedConnection, Frame], None]] = {
    (_T.CONNECT, _CLIENT): LintedConnection._connect,
    (_T.PRODUCER, _CLIENT): LintedConnection._produce,
    (_T.SUBSCRIBE, _CLIENT): LintedConnection._subscribe,
    (_T.SEND, _CLIENT): LintedConnection._send,
    (_T.FLOW, _CLIENT): LintedConnection._flow,
    (_T.ACK, _CLIENT): LintedConnection._ack,
    (_T.REDELIVER_UNACKNOWLEDGED_MESSAGES, _CLIENT): LintedConnection._redeliver,
    (_T.SEEK, _CLIENT): LintedConnection._seek,
    (_T.CLOSE_PRODUCER, _CLIENT): LintedConnection._closes_producer,
    (_T.CLOSE_CONSUMER, _CLIENT): LintedConnection._ends_consumer,
    (_T.UNSUBSCRIBE, _CLIENT): LintedConnection._ends_consumer,
    (_T.CONNECTED, _BROKER): LintedConnection._greeted,
    (_T.SEND_ERROR, _BROKER): LintedConnection._send_error,
    (_T.CLOSE_PRODUCER, _BROKER): LintedConnection._producer_closed,
    (_T.CLOSE_CONSUMER, _BROKER): LintedConnection._consumer_closed,
    (_T.MESSAGE, _BROKER): LintedConnection._delivered,
    (_T.PARTITIONED_METADATA_RESPONSE, _BROKER): LintedConnection._partitioned,
}
