"""The state of one connection, without IO: bytes go in, and bytes wait to go out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pulsarium.broker.auth.identity import NOBODY, Certificate, Principal
from pulsarium.broker.auth.login import Login
from pulsarium.broker.commands.registry import CloseConnection
from pulsarium.broker.logs import Log
from pulsarium.broker.model.client import Assigned, Delivery
from pulsarium.broker.model.topic.producers import Producer, ProducerClient
from pulsarium.broker.session.capabilities import Capabilities
from pulsarium.broker.session.gate import Gate
from pulsarium.broker.session.liveness import LateSends, Liveness
from pulsarium.broker.session.outgoing import HIGH_WATER, Outgoing
from pulsarium.broker.session.refresh import Refresh
from pulsarium.broker.strangers import at_binary_port
from pulsarium.proto.commands import Direction
from pulsarium.proto.framing import FrameDecoder, frame_head
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.text import text_of

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker
    from pulsarium.broker.commands.coordinator_watch import CoordinatorWatch
    from pulsarium.broker.commands.scalable import LookupSession
    from pulsarium.broker.commands.scalable_consumers import RegisteredConsumer
    from pulsarium.broker.commands.scalable_watch import TopicWatch
    from pulsarium.broker.commands.subscribe import PendingConsumer
    from pulsarium.broker.model.ledger.managed_ledger import Pending
    from pulsarium.broker.model.subscription.consumer import Consumer
    from pulsarium.broker.model.topic.watchers import TopicListWatcher
    from pulsarium.broker.session.transport import Transport

log = Log("session")


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
    ) -> None:
        config = broker.config
        self.broker = broker
        self.gate = Gate(self, broker.handlers_before_connect, config.maxPendingPublishRequestsPerConnection)
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
        self.lookups: dict[int, LookupSession] = {}  # of scalable topics
        self.registered: dict[int, RegisteredConsumer] = {}  # with controllers of scalable topics
        self.topic_watches: dict[int, TopicWatch] = {}  # of scalable topics in namespaces
        self.coordinator_watches: dict[int, CoordinatorWatch] = {}
        self.pending_producers: set[int] = set()
        self.pending_consumers: dict[int, PendingConsumer] = {}
        self.late_sends = LateSends(broker.clock.keep_alive, config.keepAliveIntervalSeconds)
        self.outgoing = Outgoing()
        self.unstored = 0
        self._was_full = False
        self._promised = 0  # bytes of replies that wait for a commit
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
        if self.gate.unanswered:
            self.broker.cluster.publish_buffer.published(self, len(data))
        if self._decoder.error is not None:
            self._refuse(str(self._decoder.error), data)

    def _refuse(self, reason: str, data: bytes) -> None:
        """Close the connection for bytes that are no frame. A client of another protocol gets an answer in it."""
        urls = self.broker.listener_at(self.broker.advertised_address)
        stranger = None if self.connected else at_binary_port(data, urls, secure=self.secure)
        if stranger is not None:
            reason = stranger.reason
            self.outgoing.past_the_tap(stranger.answer)
        self.close(reason)

    @property
    def may_read(self) -> bool:
        """Return whether more commands may be read.

        Not while the connection is paused, while too many unread replies wait, or while a tap holds commands back.
        """
        return not (self.paused or self.gate.unread) and self.outgoing.may_read

    @property
    def paused(self) -> bool:
        return self.closed or self.gate.paused

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

    def error(self, request_id: int, code: int, text: str) -> None:
        log.info("request refused", peer=self.address, error=pb.ServerError.Name(code), reason=text)
        self.outgoing.error(request_id, code, text)
        self._sent()

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

    def not_kept(self, request_id: int, error: Exception) -> None:
        """Answer a request whose commit failed."""
        self.error(request_id, pb.PersistenceError, str(error))

    def pong(self) -> None:
        self.outgoing.pong()
        self._sent()

    def ping(self, *, unasked: bool) -> bool:
        if unasked and not self.capabilities.takes(pb.BaseCommand.PING):
            return False
        self.outgoing.ping()
        self._sent()
        return True

    def send_receipts(self, producer_id: int, entries: Sequence[Pending]) -> None:
        self.outgoing.receipts(producer_id, entries)
        self._sent()

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str) -> None:
        log.info("message refused", peer=self.address, error=pb.ServerError.Name(code), reason=text)
        self.outgoing.send_error(producer_id, sequence_id, code, text)
        self._sent()

    def messages(
        self, consumer_id: int, partition: int, consumer_epoch: int | None, deliveries: Sequence[Delivery]
    ) -> None:
        capabilities = self.capabilities
        if not capabilities.takes_batches and any(delivery.messages > 1 for delivery in deliveries):
            self.close("a batch for a client that cannot take one (W-04)")
            return
        self.outgoing.messages(consumer_id, partition, consumer_epoch, deliveries, capabilities.bare)
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

    def close_producer(self, producer_id: int, assigned: Assigned | None = None) -> None:
        self.forget_producer(producer_id)
        self.late_sends.closed(producer_id)
        if not self.capabilities.takes_closings:
            self.close("a producer was closed, and this client can only be told by disconnecting it")
            return
        assigned = self._sent_away(pb.CommandTopicMigrated.Producer, producer_id, assigned)
        self.outgoing.close_producer(producer_id, assigned)
        self._sent()

    def close_consumer(self, consumer_id: int, assigned: Assigned | None = None) -> None:
        self.consumers.pop(consumer_id, None)
        if not self.capabilities.takes_closings:
            self.close("a consumer was closed, and this client can only be told by disconnecting it")
            return
        assigned = self._sent_away(pb.CommandTopicMigrated.Consumer, consumer_id, assigned)
        self.outgoing.close_consumer(consumer_id, assigned)
        self._sent()

    def _sent_away(
        self, kind: pb.CommandTopicMigrated.ResourceType, resource_id: int, assigned: Assigned | None
    ) -> Assigned | None:
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
        if self.broker.cluster.hooks is not None:
            self.broker.cluster.hooks.connecting(self, connect)
        exposing = self.broker.config.exposingBrokerEntryMetadataToClientEnabled
        self.capabilities = Capabilities.of(connect, self.profile, exposing_broker_metadata=exposing)
        self.gate.handlers = self.broker.handlers_of(self.profile)
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
        let_go(self)
        self.liveness.stop()
        if self._refresh is not None:
            self._refresh.stop()
        self.broker.turn.flush(self)


def let_go(session: Session) -> None:
    """Remove everything of a connection from the model."""
    for forget in _all_of(session):
        try:
            forget()
        except Exception as error:  # the others must be removed too
            log.error("cleanup of a closed connection failed", exception=error, peer=session.address)


def _all_of(session: Session) -> Iterator[Callable[[], object]]:
    consumers, session.consumers = session.consumers, {}
    producers = [*session.producers.values(), *session.waiting_producers.values()]
    session.producers, session.waiting_producers = {}, {}
    for pending in list(session.pending_consumers.values()):
        yield pending.cancel
    for consumer in consumers.values():
        yield partial(consumer.subscription.remove_consumer, consumer)
    for producer in producers:
        yield partial(producer.topic.producers.remove, producer)
    for watcher in session.watchers.values():
        yield partial(session.broker.topics.watchers.remove, watcher)
    for registered in session.registered.values():
        yield registered.disconnected
    opened: list[LookupSession | TopicWatch | CoordinatorWatch] = [
        *session.lookups.values(),
        *session.topic_watches.values(),
        *session.coordinator_watches.values(),
    ]
    for watch in opened:
        yield watch.close
