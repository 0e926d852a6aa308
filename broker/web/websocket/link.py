"""A client of the binary protocol inside the broker's process, as Pulsar's WebSocket service is one.

Its commands pass through a session like any client's, with all limits, permissions and taps, but through no socket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple, Protocol

from pulsarium.broker.auth.identity import Certificate
from pulsarium.broker.cluster import Broker
from pulsarium.broker.model.topic.java_regex import NotEvaluable
from pulsarium.broker.model.topic.patterns import JDK, TopicPattern
from pulsarium.broker.session.session import Session, open_session
from pulsarium.proto.commands import parse
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import INT_MAX, NO_REQUEST
from pulsarium.proto.text import text_of

VERSION: Final = "Pulsarium-WebSocket"
PROTOCOL: Final = 21
MOST_BROKERS: Final = 20  # lookups that may lead to another broker
LOST: Final = "The connection to the broker ended"


class BrokerFailure(NamedTuple):
    """An error of the broker, as a binary client hears it."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class LinkIdentity:
    """The client that a link speaks for: its address, and what proves its role."""

    address: str
    method: str = ""
    proof: bytes = b""
    original: str | None = None  # the principal that a proxy speaks for
    certificate: Certificate | None = None
    secure: bool = False


class LinkEnd(Protocol):
    """A producer or consumer at one end of a link."""

    def received(self, command: pb.BaseCommand, entry: bytes) -> None:
        """Handle a command that names this producer or consumer."""
        ...

    def lost(self) -> None:
        """Note that the link ended."""
        ...


Done = Callable[[pb.BaseCommand | BrokerFailure], None]
Changed = Callable[[list[str], list[str]], None]  # new topics, and deleted ones


class Outlet(Protocol):
    """The client behind a link."""

    @property
    def room(self) -> bool:
        """Return whether the client has room for what the broker sends."""
        ...

    def woken(self) -> None:
        """Note that a link may take more commands, or that it ended."""
        ...


