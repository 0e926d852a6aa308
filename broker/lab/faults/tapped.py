"""A frame as rules and predicates see it, and the producers and consumers of its connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from pulsarium.broker.lab.connections import Connection, NamedConsumer, NamedProducer
from pulsarium.proto.batch import unpack
from pulsarium.proto.commands import CommandSpec, Direction, parse
from pulsarium.proto.compression import decompress
from pulsarium.proto.entry import opens_at_once, parse_metadata, payload_of
from pulsarium.proto.errors import EntryError, InvalidTopicName, ProtocolError
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of
from pulsarium.proto.topic_name import TopicName

_T = pb.BaseCommand
OPENED = {_T.SUCCESS, _T.PRODUCER_SUCCESS}
SPARE = 100  # closed producers or consumers that are remembered
WITH_ENTRY = (_T.SEND, _T.MESSAGE)
_SHARED = {*pb.SingleMessageMetadata.DESCRIPTOR.fields_by_name} & {*pb.MessageMetadata.DESCRIPTOR.fields_by_name}
_OF_PRODUCERS = {_T.SEND, _T.SEND_RECEIPT, _T.SEND_ERROR, _T.CLOSE_PRODUCER}


class TappedFrame:
    """A frame. Fields that the frame does not name come from its producer or consumer."""

    def __init__(self, session: Connection, present: Present, sender: Direction, data: bytes) -> None:
        """Parse the frame `data`, from its length word on. Raise `CommandError` when the frame has no command."""
        start = 8 + int.from_bytes(data[4:8], "big")
        self.session = session
        self.sender = sender
        self.data = data
        self.base = pb.BaseCommand()
        self.entry = data[start:]
        """The bytes behind the command: the entry of a SEND or MESSAGE."""
        self.spec: CommandSpec = parse(data[8:start], self.base, self.entry)
        self.body: Any = getattr(self.base, self.spec.field)
        """The message of the command, such as a CommandSend."""
        self._present = present

    @property
    def name(self) -> str:
        """Return the name of the command, such as SEND or ACK."""
        return self.spec.name

    @property
    def client_version(self) -> str:
        """Return the client's version, also of a CONNECT that is not handled yet."""
        connecting = self.spec.type == _T.CONNECT
        return text_of(self.body.client_version) if connecting else self.session.client_version

    @property
    def topic(self) -> TopicName | str:
        """Return the topic of the frame, or "" for a frame without one."""
        named = self._text("topic")
        if self.spec.type == _T.ADD_PARTITION_TO_TXN and self.body.partitions:
            named = text_of(self.body.partitions[0])
        if self._of_transaction is not None:
            named = text_of(self._of_transaction.topic)
        if named:
            return _topic_name(named)
        if self.open_producer is not None:
            return self.open_producer.topic.name
        return "" if self.open_consumer is None else self.open_consumer.subscription.topic.name

    @property
    def namespaces(self) -> set[str]:
        """Return the namespace of the topic, or those of the connection's producers and consumers without a topic."""
        topic = self.topic
        if isinstance(topic, TopicName):
            return {str(topic.namespace_name)}
        named = self._text("namespace")
        return {named} if named else self._present.namespaces()

    @property
    def subscription(self) -> str:
        """Return the name of the subscription, or ""."""
        if self._of_transaction is not None:
            return text_of(self._of_transaction.subscription)
        known = "" if self.open_consumer is None else self.open_consumer.subscription.name
        return self._text("subscription") or known

    @property
    def producer(self) -> str:
        """Return the name of the producer, or ""."""
        return self._text("producer_name") or ("" if self.open_producer is None else self.open_producer.name)

    @property
    def consumer(self) -> str:
        """Return the name of the consumer, or ""."""
        return self._text("consumer_name") or ("" if self.open_consumer is None else self.open_consumer.name)

    @cached_property
    def metadata(self) -> pb.MessageMetadata | None:
        """Return the metadata of the entry, or None when there is none or it is damaged."""
        try:
            return parse_metadata(self.entry) if self.spec.type in WITH_ENTRY else None
        except EntryError:
            return None

    @property
    def payload(self) -> bytes:
        """Return the payload of an entry that has metadata, as the producer compressed and encrypted it."""
        return payload_of(self.entry)

    @cached_property
    def messages(self) -> list[tuple[Any, bytes]]:
        """Return the metadata and the value of each message of the entry. An encrypted or damaged entry has none.

        Nor has one that a step of the event loop cannot take apart, because the frame cannot wait for a thread.
        The metadata of a message outside a batch has the fields that the entry's metadata shares with it.
        """
        metadata = self.metadata
        if metadata is None or metadata.encryption_keys or not opens_at_once(metadata):
            return []
        try:
            payload = decompress(metadata.compression, self.payload, metadata.uncompressed_size)
            if metadata.HasField("num_messages_in_batch"):
                return unpack(payload, metadata.num_messages_in_batch)
        except ProtocolError:
            return []
        return [(_single(metadata, len(payload)), payload)]

    def _text(self, field: str) -> str:
        """Return a text field of the command, or "" when the command has no such field."""
        value = getattr(self.body, field, "")
        return text_of(value) if isinstance(value, str | bytes) else ""

    @cached_property
    def _of_transaction(self) -> pb.Subscription | None:
        """Return the first topic and subscription that a transaction acknowledges, or None."""
        if self.spec.type == _T.END_TXN_ON_SUBSCRIPTION:
            ended: pb.Subscription = self.body.subscription
            return ended
        if self.spec.type == _T.ADD_SUBSCRIPTION_TO_TXN and self.body.subscription:
            added: pb.Subscription = self.body.subscription[0]
            return added
        return None

    @cached_property
    def open_producer(self) -> NamedProducer | None:
        """Return the producer that the frame concerns, or None."""
        if self.spec.type in _OF_PRODUCERS:
            return self._present.producer(self.body.producer_id)
        migrated = self.spec.type == _T.TOPIC_MIGRATED and self.body.resource_type == pb.CommandTopicMigrated.Producer
        return self._present.producer(self.body.resource_id) if migrated else None

    @cached_property
    def open_consumer(self) -> NamedConsumer | None:
        """Return the consumer that the frame concerns, or None."""
        if "consumer_id" in self.body.DESCRIPTOR.fields_by_name:
            return self._present.consumer(self.body.consumer_id)
        migrated = self.spec.type == _T.TOPIC_MIGRATED and self.body.resource_type == pb.CommandTopicMigrated.Consumer
        return self._present.consumer(self.body.resource_id) if migrated else None


