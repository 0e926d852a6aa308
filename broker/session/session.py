"""The state of one connection, without IO: bytes go in, and bytes wait to go out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Protocol

from pulsarium.broker.auth.identity import NOBODY, Certificate, Principal
from pulsarium.broker.auth.login import Login
from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.config.proposals import MESSAGE_PERMITS
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.client import AssignedBroker, Delivery
from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.news import Kind
from pulsarium.broker.model.refusals import Refusal
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.topic.producers import Producer, ProducerClient
from pulsarium.broker.model.topic.watchers import TopicListWatcher
from pulsarium.broker.net.wrong_port import at_binary_port
from pulsarium.broker.session.capabilities import Capabilities
from pulsarium.broker.session.concerned import concerned
from pulsarium.broker.session.gate import CloseConnection, Gate, Handler
from pulsarium.broker.session.liveness import LateSends, Liveness, Refresh
from pulsarium.broker.session.outgoing import HIGH_WATER, Frame, OutgoingFrames, Tap
from pulsarium.proto.commands import COMMANDS, Direction
from pulsarium.proto.framing import FrameDecoder, frame_head
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import NO_REQUEST
from pulsarium.proto.text import text_of

log = PartLog("session")


class Transport(Protocol):
    """The carrier of a session's bytes."""

    def wake(self) -> None:
        """Write what waits, or close. The session calls this at the end of a turn. It must not block."""
        ...


class Opened(Protocol):
    """A watch or the like, which a command has opened on a connection."""

    def close(self) -> None:
        """Tell the client nothing more."""
        ...


class Subscribing(Opened, Protocol):
    """A SUBSCRIBE without an answer yet."""

    abandoned: bool

    def abandon(self) -> None:
        """Leave the subscription, because CLOSE_CONSUMER came before the answer."""
        ...


class Registered(Opened, Protocol):
    """A consumer that is registered with the controller of a scalable topic. Its place is kept for a while."""

    def leave(self) -> None:
        """Give the place up at once, because the client wants so."""
        ...


class Sessions:
    """Handlers of commands, and listeners such as a lab, for all sessions of a cluster. No listener costs nothing."""

    def __init__(self, before_connect: Mapping[int, Handler], of: Callable[[Profile], Mapping[int, Handler]]) -> None:
        self.before_connect = before_connect
        self.numbers = count(1)  # of connections
        self.opened: list[Callable[[Session], None]] = []
        """Called with each new connection, to which they may give a tap."""
        self.connecting: list[Callable[[Session, pb.CommandConnect], None]] = []
        """Called with each accepted CONNECT before its answer.

        They may give the session another profile, and change the client's fields.
        """
        self._of = of
        self._handlers: dict[Profile, Mapping[int, Handler]] = {}

    def handlers(self, profile: Profile) -> Mapping[int, Handler]:
        """Return the handlers of connections of a profile, after their CONNECT."""
        if profile not in self._handlers:
            self._handlers[profile] = self._of(profile)
        return self._handlers[profile]


