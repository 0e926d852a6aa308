"""What has happened on a connection so far: what its rules look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from pulsarium.proto.ack_set import bits_of
from pulsarium.proto.commands import Direction
from pulsarium.proto.entry import messages_in
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from pulsarium.proto.lint.exchanges import Exchange, Matcher
from pulsarium.proto.lint.frames import Conversation, Frame
from pulsarium.proto.lint.ranges import Positions, Ranges

_T = BaseCommand


class Phase(Enum):
    """Of a producer or a consumer, seen from the wire."""

    OPENING = 1
    OPEN = 2
    CLOSED_BY_BROKER = 3
    """Also: refused. What the client had sent before it heard of it is no fault of it."""
    CLOSED_BY_CLIENT = 4
    """And the broker has said so."""


@dataclass(slots=True)
class Producer:
    """opened: the number of the frame that asks for it. named_by_application: not by the broker, or the client."""

    topic: str
    opened: int
    named_by_application: bool = True
    phase: Phase = Phase.OPENING
    last_sequence: int = -1


@dataclass(slots=True)
class Consumer:
    """permits: as the broker counts them, below 0 after a batch that had more messages than were left.
    entries: how many more the broker may send: it decides by permits, but sends by the entry.
    """

    topic: str
    subscription: str
    type: int
    opened: int
    phase: Phase = Phase.OPENING
    permits: int = 0
    entries: int = 0

    @property
    def type_name(self) -> str:
        return CommandSubscribe.SubType.Name(CommandSubscribe.SubType.ValueType(self.type))

    @property
    def shared(self) -> bool:
        return self.type in (CommandSubscribe.Shared, CommandSubscribe.Key_Shared)


@dataclass(slots=True)
class Deliveries:
    """Which entries a subscription's consumers were sent, on all connections of a capture: a client may acknowledge
    on one connection what it was sent on another.

    whole: whether all connections were captured from their opening on. One that was not has subscriptions that nobody
    saw it make.
    """

    whole: bool = True
    _sent: dict[tuple[str, str], Positions] = field(default_factory=dict)

    def of(self, topic: str, subscription: str) -> Positions:
        return self._sent.setdefault((topic, subscription), Positions())


class State:
    """One connection. `apply` each frame after the rules have seen it.

    deliveries: None where no rules are looked at; then nothing is kept that only they need.
    """

    def __init__(self, deliveries: Deliveries | None) -> None:
        self.conversation = Conversation()
        self.matcher = Matcher()
        self.deliveries = deliveries
        self.connects = 0
        self.connected = False
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.answered = Ranges()
        """Ids of requests that have their final answer."""

    def apply(self, frame: Frame) -> list[Exchange]:
        """The exchanges that the frame ends."""
        kind = None if frame.spec is None else frame.spec.type
        done = self.matcher.feed(frame)
        for exchange in done:
            self._ended(exchange)
        if frame.sender is Direction.CLIENT:
            self._asked(kind, frame)
        else:
            self._told(kind, frame)
        return done

    def _asked(self, kind: int | None, frame: Frame) -> None:
        if kind == _T.CONNECT:
            self.connects += 1
        elif kind == _T.PRODUCER and frame.producer_id is not None:
            known = self.producers.get(frame.producer_id)
            if known is None or known.phase is not Phase.OPEN:
                self.producers[frame.producer_id] = Producer(
                    frame.body.topic, frame.number, frame.body.user_provided_producer_name
                )
        elif kind == _T.SUBSCRIBE and frame.consumer_id is not None:
            there = self.consumers.get(frame.consumer_id)
            if there is None or there.phase is not Phase.OPEN:
                body = frame.body
                self.consumers[frame.consumer_id] = Consumer(body.topic, body.subscription, body.subType, frame.number)
        elif kind == _T.SEND and (producer := self.producers.get(frame.producer_id or 0)):
            producer.last_sequence = max(producer.last_sequence, frame.sequence_id or 0)
        elif kind == _T.FLOW and (consumer := self.consumers.get(frame.consumer_id or 0)):
            consumer.permits += frame.body.messagePermits
            consumer.entries = max(consumer.entries, consumer.permits)

    def _told(self, kind: int | None, frame: Frame) -> None:
        if kind == _T.CONNECTED:
            self.connected = True
        elif kind == _T.SEND_ERROR and (producer := self.producers.get(frame.producer_id or 0)):
            producer.last_sequence = min(
                producer.last_sequence, (frame.sequence_id or 0) - 1
            )  # sent again from there on
        elif kind == _T.CLOSE_PRODUCER and (producer := self.producers.get(frame.producer_id or 0)):
            producer.phase = Phase.CLOSED_BY_BROKER
        elif kind == _T.CLOSE_CONSUMER and (consumer := self.consumers.get(frame.consumer_id or 0)):
            consumer.phase = Phase.CLOSED_BY_BROKER
        elif kind == _T.MESSAGE and self.deliveries is not None:
            self._delivered(frame, self.deliveries)

    def _delivered(self, frame: Frame, deliveries: Deliveries) -> None:
        consumer = self.consumers.get(frame.consumer_id or 0)
        if consumer is not None:
            consumer.permits -= messages_of(frame)
            consumer.entries = max(consumer.entries - 1, consumer.permits)
            message_id = frame.body.message_id
            deliveries.of(consumer.topic, consumer.subscription).add((message_id.ledgerId, message_id.entryId))

    def _ended(self, exchange: Exchange) -> None:
        request, answer = exchange.request, exchange.answer
        if answer is None:
            return
        if request.request_id is not None and self.deliveries is not None:
            self.answered.add(request.request_id)
        refused = answer.error is not None
        kind = request.spec.type if request.spec else None
        if kind in (_T.PRODUCER, _T.SUBSCRIBE):
            made = self._one_of(kind, request)
            if made is not None and made.opened == request.number and made.phase is Phase.OPENING:
                made.phase = Phase.CLOSED_BY_BROKER if refused else Phase.OPEN
        elif kind in (_T.CLOSE_PRODUCER, _T.CLOSE_CONSUMER, _T.UNSUBSCRIBE) and not refused:
            made = self._one_of(_T.PRODUCER if kind == _T.CLOSE_PRODUCER else _T.SUBSCRIBE, request)
            if made is not None and made.opened < request.number:  # not one that was opened since
                made.phase = Phase.CLOSED_BY_CLIENT

    def _one_of(self, kind: int, frame: Frame) -> Producer | Consumer | None:
        if kind == _T.PRODUCER:
            return self.producers.get(frame.producer_id or 0)
        return self.consumers.get(frame.consumer_id or 0)


def messages_of(frame: Frame) -> int:
    """What a MESSAGE costs in permits."""
    if frame.body.ack_set:
        return bits_of(frame.body.ack_set).bit_count()
    return messages_in(frame.entry) or 1
