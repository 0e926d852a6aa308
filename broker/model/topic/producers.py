"""Producers of a topic: unique names and access modes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol

from pulsarium.broker.model.client import AssignedBroker, Client, holders
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    NamingError,
    OwnerMustAnswerError,
    ProducerBusyError,
    ProducerFencedError,
    TopicFencedError,
    TopicTerminatedError,
)
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.rate.rates import RatedPublisher
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.topic.checks import EntryChecks
from pulsarium.proto.entry import checksum_matches
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.numbers import signed, unsigned
from pulsarium.proto.topic_name import TopicName

AppendRun = Callable[[Sequence[PendingPublish]], None]
"""Append entries of one producer to a topic."""

_MESSAGES = attrgetter("messages")


class ProducerClient(Client, RatedPublisher, Protocol):
    """A client connection, as producers see it."""

    unstored: int  # messages for non-persistent topics that the connection sent in this turn

    @property
    def supports_partial_producer(self) -> bool: ...

    def send_receipts(self, producer_id: int, entries: Sequence[PendingPublish]) -> None:
        """Send SEND_RECEIPT for each of `entries`."""
        ...

    def send_error(self, producer_id: int, sequence_id: int, code: int, text: str, **about: object) -> None: ...

    def producer_ready(self, producer: Producer) -> None:
        """Tell the client that a waiting producer is ready (WaitForExclusive)."""
        ...

    def error(self, request_id: int, code: int, text: str, **about: object) -> None:
        """Refuse a request. `about` is whom the refusal concerns, for the log."""
        ...

    def close_producer(self, producer_id: int, assigned: AssignedBroker | None = None) -> None:
        """Tell the client that the broker closed its producer, and forget the producer."""
        ...

    def forget_producer(self, producer_id: int) -> None:
        """Forget the producer without telling the client (ExclusiveWithFencing)."""
        ...

    def publish_finished(self, count: int) -> None:
        """Note that publishes of this connection were answered (maxPendingPublishRequestsPerConnection)."""
        ...


class PublishedTopic(Protocol):
    """A topic, as its producers and their connections see it."""

    takes_message_ids: bool
    closed: bool
    publish_limited: int
    checks: EntryChecks | None
    messages_in: int
    bytes_in: int
    producers: Producers

    @property
    def name(self) -> TopicName: ...

    @property
    def stores(self) -> Stores: ...

    @property
    def subscriptions(self) -> Mapping[str, Subscription]: ...

    def last_sequence_id(self, producer_name: str) -> int:
        """Return the highest sequence id from a producer of this name, or -1 without deduplication."""
        ...

    def publish(self, producer: Producer, pending: PendingPublish) -> None:
        """Append an entry, perhaps in a transaction. `producer.persisted` or `producer.failed` follows."""
        ...

    @property
    def append_run(self) -> AppendRun | None:
        """Return a function that publishes entries together, or None when something has to look at each of them."""
        ...


@dataclass(slots=True)
class ProducerOptions:
    """Options of a producer, from its PRODUCER."""

    producer_id: int
    request_id: int
    name: str
    encrypted: bool = False
    access_mode: int = pb.Shared
    topic_epoch: int | None = None
    schema_version: bytes = b""
    metadata: dict[str, str] = field(default_factory=dict)


class Producer:
    """A producer: publishes entries, and sends receipts once they are committed."""

    __slots__ = (
        "access_mode",
        "bytes_in",
        "client",
        "closed",
        "connected_ms",
        "dropped",
        "encrypted",
        "messages_in",
        "metadata",
        "name",
        "producer_id",
        "request_id",
        "schema_version",
        "topic",
        "topic_epoch",
    )

    def __init__(self, client: ProducerClient, topic: PublishedTopic, options: ProducerOptions, now_ms: int) -> None:
        self.client = client
        self.topic = topic
        self.producer_id = options.producer_id
        self.request_id = options.request_id
        self.name = options.name
        self.encrypted = options.encrypted
        self.access_mode = options.access_mode
        self.topic_epoch = options.topic_epoch
        self.schema_version = options.schema_version
        self.metadata = options.metadata
        self.connected_ms = now_ms
        self.messages_in = 0
        self.bytes_in = 0
        self.dropped = 0  # messages that exceeded the rate of a non-persistent topic
        self.closed = False

    @property
    def last_sequence_id(self) -> int:
        """Return the last sequence id that the topic has, for PRODUCER_SUCCESS."""
        return self.topic.last_sequence_id(self.name)

    def publish(self, pending: PendingPublish) -> None:
        """Check an entry of a SEND, and pass it to the topic."""
        entry, messages = pending.entry, pending.messages
        if checksum_matches(entry) is False:
            self.refuse(pending, pb.ChecksumError, "Checksum failed on the broker")
            return
        topic = self.topic
        checks, size = topic.checks, len(entry)
        try:
            if checks is not None:
                checks.check_encryption(entry)
            self.messages_in += messages
            self.bytes_in += size
            topic.messages_in += messages
            topic.bytes_in += size
            if checks is not None:
                checks.count(self.client, messages, size)
                checks.check_limits(entry, pending.is_chunk)
            topic.publish(self, pending)
        except BrokerServiceError as error:
            self.refuse(pending, error.code, error.text, **error.about)

    def publish_run(self, run: Sequence[PendingPublish], append_run: AppendRun) -> None:
        """Check the checksums of entries, and pass the entries to their topic's `append_run`."""
        whole: list[PendingPublish] = []
        try:
            for pending in run:
                if checksum_matches(pending.entry) is False:
                    self.refuse(pending, pb.ChecksumError, "Checksum failed on the broker")
                else:
                    whole.append(pending)
        finally:  # an entry too short for a checksum closes the connection, after those before it are published
            topic = self.topic
            messages, size = sum(map(_MESSAGES, whole)), sum([len(pending.entry) for pending in whole])
            self.messages_in += messages
            self.bytes_in += size
            topic.messages_in += messages
            topic.bytes_in += size
            try:
                append_run(whole)
            except BrokerServiceError as error:
                for pending in whole:
                    self.refuse(pending, error.code, error.text, **error.about)

    @property
    def about(self) -> dict[str, object]:
        """Return the names for a refusal in the log."""
        return {"topic": str(self.topic.name), "producer": self.name}

    def refuse(self, pending: PendingPublish, code: int, text: str, **about: object) -> None:
        """Send SEND_ERROR."""
        # an absent highest sequence id is -1
        answered = max(signed(pending.sequence_id), signed(pending.highest_sequence_id))
        self.client.send_error(self.producer_id, unsigned(answered), code, text, **self.about, **about)
        self.client.publish_finished(1)

    def persisted(self, entries: Sequence[PendingPublish]) -> None:
        """Send receipts for committed entries."""
        self.client.send_receipts(self.producer_id, entries)
        self.client.publish_finished(len(entries))

    def forgotten(self, entries: Sequence[PendingPublish]) -> None:
        """Note that the topic of these entries was deleted meanwhile."""
        self.client.publish_finished(len(entries))

    def failed(self, entries: Sequence[PendingPublish], error: Exception) -> None:
        """Send SEND_ERROR for entries that could not be committed. Clients create their producer again."""
        for entry in entries:
            self.refuse(entry, pb.PersistenceError, str(error))