class Session(ProducerClient):
    """Handle one connection's commands, and send the model's messages and answers."""

    def __init__(
        self,
        broker: Broker,
        address: str,
        transport: Transport,
        certificate: Certificate | None = None,
        *,
        secure: bool = False,
        over_websocket: bool = False,
    ) -> None:
        config = broker.config
        self.broker = broker
        self._sessions = broker.cluster.attached(Sessions)
        self.number = next(self._sessions.numbers)
        self.since_ms = broker.clock.now_ms()
        self.over_websocket = over_websocket
        self.bytes_in = 0
        self.findings = 0  # rules of the protocol that the linter saw the client break
        self.fault_hits = 0
        most_unanswered = config.maxPendingPublishRequestsPerConnection
        self.gate = Gate(self, broker.turn, self._sessions.before_connect, most_unanswered)
        self.address = address
        self.secure = secure  # over TLS
        self.client_version = ""
        self.profile = broker.profile
        self.capabilities = Capabilities()
        self.connected = False
        self.through_proxy = False
        self.closed = False
        self.left = False  # the client sends no more
        self.certificate = certificate  # the client's, over TLS
        self.login: Login | None = None
        self._refresh: Refresh | None = None
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.waiting_producers: dict[int, Producer] = {}  # queued (WaitForExclusive)
        self.watchers: dict[int, TopicListWatcher] = {}
        self.lookups: dict[int, Opened] = {}  # of scalable topics
        self.registered: dict[int, Registered] = {}  # with controllers of scalable topics
        self.topic_watches: dict[int, Opened] = {}  # of scalable topics in namespaces
        self.coordinator_watches: dict[int, Opened] = {}
        self.pending_producers: set[int] = set()
        self.pending_consumers: dict[int, Subscribing] = {}
        self.late_sends = LateSends(broker.clock.keep_alive, config.keepAliveIntervalSeconds)
        self.handling: pb.BaseCommand | None = None  # the command whose handler runs, or ran last
        self.outgoing = OutgoingFrames()
        self.unstored = 0
        self._was_full = False
        self._promised = 0  # bytes of replies that wait for a commit
        self._uncounted = 0  # bytes that were read since `handled`
        self.flush = transport.wake  # at the end of a turn
        self._decoder = FrameDecoder(config.max_frame_size)
        self.liveness = Liveness(
            self, broker.clock.keep_alive, config.keepAliveIntervalSeconds, config.connectionLivenessCheckTimeoutMillis
        )

    def __str__(self) -> str:
        return self.address

    # in

    def receive(self, data: bytes) -> None:
        """Handle every whole frame in `data`, with the bytes kept from before."""
        self.unstored = 0
        frames = self._decoder.feed(data)
        tap = self.outgoing.tap
        if tap is None:
            self.liveness.heard()
            self.gate.handle(frames)
        else:
            passed = tap.incoming(frames)  # calls liveness.heard for each frame that passes
            if self._decoder.pending:  # part of a frame counts as a sign of life
                self.liveness.heard()
            self.gate.handle(passed)
        self.bytes_in += len(data)
        self._uncounted += len(data)
        if self._decoder.error is not None:
            self.gate.handle(self._refuse(str(self._decoder.error), data))
        if not self.gate.waits:
            self.handled()

    def handled(self) -> None:
        """Count the bytes of handled frames among those that are not stored yet, if messages are among them."""
        if self.gate.unanswered:
            self.broker.cluster.publish_buffer.published(self, self._uncounted)
        self._uncounted = 0

    def _refuse(self, reason: str, data: bytes) -> Iterator[Frame]:
        """Close the connection for bytes that are no frame, once the frames before them are handled.

        A client of another protocol gets an answer in it.
        """
        urls = self.broker.listener_at(self.broker.advertised_address)
        wrong_port = None if self.connected else at_binary_port(data, urls, secure=self.secure)
        if wrong_port is not None:
            reason = wrong_port.reason
            self.outgoing.past_the_tap(wrong_port.answer)
        self.close(reason)
        yield from ()

    @property
    def may_read(self) -> bool:
        """Return whether more commands may be read.

        Not while the connection is paused, while too many unread replies wait, or while a tap holds commands back.
        """
        return not (self.paused or self.gate.unread) and self.outgoing.may_read

    @property
    def paused(self) -> bool:
        return self.closed or self.gate.paused

    @property
    def tap(self) -> Tap | None:
        return self.outgoing.tap

    @tap.setter
    def tap(self, tap: Tap | None) -> None:
        self.outgoing.tap = tap

    def heard(self) -> None:
        self.liveness.heard()

    def hand_on(self, frames: Iterable[Frame]) -> None:
        """Handle frames that a tap kept, in a turn of their own."""
        self.gate.handle(frames)
        self._sent()  # sends the answers, and resumes reading

    def send_on(self, parts: Iterable[bytes]) -> None:
        """Send frames that a tap kept."""
        self.outgoing.past_the_tap(b"".join(parts))
        self._sent()

    def publish_finished(self, count: int) -> None:
        self.gate.publish_finished(count)

    def pause_reading(self) -> None:
        self.gate.pause()

    def resume_reading(self) -> None:
        self.gate.resume()

    # out

    @property
    def takes_last_entries(self) -> bool:
        """Return whether GET_LAST_MESSAGE_ID is answered with an entry (PIP-429).

        Not while many bytes wait for a client that keeps asking: an answer without the entry is valid too.
        """
        return self.capabilities.takes_last_entries and self.outgoing.waiting + self._promised < HIGH_WATER

    @property
    def room(self) -> int:
        room = 0 if self.closed else HIGH_WATER - self.outgoing.waiting
        if room <= 0:
            self._was_full = True
        return room

    def drained(self) -> None:
        """Resume consumers and commands that waited for the socket."""
        if self._was_full and self.outgoing.waiting < HIGH_WATER:
            self._was_full = False
            for consumer in self.consumers.values():
                consumer.subscription.resume(consumer)
        if self.gate.unread and self.outgoing.waiting + self._promised < HIGH_WATER:
            self.gate.has_room()

    def _sent(self) -> None:
        self.broker.turn.flush(self)

    def success(self, request_id: int) -> None:
        self.outgoing.success(request_id)
        self._sent()

    def error(self, request_id: int, code: int, text: str, **about: object) -> None:
        self.outgoing.error(request_id, code, text)
        self._sent()
        self.refused("request refused", code, text, **self._asked(request_id, about))

    def refuse(self, request_id: int, error: BrokerServiceError, **about: object) -> None:
        """Answer a request with an error."""
        self.error(request_id, error.code, error.text, **about, **error.about)

    def _asked(self, request_id: int, about: dict[str, object]) -> dict[str, object]:
        """Return whom a refusal concerns: as given by an answer that had to wait, else by the command under way."""
        command = self.handling
        spec = None if command is None or "command" in about else COMMANDS.get(command.type)
        if command is None or spec is None:
            return about
        body = getattr(command, spec.field)
        is_its = getattr(body, "request_id", None) == request_id
        return self.concerned(command.type, body) | about if is_its else about

    def concerned(self, command: int, body: Any) -> dict[str, object]:
        """Return the names in a client's command, and those of the consumer to which it refers."""
        return concerned(self.consumers, command, body)

    def note_refusal(self, command: int, body: Any, code: int, text: str, **more: object) -> None:
        """Log the refusal of a command with the names in it, and keep the refusal for `pulsarium why`."""
        self.refused("request refused", code, text, **(self.concerned(command, body) | more))

    def refused(self, event: str, code: int, text: str, **about: object) -> None:
        """Log a refusal, and keep it for `pulsarium why`."""
        error = pb.ServerError.Name(code)
        log.info(event, peer=self.address, **about, error=error, reason=text)
        now_ms = self.broker.clock.now_ms()
        self.broker.cluster.refusals.note(Refusal(now_ms, error, text, {"peer": self.address, **about}))

    def command(self, command: pb.BaseCommand, trailing: bytes = b"") -> None:
        """Send a reply."""
        self.outgoing.command(command, trailing)
        self._sent()
        self._bound_replies()

    def _bound_replies(self) -> None:
        if not self.outgoing.takes_more(self._promised):  # one read may contain many requests with long answers
            self.gate.wait_for_room()

    def reply_later(self, command: pb.BaseCommand, trailing: bytes = b"") -> None:
        """Send a reply after the commit of everything noted so far. Later requests may be answered before."""
        if self.broker.turn.is_committed:
            self.command(command, trailing)
            return
        head = frame_head(command.SerializeToString(), len(trailing))
        size = len(head) + len(trailing)
        self._promised += size

        def kept(error: Exception | None) -> None:
            self._promised -= size
            self.outgoing.add(head)
            if trailing:
                self.outgoing.add(trailing)
            self._sent()
            self._bound_replies()

        self.broker.turn.after_commit(kept)
        self._bound_replies()

    def reply_when_kept(self, request_id: int, command: pb.BaseCommand) -> None:
        """Send a reply after its commit, or an error if the commit fails."""
        self.broker.turn.after_commit(
            lambda error: self.command(command) if error is None else self.not_kept(request_id, error)
        )

    def not_kept(self, request_id: int, error: Exception, **about: object) -> None:
        """Answer a request whose commit failed."""
        self.error(request_id, pb.PersistenceError, str(error), **about)

    def pong(self) -> None:
        self.outgoing.pong()
        self._sent()

    def ping(self, *, unasked: bool) -> bool:
        if unasked and not self.capabilities.takes(pb.BaseCommand.PING):
            return False
        self.outgoing.ping()
        self._sent()
        return True

    def send_receipts(self, producer_id: int, entries: Sequence[PendingPublish]) -> None:
        self.outgoing.receipts(producer_id, entries)
        self._sent()

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str, **about: object) -> None:
        self.refused("message refused", code, text, command="SEND", **about)
        self.outgoing.send_error(producer_id, sequence_id, code, text)
        self._sent()

    def messages(
        self, consumer_id: int, partition: int, consumer_epoch: int | None, deliveries: Sequence[Delivery]
    ) -> None:
        capabilities = self.capabilities
        if not capabilities.takes_batches and any(delivery.messages > 1 for delivery in deliveries):
            self.close("a batch for a client that cannot take one")
            return
        tells_permits = self.profile.has(MESSAGE_PERMITS)
        self.outgoing.messages(
            consumer_id, partition, consumer_epoch, deliveries, capabilities.bare, tells_permits=tells_permits
        )
        self._sent()

    def producer_success(
        self,
        request_id: int,
        producer_name: str,
        *,
        last_sequence_id: int = -1,
        topic_epoch: int | None = None,
        ready: bool = True,
        schema_version: bytes,
    ) -> None:
        self.outgoing.producer_success(request_id, producer_name, last_sequence_id, topic_epoch, ready, schema_version)
        self._sent()

    def producer_ready(self, producer: Producer) -> None:
        self.waiting_producers.pop(producer.producer_id, None)
        self.producers[producer.producer_id] = producer
        if self.closed:  # promoted by the end of this same connection
            return
        self.producer_success(
            producer.request_id,
            producer.name,
            last_sequence_id=producer.last_sequence_id,
            topic_epoch=producer.topic_epoch,
            schema_version=producer.schema_version,
        )

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None:
        if self.capabilities.takes(pb.BaseCommand.ACTIVE_CONSUMER_CHANGE):
            self.outgoing.active_consumer_change(consumer_id, is_active)
            self._sent()

    def reached_end_of_topic(self, consumer_id: int) -> None:
        told = self.profile.tells_end_of_topic(self.client_version)
        if told and self.capabilities.takes(pb.BaseCommand.REACHED_END_OF_TOPIC):
            self.outgoing.reached_end_of_topic(consumer_id)
            self._sent()

    def close_producer(self, producer_id: int, assigned: AssignedBroker | None = None) -> None:
        self.forget_producer(producer_id)
        self.late_sends.closed(producer_id)
        if not self.capabilities.takes_closings:
            self.close("a producer was closed, and this client can only be told by disconnecting it")
            return
        assigned = self._sent_away(pb.CommandTopicMigrated.Producer, producer_id, assigned)
        self.outgoing.close_producer(producer_id, assigned)
        self._sent()

    def close_consumer(self, consumer_id: int, assigned: AssignedBroker | None = None) -> None:
        self.consumers.pop(consumer_id, None)
        if not self.capabilities.takes_closings:
            self.close("a consumer was closed, and this client can only be told by disconnecting it")
            return
        assigned = self._sent_away(pb.CommandTopicMigrated.Consumer, consumer_id, assigned)
        self.outgoing.close_consumer(consumer_id, assigned)
        self._sent()

    def _sent_away(
        self, kind: pb.CommandTopicMigrated.ResourceType, resource_id: int, assigned: AssignedBroker | None
    ) -> AssignedBroker | None:
        """Send TOPIC_MIGRATED, and return the broker to name in the CLOSE_ command, None after a migration."""
        if assigned is None or not assigned.migrated:
            return assigned
        if self.capabilities.takes(pb.BaseCommand.TOPIC_MIGRATED):
            self.outgoing.topic_migrated(kind, resource_id, assigned)
        return None

    def forget_producer(self, producer_id: int) -> None:
        self.producers.pop(producer_id, None)
        self.waiting_producers.pop(producer_id, None)

    # life

    def connect(self, connect: pb.CommandConnect) -> None:
        """Accept a CONNECT. Through a proxy, move the session to the broker that the proxy names."""
        if connect.proxy_to_broker_url:
            self.through_proxy = True
            meant = self.broker.cluster.broker_at(text_of(connect.proxy_to_broker_url)) or self.broker
            if not meant.alive:
                raise CloseConnection(f"the broker that the proxy names is down: {meant.web_address}")
            self._move_to(meant)
        self.connected = self.liveness.connected = True
        self.client_version = text_of(connect.client_version)
        for told in self._sessions.connecting:
            told(self, connect)
        exposing = self.broker.config.exposingBrokerEntryMetadataToClientEnabled
        self.capabilities = Capabilities.of(connect, self.profile, exposing_broker_metadata=exposing)
        self.gate.handlers = self._sessions.handlers(self.profile)
        self.gate.takes_runs = "SEND" not in self.profile.unknown
        self.broker.cluster.news.tell(Kind.CLIENT_JOINED, client=self.address, version=self.client_version)
        if self.login is not None and self.login.renewable:
            clock, interval = self.broker.clock.token_expiry, self.broker.config.authenticationRefreshCheckSeconds
            self._refresh = Refresh(self, self.login, clock, interval)

    def _move_to(self, broker: Broker) -> None:
        self.broker.sessions.discard(self)
        self.broker = broker
        broker.sessions.add(self)

    @property
    def listener(self) -> str:
        """Return the URL of the port to which the client connected."""
        urls = self.broker.listener_at(self.broker.advertised_address)
        return urls.pulsar_ssl if self.secure else urls.pulsar

    @property
    def protocol_version(self) -> int:
        """Return the protocol version of the client, 0 before its CONNECT."""
        return self.capabilities.version

    @property
    def role(self) -> str | None:
        """Return the client's role, of the original client behind a proxy."""
        return self.principal.original or self.principal.role

    @property
    def bytes_out(self) -> int:
        """Return the bytes that were written, or are on their way."""
        return self.outgoing.taken

    @property
    def paused_by(self) -> str:
        """Return why no more commands are read, or ""."""
        if self.closed:
            return ""
        if self.gate.why_paused:
            return self.gate.why_paused
        return "" if self.outgoing.may_read else "the client does not read its answers"

    @property
    def principal(self) -> Principal:
        """Return the client's role, or nobody without authentication."""
        return NOBODY if self.login is None else self.login.principal

    def challenge(self) -> None:
        assert self.login is not None
        self.outgoing.auth_challenge(self.login.method, self.capabilities.agreed)
        self._sent()

    @property
    def supports_partial_producer(self) -> bool:
        return "supports_partial_producer" in self.capabilities.flags

    def check_liveness(self, answered: Callable[[bool], None]) -> None:
        if self.closed:  # its producers go with the commit under way
            self.broker.turn.after_commit(lambda error: answered(False))
        else:
            self.liveness.check(answered)

    def ended(self) -> None:
        """Note that the client sends no more."""
        self.left = True
        if self.outgoing.tap is not None:
            self.outgoing.tap.ended()
            self.gate.hurry()
        if self._decoder.pending:
            self.close(f"the client left inside a frame, of which it sent {self._decoder.pending} bytes")

    def close(self, reason: str = "") -> None:
        """Close the connection. Waiting bytes are still written, and the model forgets the connection's clients."""
        if self.closed:
            return
        self.closed = True
        self.gate.close()
        if self.outgoing.tap is not None:
            self.outgoing.tap.closed(Direction.CLIENT if self.left else Direction.BROKER, reason)
        if reason:
            log.warning("closing connection", peer=self.address, reason=reason)
        elif self.connected:
            log.info("connection closed", peer=self.address)
        if self.connected:
            about = {"client": self.address, "version": self.client_version, "why": reason}
            self.broker.cluster.news.tell(Kind.CLIENT_LEFT, **about)
        self.broker.turn.in_slices(self._let_go())
        self.liveness.stop()
        if self._refresh is not None:
            self._refresh.stop()
        self.broker.turn.flush(self)

    def _let_go(self) -> Iterator[None]:
        """Remove everything of the connection from the model, step by step."""
        for forget in self._left_behind():
            try:
                forget()
            except Exception as error:  # the others must be removed too
                log.error("cleanup of a closed connection failed", exception=error, peer=self.address)
            yield

    def _left_behind(self) -> Iterator[Callable[[], object]]:
        consumers, self.consumers = self.consumers, {}
        producers = [*self.producers.values(), *self.waiting_producers.values()]
        self.producers, self.waiting_producers = {}, {}
        for pending in list(self.pending_consumers.values()):
            yield pending.close
        for consumer in consumers.values():
            yield partial(_leave, consumer)
        for producer in producers:
            yield partial(producer.topic.producers.remove, producer)
        for watcher in list(self.watchers.values()):
            yield partial(self.broker.topics.watchers.remove, watcher)
        watches = (self.registered, self.lookups, self.topic_watches, self.coordinator_watches)
        for opened in [each for by_id in watches for each in by_id.values()]:
            yield opened.close