class BrokerLink:
    """A connection to one broker, for the client at `outlet`."""

    def __init__(self, broker: Broker, identity: LinkIdentity, outlet: Outlet) -> None:
        self._broker = broker
        self._outlet = outlet
        self._decoder = FrameDecoder(INT_MAX)  # the broker's own frames
        self._requests: dict[int, Done] = {}
        self._numbers = count(1)
        self._waiting: deque[tuple[pb.BaseCommand, bytes]] = deque()  # until the broker has accepted CONNECT
        self._connected = False
        self.ended = False
        self.producers: dict[int, LinkEnd] = {}
        self.consumers: dict[int, LinkEnd] = {}
        self.watches: dict[int, Changed] = {}
        self._session: Session = open_session(
            broker, identity.address, self, identity.certificate, secure=identity.secure, over_websocket=True
        )
        hello = pb.CommandConnect(client_version=VERSION, protocol_version=PROTOCOL)
        if identity.method:
            hello.auth_method_name, hello.auth_data = identity.method, identity.proof
        if identity.original is not None:
            hello.original_principal = identity.original
        self._write(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=hello))

    @property
    def may_read(self) -> bool:
        """Return whether the broker takes more commands of this client now."""
        return self.ended or self._session.may_read

    def number(self) -> int:
        """Return a number that no other request, producer or consumer of this link has."""
        return next(self._numbers)

    def request(self, command: pb.BaseCommand, request_id: int, done: Done) -> None:
        """Send a command, and call `done` with its answer or its error."""
        self._requests[request_id] = done
        self.send(command)

    def send(self, command: pb.BaseCommand, entry: bytes = b"") -> None:
        if self.ended:
            return
        if self._connected:
            self._write(command, entry)
        else:
            self._waiting.append((command, entry))

    def close(self) -> None:
        """End the connection, without a word to producers and consumers."""
        self.producers.clear()
        self.consumers.clear()
        self._requests.clear()
        self.ended = True
        self._broker.close_session(self._session)

    def _write(self, command: pb.BaseCommand, entry: bytes = b"") -> None:
        if not self._session.closed:
            self._session.receive(frame(command.SerializeToString(), entry))

    # the session's transport

    def wake(self) -> None:
        """Take what the broker sends, unless messages have no room now."""
        session = self._session
        while session.outgoing.size and (self._outlet.room or not self._connected):
            for head, trailing in self._decoder.feed(session.outgoing.take()):
                command = pb.BaseCommand()
                parse(head, command, trailing)
                self._received(command, trailing)
            session.drained()
        if session.closed and not self.ended:
            self._end()
        self._outlet.woken()

    def _end(self) -> None:
        self.ended = True
        self._broker.close_session(self._session)
        requests, self._requests = self._requests, {}
        for done in requests.values():
            done(BrokerFailure(pb.ServiceNotReady, LOST))
        for end in [*self.producers.values(), *self.consumers.values()]:
            end.lost()

    def _received(self, command: pb.BaseCommand, entry: bytes) -> None:
        kind = command.type
        if kind == pb.BaseCommand.PING:
            self._write(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
        elif kind == pb.BaseCommand.CONNECTED:
            self._connected = True
            while self._waiting:
                self._write(*self._waiting.popleft())
        elif kind == pb.BaseCommand.ERROR:
            error = command.error
            failed = BrokerFailure(error.error, text_of(error.message))
            if error.request_id == NO_REQUEST or not self._connected:
                requests, self._requests = self._requests, {}
                for done in requests.values():
                    done(failed)
            else:
                self._answered(error.request_id, failed)
        elif kind in OF_PRODUCERS:
            end = self.producers.get(getattr(command, OF_PRODUCERS[kind]).producer_id)
            if end is not None:
                end.received(command, entry)
        elif kind in OF_CONSUMERS:
            end = self.consumers.get(getattr(command, OF_CONSUMERS[kind]).consumer_id)
            if end is not None:
                end.received(command, entry)
        elif kind == pb.BaseCommand.WATCH_TOPIC_UPDATE:
            update = command.watchTopicUpdate
            changed = self.watches.get(update.watcher_id)
            if changed is not None:
                changed(list(map(text_of, update.new_topics)), list(map(text_of, update.deleted_topics)))
        elif kind in ANSWERS:
            self._answered(getattr(command, ANSWERS[kind]).request_id, command)

    def _answered(self, request_id: int, answer: pb.BaseCommand | BrokerFailure) -> None:
        done = self._requests.pop(request_id, None)
        if done is not None:
            done(answer)


# type -> the field of BaseCommand
OF_PRODUCERS: Final[Mapping[int, str]] = {
    pb.BaseCommand.SEND_RECEIPT: "send_receipt",
    pb.BaseCommand.SEND_ERROR: "send_error",
    pb.BaseCommand.CLOSE_PRODUCER: "close_producer",
}
OF_CONSUMERS: Final[Mapping[int, str]] = {
    pb.BaseCommand.MESSAGE: "message",
    pb.BaseCommand.CLOSE_CONSUMER: "close_consumer",
    pb.BaseCommand.REACHED_END_OF_TOPIC: "reachedEndOfTopic",
}
ANSWERS: Final[Mapping[int, str]] = {
    pb.BaseCommand.SUCCESS: "success",
    pb.BaseCommand.PRODUCER_SUCCESS: "producer_success",
    pb.BaseCommand.PARTITIONED_METADATA_RESPONSE: "partitionMetadataResponse",
    pb.BaseCommand.LOOKUP_RESPONSE: "lookupTopicResponse",
    pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS: "watchTopicListSuccess",
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE: "getTopicsOfNamespaceResponse",
}


class BrokerLinks:
    """The links of one client to the brokers of a cluster."""

    def __init__(self, broker: Broker, identity: LinkIdentity, outlet: Outlet) -> None:
        self.broker = broker
        self._identity = identity
        self._outlet = outlet
        self._links: dict[Broker, BrokerLink] = {}
        self.closed = False

    @property
    def may_read(self) -> bool:
        """Return whether all brokers take more commands now."""
        return all(link.may_read for link in self._links.values())

    def wake(self) -> None:
        """Take what the brokers kept while messages had no room."""
        for link in list(self._links.values()):
            link.wake()

    def to(self, broker: Broker) -> BrokerLink:
        """Return the link to a broker, opened if needed."""
        link = self._links.get(broker)
        if link is None or link.ended:
            link = self._links[broker] = BrokerLink(broker, self._identity, self._outlet)
        return link

    def partitions(self, topic: str, done: Callable[[int | BrokerFailure], None]) -> None:
        """Ask for the number of a topic's partitions, 0 for a topic without them. The broker may create the topic."""
        link = self.to(self.broker)
        number = link.number()
        asked = pb.CommandPartitionedTopicMetadata(topic=topic, request_id=number, metadata_auto_creation_enabled=True)

        def answered(answer: pb.BaseCommand | BrokerFailure) -> None:
            if isinstance(answer, pb.BaseCommand):
                found = answer.partitionMetadataResponse
                good = found.response == pb.CommandPartitionedTopicMetadataResponse.Success
                done(found.partitions if good else BrokerFailure(found.error, text_of(found.message)))
            else:
                done(answer)

        command = pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA, partitionMetadata=asked)
        link.request(command, number, answered)

    def look_up(self, topic: str, done: Callable[[BrokerLink | BrokerFailure], None]) -> None:
        """Find the broker that serves a topic."""
        self._look_up(self.broker, topic, False, done, MOST_BROKERS)

    def _look_up(
        self, at: Broker, topic: str, authoritative: bool, done: Callable[[BrokerLink | BrokerFailure], None], left: int
    ) -> None:
        link = self.to(at)
        number = link.number()
        asked = pb.CommandLookupTopic(topic=topic, request_id=number, authoritative=authoritative)

        def answered(answer: pb.BaseCommand | BrokerFailure) -> None:
            if not isinstance(answer, pb.BaseCommand):
                done(answer)
                return
            found = answer.lookupTopicResponse
            url = text_of(found.brokerServiceUrl or found.brokerServiceUrlTls)
            there = at if len(at.cluster.brokers) == 1 else at.cluster.broker_at(url)
            if found.response == pb.CommandLookupTopicResponse.Failed:
                done(BrokerFailure(found.error, text_of(found.message)))
            elif there is None or not left:
                done(BrokerFailure(pb.ServiceNotReady, f"no broker of this cluster has the URL {url}"))
            elif found.response == pb.CommandLookupTopicResponse.Redirect:
                self._look_up(there, topic, found.authoritative, done, left - 1)
            else:
                done(self.to(there))

        link.request(pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=asked), number, answered)

    def watch(
        self, namespace: str, pattern: str, done: Callable[[list[str] | BrokerFailure], None], changed: Changed
    ) -> None:
        """Ask for the topics of a namespace that match a pattern, and for all changes."""
        if not self.broker.config.enableBrokerTopicListWatcher:
            done(BrokerFailure(pb.NotAllowedError, "Broker does not allow broker side pattern evaluation."))
            return
        link = self.to(self.broker)
        number, watcher = link.number(), link.number()
        link.watches[watcher] = changed
        asked = pb.CommandWatchTopicList(
            request_id=number, watcher_id=watcher, namespace=namespace, topics_pattern=pattern
        )

        def answered(answer: pb.BaseCommand | BrokerFailure) -> None:
            if isinstance(answer, BrokerFailure):
                done(answer)
            else:
                done(list(map(text_of, answer.watchTopicListSuccess.topic)))

        link.request(pb.BaseCommand(type=pb.BaseCommand.WATCH_TOPIC_LIST, watchTopicList=asked), number, answered)

    def topics(self, namespace: str, pattern: str, done: Callable[[list[str] | BrokerFailure], None]) -> None:
        """Ask for the persistent topics of a namespace that match a pattern now."""
        link = self.to(self.broker)
        number = link.number()
        asked = pb.CommandGetTopicsOfNamespace(request_id=number, namespace=namespace, topics_pattern=pattern)

        def answered(answer: pb.BaseCommand | BrokerFailure) -> None:
            if isinstance(answer, BrokerFailure):
                done(answer)
                return
            names = list(map(text_of, answer.getTopicsOfNamespaceResponse.topics))
            if answer.getTopicsOfNamespaceResponse.filtered:
                done(names)
                return
            self.broker.turn.in_slices(selected(names))

        def selected(names: list[str]) -> Iterator[None]:
            try:  # as a client in Java does
                found = yield from TopicPattern(pattern, JDK).select(names)
            except NotEvaluable:
                done(BrokerFailure(pb.NotAllowedError, "the pattern takes too much work for so many topics"))
            else:
                done(found)

        command = pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked)
        link.request(command, number, answered)

    def close(self) -> None:
        self.closed = True
        links, self._links = self._links, {}
        for link in links.values():
            link.close()