TERMINATED = "Topic was already terminated"
UNAVAILABLE = "Topic is temporarily unavailable"


class Producers:
    """The producers of a topic: admits shared and exclusive ones, or lets them wait.

    `keep_epoch` stores the topic epoch, which counts exclusive owners. `removed` is called with each admitted producer
    that leaves. With `claims_stay`, a producer that is refused after it claimed exclusive access stays the owner, as in
    Pulsar 4.2.
    """

    def __init__(
        self,
        topic: str,
        epoch: int | None,
        keep_epoch: Callable[[int], None],
        removed: Callable[[Producer], None] = lambda producer: None,
        *,
        claims_stay: bool = False,
    ) -> None:
        self.by_name: dict[str, Producer] = {}
        self.waiting: deque[Producer] = deque()
        self.epoch = epoch
        self._exclusive: str | None = None
        self._topic = topic
        self._keep_epoch = keep_epoch
        self._removed = removed
        self._claims_stay = claims_stay
        self._refusal: BrokerServiceError | None = None  # the error for waiting producers while all are disconnected

    def add(self, producer: Producer) -> bool:
        """Admit a producer, or return False if it must wait for its turn. Raise the error for the client."""
        if not self._claim(producer):
            return False
        self._take_name(producer)
        return True

    def wait_for_nothing(self, producer: Producer) -> Producer:
        """Let a producer of a terminated topic wait, if claims stay and there is one.

        Else raise `TopicTerminatedError`.
        """
        if self._claims_stay and not self._claim(producer):
            return producer
        raise TopicTerminatedError(TERMINATED)

    def _claim(self, producer: Producer) -> bool:
        if producer.access_mode == pb.Shared:
            self._check_shared()
            producer.topic_epoch = self.epoch
        elif producer.access_mode == pb.WaitForExclusive and (self.by_name or self._exclusive is not None):
            self.waiting.append(producer)
            return False
        else:
            self._make_exclusive(producer)
        return True

    def _check_shared(self) -> None:
        """Raise `ProducerBusyError` for a shared producer while another one has exclusive access, or waits for it."""
        if self._exclusive is not None or self.waiting:
            raise ProducerBusyError(self._owned, held_by=self._owners())

    @property
    def _owned(self) -> str:
        return f"Topic has an existing exclusive producer: {self._exclusive or 'null'}"

    def _owners(self) -> str:
        """Return the producers that have or await exclusive access. A refused claim has only a name."""
        return holders([*self.by_name.values(), *self.waiting]) or self._exclusive or ""

    def obstacle(self, name: str) -> BrokerServiceError | None:
        """Return the error for a shared producer of this name now, or None."""
        try:
            self._check_shared()
        except ProducerBusyError as error:
            return error
        owner = self.by_name.get(name)
        return None if owner is None else self._taken(owner)

    def _taken(self, owner: Producer) -> NamingError:
        text = f"Producer with name '{owner.name}' is already connected to topic '{self._topic}'"
        return NamingError(text, held_by=holders([owner]))

    def _make_exclusive(self, producer: Producer) -> None:
        if producer.access_mode == pb.ExclusiveWithFencing:
            self._fence_all(producer)
        elif self._exclusive is not None or self.waiting:
            raise ProducerFencedError(self._owned, held_by=self._owners())
        elif self.by_name:
            raise ProducerFencedError("Topic has existing shared producers", held_by=self._owners())
        self._own(producer)

    def _fence_all(self, owner: Producer) -> None:
        """Fence all producers. Waiting ones get an error; others lose their connection with their next SEND."""
        self._refuse_waiting(ProducerFencedError("Fenced out", held_by=holders([owner])))
        for producer in self.by_name.values():
            producer.closed = True
            producer.client.forget_producer(producer.producer_id)
            self._removed(producer)
        self.by_name.clear()
        self._exclusive = None

    def _refuse_waiting(self, error: BrokerServiceError) -> None:
        """Refuse all waiting producers."""
        while self.waiting:
            self._refuse(self.waiting.popleft(), error)

    def _refuse(self, waiter: Producer, error: BrokerServiceError) -> None:
        about = {"command": "PRODUCER", "topic": self._topic, "producer": waiter.name, **error.about}
        waiter.client.error(waiter.request_id, error.code, error.java_text, **about)
        waiter.closed = True
        waiter.client.forget_producer(waiter.producer_id)

    def _own(self, producer: Producer) -> None:
        wanted, current = producer.topic_epoch, self.epoch
        if wanted is not None and current is not None and wanted < current:
            raise ProducerFencedError(
                f"Topic epoch has already moved. Current epoch: {current}, Producer epoch: {wanted}"
            )
        self.epoch = wanted if wanted is not None else signed((-1 if current is None else current) + 1)
        self._keep_epoch(self.epoch)
        self._exclusive = producer.name
        producer.topic_epoch = self.epoch

    def _take_name(self, producer: Producer) -> None:
        owner = self.by_name.get(producer.name)
        if owner is not None:
            taken = self._taken(owner)
            if owner.client is producer.client:
                raise taken
            raise OwnerMustAnswerError(owner.client, taken)
        self.by_name[producer.name] = producer

    def remove(self, producer: Producer) -> None:
        """Remove a producer that closed or lost its connection. The next waiting producer takes over."""
        producer.closed = True
        if self.by_name.get(producer.name) is not producer:
            return  # as in Pulsar, a waiting producer keeps its place until its turn would come
        del self.by_name[producer.name]
        self._removed(producer)
        if not self.by_name:
            self._exclusive = None
            self._give_turn()

    def _give_turn(self) -> None:
        """Admit the next waiting producer, or refuse it while all are disconnected."""
        while self.waiting:
            following = self.waiting.popleft()
            try:
                if self._refusal is None or self._claims_stay:
                    self._own(following)
                if self._refusal is not None:
                    raise self._refusal
            except BrokerServiceError as error:
                self._refuse(following, error)
                if self._exclusive is not None:  # its claim stays, and those behind it hear nothing
                    return
                continue
            if following.closed:
                self._exclusive = None
                continue
            self.by_name[following.name] = following
            following.client.producer_ready(following)
            return

    def disconnect(self, assigned: AssignedBroker | None = None, *, terminated: bool = False) -> None:
        """Send CLOSE_PRODUCER to all producers, with the broker that serves the topic now.

        Waiting producers get an error, because they have no producer yet.
        """
        self._refusal = TopicTerminatedError(TERMINATED) if terminated else TopicFencedError(UNAVAILABLE)
        self.disconnect_those(lambda producer: True, assigned)
        self._refusal = None

    def disconnect_those(self, unwanted: Callable[[Producer], bool], assigned: AssignedBroker | None = None) -> None:
        """Disconnect the admitted producers for which `unwanted` returns True."""
        for producer in [each for each in self.by_name.values() if unwanted(each)]:
            producer.client.close_producer(producer.producer_id, assigned)
            self.remove(producer)

    def dismiss_waiting(self, unwanted: Callable[[Producer], bool], assigned: AssignedBroker | None = None) -> None:
        """Close the waiting producers for which `unwanted` returns True."""
        for waiter in [each for each in self.waiting if unwanted(each)]:
            waiter.closed = True
            self.waiting.remove(waiter)
            waiter.client.close_producer(waiter.producer_id, assigned)

    def __len__(self) -> int:
        return len(self.by_name)