def _leave(consumer: Consumer) -> None:
    if not consumer.left:  # while others left, its topic may have been unloaded
        consumer.subscription.remove_consumer(consumer)


def sessions_of(broker: Broker) -> set[Session]:
    """Return the open connections of a broker."""
    return {session for session in broker.sessions if isinstance(session, Session)}


def open_session(
    broker: Broker,
    address: str,
    transport: Transport,
    certificate: Certificate | None = None,
    *,
    secure: bool = False,
    over_websocket: bool = False,
) -> Session:
    """Open a connection to a broker. One too many is told so, and closed."""
    session = Session(broker, address, transport, certificate, secure=secure, over_websocket=over_websocket)
    refusal = _refusal(broker, address)
    if refusal:
        session.error(NO_REQUEST, pb.NotAllowedError, refusal)
        session.close(refusal)
        return session
    broker.sessions.add(session)
    try:
        for told in broker.cluster.attached(Sessions).opened:
            told(session)
    except Exception:
        broker.close_session(session)
        raise
    return session


def _refusal(broker: Broker, address: str) -> str:
    """Return the reason to refuse a connection from `address`, "" to accept it."""
    most, most_of_one = broker.config.brokerMaxConnections, broker.config.brokerMaxConnectionsPerIp
    if 0 < most <= len(broker.sessions):
        return "Reached the maximum number of connections"
    host = address.rpartition(":")[0]
    if most_of_one > 0 and most_of_one <= sum(s.address.rpartition(":")[0] == host for s in broker.sessions):
        return f"Reached the maximum number of connections on address{address}"
    return ""
