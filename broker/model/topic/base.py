"""The base class of topics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pulsarium.broker.model.client import AssignedBroker, Client, holders
from pulsarium.broker.model.compaction.compaction import Compaction
from pulsarium.broker.model.context import Context
from pulsarium.broker.model.cursor.records import NO_SUBSCRIPTION_PROPERTIES, SubscriptionProperties
from pulsarium.broker.model.dispatch.entry_buckets import EntryBucketDispatcher
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher, RecentlyJoinedDispatcher
from pulsarium.broker.model.dispatch.selector import selector_for
from pulsarium.broker.model.dispatch.shared import SharedDispatcher, StallingSharedDispatcher
from pulsarium.broker.model.dispatch.single_active import SingleActiveDispatcher
from pulsarium.broker.model.errors import (
    ConsumerBusyError,
    MetadataError,
    ProducerBusyError,
    ServiceNotReadyError,
    TopicHasClientsError,
)
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger, PendingPublish
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.policy.policies import Policies, PublishRate
from pulsarium.broker.model.rate.rates import PublishLimiter, SubscribeRate
from pulsarium.broker.model.subscription.base import Consumer, Dispatcher, Subscription
from pulsarium.broker.model.subscription.options import ConsumerOptions
from pulsarium.broker.model.topic.checks import EntryChecks, entry_checks
from pulsarium.broker.model.topic.deduplication import Deduplication
from pulsarium.broker.model.topic.producers import AppendRun, Producer, ProducerClient, ProducerOptions, Producers
from pulsarium.broker.model.transaction.buffer import TransactionBuffer
from pulsarium.broker.model.transaction.coordinator import Participant
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.special_names import SYSTEM_READERS, has_system_name, is_remote, is_system_topic
from pulsarium.proto.topic_name import TopicName

TRANSACTIONS_OFF = "Transaction buffer disable!"
NO_PENDING_ACKS = "The transaction is disabled"
FAILED_ON_SUBSCRIPTION = "Handle end txn on subscription failed: "


@dataclass(frozen=True, slots=True)
class Joining:
    """The subscription that a SUBSCRIBE asks for, and the client that sends it."""

    address: str
    consumer_name: str
    consumer_id: int
    durable: bool = True
    start: Position | None = None
    earliest: bool = False
    rollback_seconds: int = 0
    properties: SubscriptionProperties = field(default_factory=lambda: NO_SUBSCRIPTION_PROPERTIES)
    replicated: bool = False


class Topic(ABC):
    """A topic that this broker serves."""

    takes_message_ids = False  # whether SENDs may have message ids, as on shadow topics
    # None for non-persistent topics; transactions also when they are disabled
    ledger: ManagedLedger | None = None
    compaction: Compaction | None = None
    transactions: TransactionBuffer | None = None

    def __init__(self, name: TopicName, stores: Context, policies: Policies, epoch: int | None = None) -> None:
        self.name = name
        self.stores = stores
        self.policies = policies
        self.broker_limits = stores.limits_of(name)
        self.group_limits = stores.limits_of_group(policies.resource_group)
        self.publish_limit = PublishLimiter(stores.clock)
        self.publish_limited = 0  # how often a producer's connection had to pause
        self.publish_limit.update(policies.publish_rate)
        self.checks = self._entry_checks()
        self.deduplication: Deduplication | None = None
        claims_stay = stores.profile.refused_producers_stay_exclusive
        self.producers = Producers(str(name), epoch, self._keep_epoch, self._producer_removed, claims_stay=claims_stay)
        self.subscribe_rate = SubscribeRate(stores.clock, policies.subscribe_rate)
        self.moved = False  # since the notes of `Moves` were taken
        self.moved_to: AssignedBroker | None = None  # the cluster to which the topic has migrated
        self.closed = False  # unloaded or deleted: references to it are stale, and the topic must be looked up again
        self.messages_in = 0
        self.bytes_in = 0
        self.messages_out_before = 0  # of deleted subscriptions
        self.bytes_out_before = 0
        self._internal_bytes_out_before = 0
        self.created_ms = stores.clock.now_ms()
        self.used = stores.clock.monotonic()  # time of the last known use, in monotonic seconds

    @property
    def schema_name(self) -> TopicName:
        """Return the topic whose schemas this topic uses."""
        return self.name

    @property
    def cursor_names(self) -> list[str]:
        """Return the names of subscriptions. As in Pulsar, that includes the compaction's."""
        return list(self.subscriptions)

    @property
    def has_messages(self) -> bool:
        """Return whether there are messages, which a new schema would have to fit."""
        return self.messages_in > 0

    @property
    @abstractmethod
    def subscriptions(self) -> Mapping[str, Subscription]: ...

    @abstractmethod
    def join(self, name: str, joining: Joining) -> Subscription:
        """Return the subscription for a consumer, created if necessary."""

    def make_initial(self, name: str) -> None:
        """Create the subscription that a new producer asks for. Does nothing on a non-persistent topic."""
        return

    @abstractmethod
    def buffer(self) -> Participant:
        """Return the participant for transactions that published here.

        Raise `BrokerServiceError` without transactions.
        """

    @abstractmethod
    def pending_acks_of(self, name: str) -> Participant | None:
        """Return the participant for transactions that acknowledged on a subscription, or None for a deleted one."""

    def send_away(self) -> None:
        """Disconnect all clients, because the topic has migrated to another cluster."""
        self.producers.disconnect(self.moved_to)
        for subscription in list(self.subscriptions.values()):
            subscription.disconnect_consumers(self.moved_to)

    def is_subscribed(self, *, caught_up_is_enough: bool) -> bool:
        """Return whether its subscriptions keep the topic from being deleted as inactive."""
        return bool(self.subscriptions)

    def is_retained(self, idle: float) -> bool:
        """Return whether retention keeps the topic from being deleted `idle` seconds after its last use."""
        return False

    def _keep_epoch(self, epoch: int) -> None:
        """Store the topic epoch, if the topic is persistent."""
        return

    def dispatcher_for(self, subscription: Subscription, options: ConsumerOptions) -> Dispatcher:
        """Return a dispatcher of the type that a subscription's first consumer asks for."""
        return dispatcher_for(subscription, options)

    def now_ms(self) -> int:
        return self.stores.clock.now_ms()

    def note_move(self) -> None:
        """Note that messages or clients of the topic came, went or were acknowledged."""
        if not self.moved:
            self.stores.moves.note(self)

    def set_policies(self, policies: Policies) -> None:
        """Apply changed policies."""
        if policies.subscribe_rate != self.policies.subscribe_rate:
            self.subscribe_rate = SubscribeRate(self.stores.clock, policies.subscribe_rate)
        self.policies = policies
        self.group_limits = self.stores.limits_of_group(policies.resource_group)
        self.publish_limit.update(policies.publish_rate)
        self.checks = self._entry_checks()
        if policies.encryption_required:
            self.producers.disconnect_those(lambda producer: not producer.encrypted)

    def _entry_checks(self) -> EntryChecks | None:
        return entry_checks(
            self.policies,
            self.stores.config,
            persistent=self.name.is_persistent,
            limiters=(self.publish_limit, self.broker_limits.publish, self.group_limits.publish),
        )

    def check_producer(self, name: str, *, encrypted: bool) -> None:
        """Raise the error for a PRODUCER that the topic refuses now, in Pulsar's order."""
        limit = self.policies.max_producers
        if limit > 0 and not is_remote(name) and limit <= sum(not is_remote(each) for each in self.producers.by_name):
            text, there = f"Topic '{self.name}' reached max producers limit", self.producers.by_name.values()
            raise ProducerBusyError(text, limit="maxProducersPerTopic", allowed=limit, held_by=holders(there))
        self._check_backlog()
        required = self.policies.encryption_required or self.stores.config.encryptionRequireOnProducer
        if required and not encrypted and not has_system_name(self.name):
            raise MetadataError(f"Encryption is required in {self.name}", limit="encryptionRequired")

    def check_max_consumers(self, address: str) -> None:
        """Raise `ConsumerBusyError` for a SUBSCRIBE beyond maxConsumersPerTopic, or that of one address."""
        limit = self.policies.max_consumers
        if 0 < limit <= sum(len(subscription.consumers) for subscription in self.subscriptions.values()):
            text = "Topic reached max consumers limit"
            held_by = holders([*self._consumers()])
            raise ConsumerBusyError(text, limit="maxConsumersPerTopic", allowed=limit, held_by=held_by)
        limit = self.stores.config.maxSameAddressConsumersPerTopic
        if self._exceeds(limit, address, (each.client for each in self._consumers())):
            text, name = "Topic reached max same address consumers limit", "maxSameAddressConsumersPerTopic"
            raise ConsumerBusyError(text, limit=name, allowed=limit, held_by=holders([*self._consumers()]))

    def _consumers(self) -> Iterator[Consumer]:
        """Yield all consumers. Without a limit, nobody asks for the first one."""
        for subscription in self.subscriptions.values():
            yield from subscription.consumers

    def _exceeds(self, limit: int, address: str, clients: Iterable[Client]) -> bool:
        """Return whether so many of a topic's clients have the address of a new one. System topics have no limit."""
        if limit <= 0 or is_system_topic(self.name):
            return False
        host = _host(address)
        return limit <= sum(_host(client.address) == host for client in clients)

    def add_producer(self, client: ProducerClient, options: ProducerOptions) -> tuple[Producer, bool]:
        """Add a producer. Return it, and False if it waits for its turn (WaitForExclusive)."""
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        limit = self.stores.config.maxSameAddressProducersPerTopic
        present = self.producers.by_name.values()
        if not is_remote(options.name) and self._exceeds(limit, client.address, (each.client for each in present)):
            text, name = (
                f"Topic '{self.name}' reached max same address producers limit",
                "maxSameAddressProducersPerTopic",
            )
            raise ProducerBusyError(text, limit=name, allowed=limit, held_by=holders(present))
        producer = Producer(client, self, options, self.now_ms())
        self.note_move()
        return producer, self.producers.add(producer)

    def _check_backlog(self) -> None:
        """Raise `BacklogQuotaExceededError` while the backlog exceeds its quota."""
        return

    def touch(self) -> None:
        """Note that the topic is in use, or was until now."""
        self.used = self.stores.clock.monotonic()

    def _producer_removed(self, producer: Producer) -> None:
        self.touch()
        self.note_move()
        if self.deduplication is not None:
            self.deduplication.producer_removed(producer.name)

    def last_sequence_id(self, producer_name: str) -> int:
        """Return the highest sequence id from a producer of this name, or -1 without deduplication."""
        return -1 if self.deduplication is None else self.deduplication.last_sequence_id(producer_name)

    @abstractmethod
    def publish(self, producer: Producer, pending: PendingPublish) -> None:
        """Append an entry, perhaps in a transaction. `producer.persisted` or `producer.failed` follows."""

    @property
    def append_run(self) -> AppendRun | None:
        """Return a function that publishes entries together, or None when something has to look at each of them."""
        return None

    @abstractmethod
    def publish_unwatched(self, entry: bytes) -> Position:
        """Append an entry without a producer, and return its position."""

    @abstractmethod
    def unsubscribe(self, name: str, why: str = "") -> None:
        """Delete a subscription and disconnect its consumers, or raise `SubscriptionNotFoundError`.

        `why` is for people, if nobody asked for it.
        """

    def _subscription_removed(self, subscription: Subscription) -> None:
        """Keep the counters of a subscription that was removed."""
        self.note_move()
        self.messages_out_before += subscription.messages_out
        self.bytes_out_before += subscription.bytes_out
        if subscription.name.startswith(SYSTEM_READERS):
            self._internal_bytes_out_before += subscription.bytes_out

    @property
    def internal_bytes_out(self) -> int:
        """Return the bytes that went to the readers of brokers."""
        internal = [each for name, each in self.subscriptions.items() if name.startswith(SYSTEM_READERS)]
        now = sum(each.bytes_out + sum(consumer.bytes_out for consumer in each.consumers) for each in internal)
        return self._internal_bytes_out_before + now

    @property
    def shadows(self) -> list[TopicName]:
        """Return the loaded shadow topics of this topic."""
        return []

    def check_unused(self, policies_of: Callable[[TopicName], Policies]) -> None:
        """Raise `TopicHasClientsError` with REST's text when clients are connected."""
        producers = len(self.producers) + self._feeding_brokers(policies_of)
        consumers = sum(len(subscription.consumers) for subscription in self.subscriptions.values())
        if producers or consumers:
            raise TopicHasClientsError(self._in_use(producers, consumers))

    def _feeding_brokers(self, policies_of: Callable[[TopicName], Policies]) -> int:
        """Return how many brokers publish here, beside the producers."""
        return 0

    def _in_use(self, producers: int, consumers: int) -> str:
        clients = producers + consumers
        return (
            f"Topic has {clients} client{'s' if clients > 1 else ''} connected Including {consumers} consumers, "
            f"{producers} producers, and 0 replicators."
        )

    def stop_compaction(self) -> None:
        """End compactions that an engine runs elsewhere."""
        return

    def close(self, assigned: AssignedBroker | None = None, *, deleted: bool = False) -> None:
        """Disconnect all clients, to unload or delete the topic. Its deletion disconnects consumers first.

        Clients look the topic up again, unless `assigned` names the broker that serves it now.
        """
        self.closed = True
        self.publish_limit.update(PublishRate())  # releases paused connections
        if not deleted:
            self.producers.disconnect(assigned)
        for subscription in list(self.subscriptions.values()):
            subscription.disconnect_consumers(assigned)
        if deleted:
            self.producers.disconnect(assigned)


def _host(address: str) -> str:
    """Return the host of HOST:PORT."""
    return address.rpartition(":")[0]


def dispatcher_for(subscription: Subscription, options: ConsumerOptions) -> Dispatcher:
    """Return a dispatcher of the type that the first consumer asks for."""
    stores = subscription.topic.stores
    if options.type == pb.CommandSubscribe.Shared:
        kind = StallingSharedDispatcher if stores.profile.chunks_stall else SharedDispatcher
        return kind(subscription)
    if options.type == pb.CommandSubscribe.Key_Shared:
        persistent = subscription.cursor is not None
        if persistent and options.key_shared.entry_buckets and stores.profile.entry_buckets:
            return EntryBucketDispatcher(subscription, options.key_shared)
        classic = persistent and stores.config.subscriptionKeySharedUseClassicPersistentImplementation
        selector = selector_for(options.key_shared, stores.config, classic=classic)
        sharing = RecentlyJoinedDispatcher if classic else KeySharedDispatcher
        return sharing(subscription, selector, options.key_shared)
    return SingleActiveDispatcher(subscription, options.type)
