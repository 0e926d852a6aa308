"""Publish messages that were redelivered too often to the dead letter topic (PIP-22)."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.web.websocket.decoding import ReceivedMessage
from pulsarium.broker.web.websocket.link import BrokerFailure, BrokerLinks
from pulsarium.broker.web.websocket.options import ConsumerOptions, ProducerOptions
from pulsarium.broker.web.websocket.publisher import SocketPublisher
from pulsarium.broker.web.websocket.topic_producer import OutgoingMessage
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId
from pulsarium.proto.topic_name import TopicName

Published = Callable[[BrokerFailure | None], None]


class LetterPublisher:
    """A publisher to the dead letter topic, opened with the first dead letter."""

    def __init__(self, links: BrokerLinks, subscription: str, options: ConsumerOptions) -> None:
        self._links = links
        self._subscription = subscription
        self._topic = options.dead_letter_topic
        self._publisher: SocketPublisher | None = None
        self._ready = False
        self._waiting: list[tuple[OutgoingMessage, Published]] = []

    def publish(self, message: ReceivedMessage, topic: str, published: Published) -> None:
        """Publish the content of a message, with the message's origin in the properties."""

        def sent(answer: MessageId | BrokerFailure) -> None:
            published(answer if isinstance(answer, BrokerFailure) else None)

        outgoing = OutgoingMessage(self._metadata(message, topic), message.payload, sent)
        if self._publisher is not None and self._ready:
            self._publisher.send(outgoing)
            return
        self._waiting.append((outgoing, published))
        if self._publisher is None:
            self._open()

    def _open(self) -> None:
        try:
            topic = TopicName.parse(self._topic)
        except InvalidTopicName as error:
            self._opened(BrokerFailure(pb.InvalidTopicName, str(error)))
            return
        self._publisher = SocketPublisher(self._links, topic, ProducerOptions())
        self._publisher.open(self._opened)

    def _opened(self, failed: BrokerFailure | None) -> None:
        waiting, self._waiting = self._waiting, []
        if failed is not None or self._publisher is None:
            self._publisher = None
            for _, published in waiting:
                published(failed)
            return
        self._ready = True
        for outgoing, _ in waiting:
            self._publisher.send(outgoing)

    def _metadata(self, message: ReceivedMessage, topic: str) -> pb.MessageMetadata:
        origin = f"{message.id.ledger_id}:{message.id.entry_id}:{message.id.partition}"
        properties = {
            "REAL_TOPIC": topic,
            "REAL_SUBSCRIPTION": self._subscription,
            "ORIGIN_MESSAGE_ID": origin,
            "ORIGIN_MESSAGE_IDY_TIME": origin,  # this name is Java's old misspelling
            **message.properties,
        }
        metadata = pb.MessageMetadata(publish_time=self._links.broker.clock_of(TopicName.parse(topic)).now_ms())
        for name, value in properties.items():
            metadata.properties.add(key=name, value=value)
        if message.key is not None:
            metadata.partition_key = message.key
        if message.event_time:
            metadata.event_time = message.event_time
        return metadata

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()
