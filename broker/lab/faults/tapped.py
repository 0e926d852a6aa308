"""A frame on its way, as rules and predicates see it: whose it is, and what it is about; who is on its connection."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from pulsarium.proto.commands import CommandSpec, Direction, parse
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.consumer import Consumer
    from pulsarium.broker.model.topic.producers import Producer
    from pulsarium.broker.session.session import Session

_T = pb.BaseCommand
OPENED = {_T.SUCCESS, _T.PRODUCER_SUCCESS}
SPARE = 100  # of the gone
_OF_PRODUCERS = {_T.SEND, _T.SEND_RECEIPT, _T.SEND_ERROR, _T.CLOSE_PRODUCER}


class TappedFrame:
    """One frame. What it does not name itself is found by its producer or consumer."""

    def __init__(self, session: Session, present: Present, sender: Direction, data: bytes) -> None:
        """`data`: the frame from its length word on. Raises CommandError for one that holds no command."""
        start = 8 + int.from_bytes(data[4:8], "big")
        self.session = session
        self.sender = sender
        self.data = data
        self.base = pb.BaseCommand()
        self.entry = data[start:]
        """What follows the command: of SEND and MESSAGE the entry."""
        self.spec: CommandSpec = parse(data[8:start], self.base, self.entry)
        self.body: Any = getattr(self.base, self.spec.field)
        """The command's own message (CommandSend ...)."""
        self._present = present

    @property
    def name(self) -> str:
        """The command's: SEND, ACK ..."""
        return self.spec.name

    @property
    def client_version(self) -> str:
        """What the client calls itself; of CONNECT what it is about to say."""
        connecting = self.spec.type == _T.CONNECT
        return text_of(self.body.client_version) if connecting else self.session.client_version

    @property
    def topic(self) -> TopicName | str:
        """The topic it is about; "" if it is about none, or an answer that does not say."""
        named = self._text("topic")
        if self.spec.type == _T.ADD_PARTITION_TO_TXN and self.body.partitions:
            named = text_of(self.body.partitions[0])
        if self._of_transaction is not None:
            named = text_of(self._of_transaction.topic)
        if named:
            return _topic_name(named)
        if self._producer is not None:
            return self._producer.topic.name
        return "" if self._consumer is None else self._consumer.subscription.topic.name

    @property
    def subscription(self) -> str:
        """The name of its subscription, or ""."""
        if self._of_transaction is not None:
            return text_of(self._of_transaction.subscription)
        known = "" if self._consumer is None else self._consumer.subscription.name
        return self._text("subscription") or known

    @property
    def producer(self) -> str:
        """The name of its producer, or ""."""
        return self._text("producer_name") or ("" if self._producer is None else self._producer.name)

    @property
    def consumer(self) -> str:
        """The name of its consumer, or ""."""
        return self._text("consumer_name") or ("" if self._consumer is None else self._consumer.name)

    def _text(self, field: str) -> str:
        """A field of the command, "" if it has none of this name that is a text."""
        value = getattr(self.body, field, "")
        return text_of(value) if isinstance(value, str | bytes) else ""

    @cached_property
    def _of_transaction(self) -> pb.Subscription | None:
        """Topic and subscription of what a transaction acknowledges: the first, where there are several."""
        if self.spec.type == _T.END_TXN_ON_SUBSCRIPTION:
            ended: pb.Subscription = self.body.subscription
            return ended
        if self.spec.type == _T.ADD_SUBSCRIPTION_TO_TXN and self.body.subscription:
            added: pb.Subscription = self.body.subscription[0]
            return added
        return None

    @cached_property
    def _producer(self) -> Producer | None:
        if self.spec.type in _OF_PRODUCERS:
            return self._present.producer(self.body.producer_id)
        migrated = self.spec.type == _T.TOPIC_MIGRATED and self.body.resource_type == pb.CommandTopicMigrated.Producer
        return self._present.producer(self.body.resource_id) if migrated else None

    @cached_property
    def _consumer(self) -> Consumer | None:
        if "consumer_id" in self.body.DESCRIPTOR.fields_by_name:
            return self._present.consumer(self.body.consumer_id)
        migrated = self.spec.type == _T.TOPIC_MIGRATED and self.body.resource_type == pb.CommandTopicMigrated.Consumer
        return self._present.consumer(self.body.resource_id) if migrated else None


def _topic_name(text: str) -> TopicName | str:
    try:
        return TopicName.parse(text)
    except InvalidTopicName:
        return text


class Present:
    """Producers and consumers of a session, by id: also those whom the broker has let go of but not told yet, for
    CLOSE_PRODUCER and CLOSE_CONSUMER go out when it has none any more."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._producers: dict[int, Producer] = {}
        self._consumers: dict[int, Consumer] = {}
        self.look()

    def look(self) -> None:
        """Somebody may have come."""
        session = self._session
        if len(self._producers) > 2 * len(session.producers) + SPARE:
            self._producers.clear()
        if len(self._consumers) > 2 * len(session.consumers) + SPARE:
            self._consumers.clear()
        self._producers |= session.waiting_producers | session.producers
        self._consumers |= session.consumers

    def producer(self, producer_id: int) -> Producer | None:
        return self._session.producers.get(producer_id) or self._producers.get(producer_id)

    def consumer(self, consumer_id: int) -> Consumer | None:
        return self._session.consumers.get(consumer_id) or self._consumers.get(consumer_id)