def _topic_name(text: str) -> TopicName | str:
    try:
        return TopicName.parse(text)
    except InvalidTopicName:
        return text


def _single(metadata: pb.MessageMetadata, size: int) -> pb.SingleMessageMetadata:
    """Return the metadata of a message outside a batch as that of a message in a batch."""
    single = pb.SingleMessageMetadata(payload_size=size)
    for field, value in metadata.ListFields():
        if field.name in _SHARED:
            if field.is_repeated:
                getattr(single, field.name).extend(value)
            else:
                setattr(single, field.name, value)
    return single


def names_of(topic: TopicName | str) -> Iterator[str]:
    """Yield all names of a topic that a glob may match."""
    if isinstance(topic, str):
        if topic:
            yield topic
        return
    for each in {topic, _partitioned(topic)}:
        yield from (str(each), f"{each.namespace_name}/{each.local_name}", each.local_name)


def _partitioned(topic: TopicName) -> TopicName:
    try:
        return topic.partitioned_name
    except InvalidTopicName:
        return topic


class Present:
    """The producers and consumers of a session, by id.

    Those that the broker has closed are remembered, because CLOSE_PRODUCER and CLOSE_CONSUMER are sent after that.
    """

    def __init__(self, session: Connection) -> None:
        self._session = session
        self.open_producers: dict[int, NamedProducer] = {}
        self.open_consumers: dict[int, NamedConsumer] = {}
        self.look()

    def look(self) -> None:
        """Remember the producers and consumers that are open now."""
        session = self._session
        if len(self.open_producers) > 2 * len(session.producers) + SPARE:
            self.open_producers.clear()
        if len(self.open_consumers) > 2 * len(session.consumers) + SPARE:
            self.open_consumers.clear()
        self.open_producers |= {**session.waiting_producers, **session.producers}
        self.open_consumers |= {**session.consumers}

    def namespaces(self) -> set[str]:
        """Return the namespaces of the remembered producers and consumers."""
        self.look()
        names = [each.topic.name for each in self.open_producers.values()]
        names += [each.subscription.topic.name for each in self.open_consumers.values()]
        return {str(name.namespace_name) for name in names}

    def producer(self, producer_id: int) -> NamedProducer | None:
        return self._session.producers.get(producer_id) or self.open_producers.get(producer_id)

    def consumer(self, consumer_id: int) -> NamedConsumer | None:
        return self._session.consumers.get(consumer_id) or self.open_consumers.get(consumer_id)


Predicate = Callable[[TappedFrame], bool]
