"""The producers and consumers of a proxied connection, as its frames name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pulsarium.proto.commands import Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

_T = pb.BaseCommand
_Each = TypeVar("_Each")
OF_CLIENT = frozenset((_T.CONNECT, _T.PRODUCER, _T.SUBSCRIBE, _T.CLOSE_PRODUCER, _T.CLOSE_CONSUMER))
OF_BROKER = frozenset((_T.CONNECTED, _T.PRODUCER_SUCCESS, _T.SUCCESS, _T.ERROR, _T.CLOSE_PRODUCER, _T.CLOSE_CONSUMER))


@dataclass(frozen=True)
class ProxiedTopic:
    """A topic that a client named."""

    name: TopicName


@dataclass
class ProxiedProducer:
    """A producer. Its name is "" until the broker has given one."""

    name: str
    topic: ProxiedTopic


@dataclass(frozen=True)
class ProxiedSubscription:
    """A subscription that a client named."""

    name: str
    topic: ProxiedTopic


@dataclass(frozen=True)
class ProxiedConsumer:
    """A consumer. Its type is a `CommandSubscribe.SubType`."""

    name: str
    subscription: ProxiedSubscription
    type: int


class _Opened(dict[int, _Each]):
    """Producers or consumers by their ids: those that the broker has accepted, and those that it may still refuse."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[int, tuple[int, _Each, _Each | None]] = {}  # by request: the id, what is new, what was there

    def ask(self, request: int, number: int, new: _Each) -> None:
        """Open `new` until the broker refuses the request."""
        self._asked[request] = number, new, self.get(number)
        self[number] = new
        if len(self._asked) > len(self):  # a broker that answers is never so far behind
            del self._asked[next(iter(self._asked))]

    def asked(self, request: int) -> _Each | None:
        """Return what a request without an answer opens, or None."""
        return self._asked[request][1] if request in self._asked else None

    def accept(self, request: int) -> None:
        """Note that the broker has accepted a request."""
        self._asked.pop(request, None)

    def refuse(self, request: int) -> None:
        """Forget what a request opened, and remember what was there before."""
        number, new, former = self._asked.pop(request, (0, None, None))
        if new is not None and self.get(number) is new:
            del self[number]
            if former is not None:
                self[number] = former


class OpenedByClient:
    """Remember what a client has told about itself, and what it has opened."""

    def __init__(self) -> None:
        self.client_version = ""
        self.producers = _Opened[ProxiedProducer]()
        self.consumers = _Opened[ProxiedConsumer]()

    def note(self, sender: Direction, command: pb.BaseCommand) -> None:
        """Note a command of OF_CLIENT or of OF_BROKER."""
        match command.type:
            case _T.CONNECT:
                self.client_version = text_of(command.connect.client_version)
            case _T.PRODUCER:
                self._produces(command.producer)
            case _T.SUBSCRIBE:
                self._subscribes(command.subscribe)
            case _T.PRODUCER_SUCCESS:
                self._produced(command.producer_success)
            case _T.SUCCESS:
                self.consumers.accept(command.success.request_id)
            case _T.ERROR:
                self.producers.refuse(command.error.request_id)
                self.consumers.refuse(command.error.request_id)
            case _T.CLOSE_PRODUCER:
                self.producers.pop(command.close_producer.producer_id, None)
            case _T.CLOSE_CONSUMER:
                self.consumers.pop(command.close_consumer.consumer_id, None)

    def _produces(self, asked: pb.CommandProducer) -> None:
        topic = _topic(asked.topic)
        if topic is not None:
            producer = ProxiedProducer(text_of(asked.producer_name), topic)
            self.producers.ask(asked.request_id, asked.producer_id, producer)

    def _produced(self, answer: pb.CommandProducerSuccess) -> None:
        producer = self.producers.asked(answer.request_id)
        if producer is not None:
            producer.name = text_of(answer.producer_name)
        if answer.producer_ready:
            self.producers.accept(answer.request_id)

    def _subscribes(self, asked: pb.CommandSubscribe) -> None:
        topic = _topic(asked.topic)
        if topic is not None:
            subscription = ProxiedSubscription(text_of(asked.subscription), topic)
            consumer = ProxiedConsumer(text_of(asked.consumer_name), subscription, asked.subType)
            self.consumers.ask(asked.request_id, asked.consumer_id, consumer)


def _topic(named: str | bytes) -> ProxiedTopic | None:
    try:
        return ProxiedTopic(TopicName.parse(text_of(named)))
    except InvalidTopicName:
        return None
