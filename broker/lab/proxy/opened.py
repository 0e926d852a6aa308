"""The producers and consumers of a proxied connection, as its frames name them."""

from __future__ import annotations

from dataclasses import dataclass

from pulsarium.proto.commands import Direction
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

_T = pb.BaseCommand
OF_CLIENT = frozenset((_T.CONNECT, _T.PRODUCER, _T.SUBSCRIBE, _T.CLOSE_PRODUCER, _T.CLOSE_CONSUMER))
OF_BROKER = frozenset((_T.CONNECTED, _T.PRODUCER_SUCCESS, _T.CLOSE_PRODUCER, _T.CLOSE_CONSUMER))


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
    """A consumer."""

    name: str
    subscription: ProxiedSubscription


class OpenedByClient:
    """Remember what a client has told about itself, and what it has opened."""

    def __init__(self) -> None:
        self.client_version = ""
        self.producers: dict[int, ProxiedProducer] = {}
        self.consumers: dict[int, ProxiedConsumer] = {}
        self._nameless: dict[int, ProxiedProducer] = {}  # by the id of the request that the broker answers with a name

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
                producer = self._nameless.pop(command.producer_success.request_id, None)
                if producer is not None:
                    producer.name = text_of(command.producer_success.producer_name)
            case _T.CLOSE_PRODUCER:
                self.producers.pop(command.close_producer.producer_id, None)
            case _T.CLOSE_CONSUMER:
                self.consumers.pop(command.close_consumer.consumer_id, None)

    def _produces(self, asked: pb.CommandProducer) -> None:
        topic = _topic(asked.topic)
        if topic is not None:
            producer = self.producers[asked.producer_id] = ProxiedProducer(text_of(asked.producer_name), topic)
            self._nameless[asked.request_id] = producer
            if len(self._nameless) > len(self.producers):  # the broker refused earlier ones
                del self._nameless[next(iter(self._nameless))]

    def _subscribes(self, asked: pb.CommandSubscribe) -> None:
        topic = _topic(asked.topic)
        if topic is not None:
            subscription = ProxiedSubscription(text_of(asked.subscription), topic)
            self.consumers[asked.consumer_id] = ProxiedConsumer(text_of(asked.consumer_name), subscription)


def _topic(named: str | bytes) -> ProxiedTopic | None:
    try:
        return ProxiedTopic(TopicName.parse(text_of(named)))
    except InvalidTopicName:
        return None
