"""A WebSocket that consumes or reads: messages as JSON out, acknowledgements and requests as JSON in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from pulsarium.broker.clock import Timer
from pulsarium.broker.jackson.errors import JsonError
from pulsarium.broker.jackson.kinds import INTEGER, TEXT, read, record
from pulsarium.broker.logs import PartLog
from pulsarium.broker.web.websocket.decoding import ReceivedMessage
from pulsarium.broker.web.websocket.java import NULL_TEXT, decode_base64
from pulsarium.broker.web.websocket.letters import LetterPublisher
from pulsarium.broker.web.websocket.link import BrokerFailure, BrokerLinks
from pulsarium.broker.web.websocket.options import ConsumerOptions, SocketTopics
from pulsarium.broker.web.websocket.publisher import all_opened
from pulsarium.broker.web.websocket.socket import INTERNAL_ERROR, Handler, Output
from pulsarium.broker.web.websocket.topic_consumer import Entry, TopicConsumer
from pulsarium.broker.web.websocket.topic_producer import Opened
from pulsarium.proto.errors import InvalidMessageId
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import MessageId
from pulsarium.proto.numbers import unsigned
from pulsarium.proto.topic_name import TopicName

log = PartLog("websocket")

COMMAND: Final = record(
    "org.apache.pulsar.websocket.data.ConsumerCommand", {"type": TEXT, "messageId": TEXT, "permitMessages": INTEGER}
)
NO_PERMITS: Final = "Missing required permitMessages field for 'permit' command"
NULL_FRAME: Final = 'Cannot read field "type" because "command" is null'
DISCOVERY_SECONDS: Final = 60.0  # between two looks for new topics, as in Pulsar's client
LETTER_SECONDS: Final = 60.0  # before a message comes again whose dead letter was not published
MOST_KNOWN: Final = 100_000  # delivered messages whose topic is remembered; others are found by their partition


class DeliveredMessage(NamedTuple):
    """A message that the client has, without its acknowledgement.

    `letter` is the message if it becomes a dead letter in place of another redelivery.
    """

    consumer: TopicConsumer
    id: MessageId
    letter: ReceivedMessage | None


class Consumer(Handler):
    """Consumers of one topic, of partitions, of several topics or of those that match a pattern."""

    def __init__(
        self, links: BrokerLinks, place: SocketTopics, options: ConsumerOptions, output: Output, *, reads: bool = False
    ) -> None:
        self._links = links
        self._clock = links.broker.clock_of(place.topics[0]) if place.topics else links.broker.clock
        self.place = place
        self.options = options
        self.reads = reads
        self._output = output
        self._consumers: dict[TopicName, TopicConsumer] = {}
        self._letters = LetterPublisher(links, place.subscription, options) if options.most_redeliveries else None
        self._pending = 0  # messages without an acknowledgement; below 0: permits of a client that pulls
        self._delivered: OrderedDict[str, DeliveredMessage] = OrderedDict()
        self._timers: set[Timer] = set()
        self._asked = False  # for a message, without a queue
        self._last = 0  # the consumer whose messages went out last
        self.delivered = 0  # messages so far

    @property
    def may_read(self) -> bool:
        return self._links.may_read

    # opening

    def open(self, opened: Opened) -> None:
        if self.place.pattern:
            self._watch(opened)
        else:
            self._add(self.place.topics, opened)

    def _add(self, topics: Collection[TopicName], opened: Opened) -> None:
        """Subscribe to topics, each with all its partitions."""
        one = all_opened(len(topics), opened)
        for topic in topics:
            self._links.partitions(str(topic), self._counted(topic, one))

    def _counted(self, topic: TopicName, opened: Opened) -> Callable[[int | BrokerFailure], None]:
        def counted(partitions: int | BrokerFailure) -> None:
            if isinstance(partitions, BrokerFailure):
                opened(partitions)
            elif partitions and self.options.start not in (None, MessageId.EARLIEST, MessageId.LATEST):
                opened(BrokerFailure(pb.UnknownError, "The partitioned topic startMessageId is illegal"))
            else:
                self._subscribe([topic.partition(index) for index in range(partitions)] or [topic], opened)

        return counted

    def _subscribe(self, names: Collection[TopicName], opened: Opened) -> None:
        one = all_opened(len(names), opened)
        for name in names:
            found = TopicConsumer(self._links, name, self.place.subscription, self.options, self)
            self._consumers[name] = found
            found.open(one)

    def _watch(self, opened: Opened) -> None:
        """Subscribe to the topics that match the pattern now and later.

        A broker may watch no topic lists, or none for so long a pattern. Then the consumer asks for the topics each
        minute, as Pulsar's client does.
        """

        def found(answer: list[str] | BrokerFailure) -> None:
            if isinstance(answer, BrokerFailure):
                opened(answer)
            elif answer:
                self._subscribe([TopicName.parse(name) for name in answer], opened)
            else:
                opened(None)

        def watched(answer: list[str] | BrokerFailure) -> None:
            if isinstance(answer, BrokerFailure) and answer.code == pb.NotAllowedError:
                self._after(DISCOVERY_SECONDS, self._discover)
                self._links.topics(self._namespace, self.place.pattern, found)
            else:
                found(answer)

        self._links.watch(self._namespace, self.place.pattern, watched, self._changed)

    def _discover(self) -> None:
        """Look for new and deleted topics that match the pattern, now and later."""

        def found(answer: list[str] | BrokerFailure) -> None:
            if not isinstance(answer, BrokerFailure):
                self._changed(answer, {str(name) for name in self._consumers} - set(answer))

        self._after(DISCOVERY_SECONDS, self._discover)
        self._links.topics(self._namespace, self.place.pattern, found)

    def _changed(self, new: Iterable[str], deleted: Iterable[str]) -> None:
        for name in map(TopicName.parse, deleted):
            gone = self._consumers.pop(name, None)
            if gone is not None:
                self.forget(gone)
                gone.close()
        added = [name for name in map(TopicName.parse, new) if name not in self._consumers]
        if added:
            self._subscribe(added, lambda failed: None if failed is None else self.refused(failed))

    @property
    def _namespace(self) -> str:
        """Return the namespace of the pattern."""
        pattern = self.place.pattern
        return str(TopicName.parse(pattern.partition("://")[2] or pattern).namespace_name)

    # delivery

    def opened(self) -> None:
        """Begin to deliver, because the upgrade is answered."""
        self.deliver()

    def resume(self) -> None:
        self._links.wake()
        self.deliver()

    def arrived(self, consumer: TopicConsumer) -> None:
        if self._output.is_open:
            self.deliver()

    def deliver(self) -> None:
        """Send messages to the client, as far as it takes some."""
        options = self.options
        while self._takes_more() and self._output.room:
            consumer = self._next()
            if consumer is None:
                if not options.queue and not self._asked:
                    self._asked = True
                    for each in self._consumers.values():
                        each.ask_for_one()
                return
            self._asked = False
            message = consumer.messages.popleft()
            consumer.took(1)
            if self._letters is not None and message.redelivery_count > options.most_redeliveries:
                self._bury(consumer, message)
                continue
            self._deliver(consumer, message)

    def _takes_more(self) -> bool:
        return self._pending < (0 if self.options.pull else self.options.most_outstanding)

    def _next(self) -> TopicConsumer | None:
        """Return the next consumer with a message, in turns."""
        consumers = list(self._consumers.values())
        for step in range(1, len(consumers) + 1):
            index = (self._last + step) % len(consumers)
            if consumers[index].messages:
                self._last = index
                return consumers[index]
        return None

    def _deliver(self, consumer: TopicConsumer, message: ReceivedMessage) -> None:
        frame = message.json(with_context=not self.reads)
        self._pending += 1
        self.delivered += 1
        self._output.send(frame)
        if self.reads:
            consumer.delivered(message)
            return
        last = self._letters is not None and message.redelivery_count >= self.options.most_redeliveries
        found = self._delivered[frame["messageId"]] = DeliveredMessage(consumer, message.id, message if last else None)
        if len(self._delivered) > MOST_KNOWN:
            self._delivered.popitem(last=False)
        if self.options.ack_timeout:
            text = frame["messageId"]
            self._after(self.options.ack_timeout, lambda: self._timed_out(text, found))

    def _timed_out(self, text: str, delivered: DeliveredMessage) -> None:
        if self._delivered.get(text) is delivered:
            del self._delivered[text]
            self._resume()
            self._redeliver(delivered)

    def forget(self, consumer: TopicConsumer) -> None:
        for text in [text for text, each in self._delivered.items() if each.consumer is consumer]:
            del self._delivered[text]
            if not self.options.pull:
                self._pending -= 1
        self._asked = False

    def refused(self, failed: BrokerFailure) -> None:
        self._output.close(INTERNAL_ERROR, failed.text)

    # requests

    def receive(self, text: str) -> None:
        """Handle a frame. As in Pulsar, a frame that is no JSON or names no message id changes nothing."""
        try:
            frame = read(COMMAND, text)
            if frame is None:
                self._output.close(INTERNAL_ERROR, NULL_FRAME)
                return
            kind = frame.get("type")
            if kind == "isEndOfTopic":
                ended = bool(self._consumers) and all(each.end_of_topic for each in self._consumers.values())
                self._output.send({"endOfTopic": ended})
            elif self.reads:
                self._resume()
            elif kind == "permit":
                self._permit(frame)
            elif kind == "unsubscribe":
                self._unsubscribe()
            else:
                self._settle(frame, kind)
        except (JsonError, InvalidMessageId) as error:
            log.warning("ignored a frame of a WebSocket", topic=self.place.topics or self.place.pattern, reason=error)
        except ValueError as error:
            self._output.close(INTERNAL_ERROR, str(error))

    def _permit(self, frame: Mapping[str, Any]) -> None:
        if "permitMessages" not in frame:
            raise JsonError(NO_PERMITS)
        if self.options.pull:
            self._pending -= frame["permitMessages"]
            self.deliver()

    def _settle(self, frame: Mapping[str, Any], kind: str | None) -> None:
        """Acknowledge a message, or note that it is to be redelivered."""
        text = frame.get("messageId")
        if text is None:
            raise ValueError(NULL_TEXT)
        message_id = MessageId.from_bytes(decode_base64(text))
        found = self._delivered.pop(text, None) or self._named(message_id)
        if found is not None and kind == "negativeAcknowledge":
            self._after(self.options.nack_delay, lambda: self._redeliver(found))
        elif found is not None:
            found.consumer.acknowledge([found.id])
        self._resume()

    def _named(self, message_id: MessageId) -> DeliveredMessage | None:
        """Return a message that this connection did not deliver, with the consumer of its partition."""
        consumers = list(self._consumers.values())
        fitting = [each for each in consumers if each.topic.partition_index == message_id.partition]
        consumer = next(iter(fitting or consumers), None)
        return None if consumer is None else DeliveredMessage(consumer, message_id, None)

    def _resume(self) -> None:
        if not self.options.pull:
            self._pending -= 1
            self.deliver()

    def _redeliver(self, delivered: DeliveredMessage) -> None:
        if delivered.letter is not None:
            self._bury(delivered.consumer, delivered.letter)
        else:
            entry: Entry = unsigned(delivered.id.ledger_id), unsigned(delivered.id.entry_id)
            delivered.consumer.redeliver([entry])
            self.deliver()

    def _bury(self, consumer: TopicConsumer, message: ReceivedMessage) -> None:
        """Publish a message to the dead letter topic, and acknowledge it then. If that fails, ask again later."""
        assert self._letters is not None

        def published(failed: BrokerFailure | None) -> None:
            if failed is None:
                consumer.acknowledge([message.id])
            else:
                log.warning("a dead letter was not published", topic=consumer.topic, reason=failed.text)
                entry: Entry = message.id.ledger_id, message.id.entry_id
                self._after(LETTER_SECONDS, lambda: consumer.redeliver([entry]))

        self._letters.publish(message, str(consumer.topic), published)

    def _unsubscribe(self) -> None:
        for each in self._consumers.values():
            each.unsubscribe(self._unsubscribed)

    def _unsubscribed(self, answer: pb.BaseCommand | BrokerFailure) -> None:
        if isinstance(answer, BrokerFailure):
            self._output.close(INTERNAL_ERROR, answer.text)

    def _after(self, seconds: float, work: Callable[[], None]) -> None:
        """Run `work` later, unless the WebSocket ends before."""

        def run() -> None:
            self._timers.discard(timer)
            work()

        timer = self._clock.call_later(seconds, run)
        self._timers.add(timer)

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for consumer in self._consumers.values():
            consumer.close()
        if self._letters is not None:
            self._letters.close()
        self._links.close()
