"""Subscriptions: their consumers, the base class of their dispatchers, and those of non-persistent topics.

A subscription has consumers, and a dispatcher of their type, which chooses the consumer of each entry. Dispatchers
stand in `broker/model/dispatch`, and subscriptions with a cursor in `persistent.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from pulsarium.broker.model.client import AssignedBroker, Client, Delivery, delivery_of, holders
from pulsarium.broker.model.compaction.compacted import CompactedTopic
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import (
    ConsumerBusyError,
    ServiceNotReadyError,
    SubscriptionBusyError,
)
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.subscription.loops import RedeliveryCounts, RedeliveryLoop
from pulsarium.broker.model.subscription.options import ConsumerOptions
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.subscription.throttle import Throttle
from pulsarium.broker.net.slices import Slice
from pulsarium.proto.entry import is_plain, messages_in, visible_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import words_of
from pulsarium.proto.numbers import INT_MAX
from pulsarium.proto.topic_name import TopicName

SubType = pb.CommandSubscribe.SubType
KEPT = 0.9
"""Weight of the old value in the running average of messages an entry."""


class SubscribedTopic(Protocol):
    """A topic, as its subscriptions see it."""

    closed: bool
    moved: bool
    moved_to: AssignedBroker | None

    @property
    def name(self) -> TopicName: ...

    @property
    def subscriptions(self) -> Mapping[str, Subscription]: ...

    @property
    def stores(self) -> Stores: ...

    @property
    def policies(self) -> Policies: ...

    def now_ms(self) -> int: ...

    def note_move(self) -> None:
        """Note that messages or clients came, went or were acknowledged."""
        ...

    def unsubscribe(self, name: str, why: str = "") -> None: ...

    def dispatcher_for(self, subscription: Subscription, options: ConsumerOptions) -> Dispatcher: ...


class Consumer:
    """A consumer, one client's end of a subscription: its permits, unacknowledged messages and counters."""

    __slots__ = (
        "acked",
        "acked_ms",
        "auto_schema",
        "blocked",
        "blocked_permits",
        "bytes_out",
        "client",
        "connected_ms",
        "consumed_ms",
        "consumer_id",
        "epoch",
        "first_consumed_flow_ms",
        "first_sent_ms",
        "flow_ms",
        "key_shared",
        "left",
        "messages_out",
        "messages_per_entry",
        "metadata",
        "name",
        "partition",
        "pending",
        "permits",
        "priority_level",
        "read_compacted",
        "redelivered",
        "subscription",
        "type",
        "unacked",
    )

    def __init__(
        self, client: Client, subscription: Subscription, options: ConsumerOptions, partition: int, now_ms: int
    ) -> None:
        self.client = client
        self.subscription = subscription
        self.consumer_id = options.consumer_id
        self.name = options.name
        self.type = options.type
        self.priority_level = options.priority_level
        self.read_compacted = options.read_compacted
        self.epoch = options.epoch
        self.key_shared = options.key_shared
        self.metadata = options.metadata
        self.auto_schema = options.auto_schema
        self.partition = partition
        self.left = False  # the subscription has removed the consumer
        self.permits = 0
        self.unacked = 0
        self.blocked = False  # the consumer has reached maxUnackedMessagesPerConsumer
        self.blocked_permits = 0  # permits that came while the consumer was blocked
        self.pending: dict[Position, int] = {}  # unacknowledged messages of each entry; Shared types only
        self.messages_out = 0
        self.messages_per_entry = 0.0  # a running average
        self.bytes_out = 0
        self.connected_ms = now_ms
        self.acked = self.redelivered = 0  # for the rates of the stats, which count as Pulsar does
        self.acked_ms = 0
        self.consumed_ms = 0
        self.first_sent_ms = 0
        self.flow_ms = 0
        self.first_consumed_flow_ms = 0

    @property
    def can_receive(self) -> bool:
        return self.permits > 0 and not self.blocked and self.client.room > 0

    def add_permits(self, permits: int) -> None:
        """Add permits. They wrap as int32, as in Pulsar."""
        if self.blocked:
            self.blocked_permits += permits
            return
        total = self.permits + permits
        self.permits = total if total <= INT_MAX else (total + 2**31) % 2**32 - 2**31

    def unblock(self) -> None:
        """Let the consumer receive again, and add the permits that came while it was blocked."""
        self.blocked = False
        permits, self.blocked_permits = self.blocked_permits, 0
        if permits:
            self.add_permits(permits)

    def deliver(self, deliveries: Sequence[Delivery], *, permits: int, messages: int, size: int) -> None:
        """Send entries, and count their permits, messages and bytes.

        A batch may drive the permits below zero. A partly acknowledged batch costs only its remaining messages.
        """
        self.permits -= permits
        self.messages_out += messages
        average = messages / len(deliveries)
        if self.messages_per_entry >= 1:
            average = KEPT * self.messages_per_entry + (1 - KEPT) * average
        self.messages_per_entry = average
        self.bytes_out += size
        topic = self.subscription.topic
        self.consumed_ms = topic.now_ms()
        if not topic.moved:
            topic.note_move()
        if not self.first_sent_ms:
            self.first_sent_ms = self.consumed_ms
        self.client.messages(self.consumer_id, self.partition, self.epoch, deliveries)


Entries = Sequence[tuple[Position, bytes]]


def reads() -> Iterator[None]:
    """Yield for each read of a dispatch, until the dispatch has taken a slice of time."""
    slice_ = Slice()
    yield
    while not slice_.is_over:
        yield


class Dispatcher(ABC):
    """Consumers of a subscription, and the rule that gives each entry to one of them."""

    type: int  # CommandSubscribe.SubType
    shares_messages = False  # whether several consumers receive messages at the same time

    consumers: Collection[Consumer]  # in the order of their priority levels
    active: Consumer | None = None  # the served consumer of Exclusive and Failover
    unacked = 0  # unacknowledged messages of all consumers; Shared types only
    blocked = False  # maxUnackedMessagesPerSubscription
    delayed: Collection[Position] = ()  # messages that wait for their deliver_at_time
    # recently joined consumers, with the read position at that time
    joined: Mapping[Consumer, Position] = MappingProxyType({})
    waiting_count = 0  # entries that were read, and wait for a consumer that can take them
    cursor: ManagedCursor  # only set for persistent subscriptions; nothing else is dispatched

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        if subscription.cursor is not None:
            self.cursor = subscription.cursor
        self._max_read = subscription.topic.stores.config.dispatcherMaxReadBatchSize
        # redelivery counts, in memory until the last consumer leaves
        self.redeliveries = RedeliveryCounts()
        self.throttle: Throttle | None = None  # only set while a dispatch rate is in effect
        self.closing = False  # consumers are being disconnected, and no other takes over

    def mismatch(self, options: ConsumerOptions) -> str:
        """Return why a consumer with these options cannot join, to follow "Active subscription", or ""."""
        if options.type == self.type:
            return ""
        return (
            f"type of '{SubType.Name(self.type)}' is different than the connecting consumer's type "
            f"'{SubType.Name(options.type)}'."
        )

    @abstractmethod
    def add_consumer(self, consumer: Consumer) -> None:
        """Admit a consumer, or raise the error for its client."""

    @abstractmethod
    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer. Other consumers get its unacknowledged messages."""

    @property
    def served(self) -> Collection[Consumer]:
        """Return the consumers that receive messages. Others wait to become active."""
        return self.consumers

    def will_redeliver(self, position: Position) -> bool:
        """Return whether an entry waits to be redelivered."""
        return False

    def count_delayed(self, *, unacknowledged: bool) -> int:
        """Count delayed messages, with or without those that were acknowledged meanwhile."""
        return 0

    def forget_delayed(self) -> None:
        """Forget all delayed messages, because the cursor has passed them."""
        return

    @abstractmethod
    def consumer_for(self, entry: bytes) -> Consumer | None:
        """Return the consumer for an entry of a non-persistent topic, or None to drop the entry."""

    @abstractmethod
    def dispatch(self) -> Reason:
        """Deliver as much as possible, and return why dispatch stopped."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None) -> None:
        """Redeliver the unacknowledged messages at `positions`, or all of the consumer."""

    def refuse(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Note negative acknowledgements. Nothing later of these keys is delivered until they are acknowledged."""
        return

    def take_returned(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Deliver entries again that the client returned unseen, which counts as no redelivery."""
        return

    def passed(self, mark_delete: Position) -> None:
        """Note that the mark-delete position has moved."""
        return

    def _hand_over(self, consumer: Consumer, entries: Entries, permits: int, source: PositionSet | None = None) -> int:
        """Deliver entries to a consumer while `permits` last and its connection has room; return the number handled.

        Each entry leaves `source` before it is handled, because sending may end the connection, which puts entries
        back.
        """
        has_room = room = consumer.client.room
        cursor = self.cursor
        redeliveries, some_partly = self.redeliveries, cursor.has_parts
        transactions = cursor.ledger.transactions
        some_hidden = bool(entries) and entries[0][0] <= transactions.hidden_through
        deliveries: list[Delivery] = []
        dealt_with = total = acked = 0
        for position, entry in entries:
            if total >= permits or room <= 0:
                break
            dealt_with += 1
            if source is not None:
                source.discard(position)
            if some_hidden and transactions.hides(position, entry):
                cursor.ack(position)
                continue
            messages = 1
            if not is_plain(entry):
                metadata = visible_metadata(entry)
                if metadata is None:  # undecodable metadata: skipped, as in Pulsar
                    cursor.ack(position)
                    continue
                if self._holds_back(consumer, position, metadata):
                    continue
                messages = metadata.num_messages_in_batch
            ack_set: Sequence[int] = ()
            if some_partly and (left := cursor.left_of(position)) is not None:
                if not left:  # open transactions acknowledged all of the entry
                    continue
                ack_set, whole, messages = words_of(left), messages, left.bit_count()
                acked += whole - messages
            total += messages
            room -= len(entry)
            count = redeliveries.get(position, 0) if redeliveries else 0
            deliveries.append(delivery_of((position, entry, messages, count, ack_set)))
        if deliveries:
            self._delivering(consumer, deliveries, total)
            if self.throttle is not None:
                self.throttle.delivered(len(deliveries), total + acked, has_room - room)
            consumer.deliver(deliveries, permits=total, messages=total + acked, size=has_room - room)
        return dealt_with

    def _allowed(self, entries: int) -> int:
        """Return how many of `entries` the dispatch rates allow now. After 0, the throttle dispatches again."""
        return entries if self.throttle is None else self.throttle.entries(entries)

    def _holds_back(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        """Return whether an entry must wait. If so, keep its position for later."""
        return False

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery], messages: int) -> None:
        """Record unacknowledged messages. Called before sending, because sending may end the connection."""
        return

    def _dispatch_again(self) -> Reason:
        """Let other work run, and dispatch again after it."""
        self._subscription.dispatch_next_turn()
        return Reason.NEXT_TURN

    def nothing_more(self) -> Reason:
        """Return why a read found no entry."""
        return Reason.OPEN_TRANSACTION if self.cursor.is_held() else Reason.CAUGHT_UP

    def resume(self, consumer: Consumer) -> None:
        """Note that a consumer got permits, or that its connection has room again."""
        return

    def settle(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Drop entries from the unacknowledged messages: `consumer` acknowledged them, whichever consumer has them."""
        return

    def settle_partly(self, consumer: Consumer, position: Position, remaining: int) -> None:
        """Keep only `remaining` unacknowledged messages of a partly acknowledged batch."""
        return

    def settle_in_transaction(self, consumer: Consumer, position: Position, remaining: int) -> None:
        """Keep only `remaining` unacknowledged messages of an entry that a transaction acknowledged."""
        return

    @abstractmethod
    def give_back(self, positions: Sequence[Position]) -> None:
        """Redeliver entries, because the transaction that acknowledged them was aborted."""

    def policies_changed(self) -> None:
        """Apply changed policies of the topic."""
        return

    def reset(self) -> None:
        """Forget all deliveries, because the cursor was moved and no consumer is left."""
        return

    def loop(self) -> tuple[Position, int] | None:
        """Return the entry that is redelivered again and again and never acknowledged, and its redeliveries."""
        worst = self.redeliveries.worst()
        return None if worst is None else (worst, self.redeliveries[worst])

    def hash_of(self, metadata: pb.MessageMetadata) -> int | None:
        """Return the hash of an entry's key, or None where keys do not choose the consumer."""
        return None

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        """Return the state of an unacknowledged entry."""
        return Reason.TO_BE_DELIVERED if self._any_ready() else self.blocked_reason()

    def holder(self, position: Position) -> Consumer | None:
        """Return the consumer that has an entry, or for which a read entry waits."""
        return None

    def undelivered(self) -> list[Iterable[Position]]:
        """Return the positions of each kind of waiting entries, in order. Some may be acknowledged meanwhile."""
        return []

    def _any_ready(self) -> bool:
        return any(consumer.can_receive for consumer in self.consumers)

    def blocked_reason(self) -> Reason:
        """Return why no consumer can receive messages."""
        if not self.consumers:
            return Reason.NO_CONSUMER
        if any(consumer.permits > 0 and consumer.blocked for consumer in self.consumers):
            return Reason.CONSUMERS_OWE
        return Reason.NOT_WRITABLE if any(c.permits > 0 for c in self.consumers) else Reason.NO_PERMITS


@dataclass(slots=True)
class Expired:
    """Counts of expired entries of a subscription, for its stats."""

    total: int = 0
    tried_ms: int = 0  # the last check for expired entries


class Subscription:
    """The consumers of one subscription, and the dispatcher of their type."""

    durable = False
    replicated = False
    cursor: ManagedCursor | None = None  # only persistent subscriptions have a cursor
    reason: Reason | None = None  # why the last dispatch stopped; only persistent subscriptions have a reason
    throttle: Throttle | None = None

    def __init__(self, topic: SubscribedTopic, name: str) -> None:
        self.topic = topic
        self.name = name
        self.dispatcher: Dispatcher | None = None  # None until the first consumer brings the type
        self.expired = Expired()
        self.dropped = 0  # messages without a consumer that had permits; only non-persistent topics drop messages
        self.bytes_out = 0  # of consumers that have left, like the counters below
        self.messages_out = 0
        self.redelivered = 0
        self.flow_ms = self.consumed_ms = self.acked_ms = 0  # the latest times of consumers that have left

    @property
    def consumers(self) -> Collection[Consumer]:
        return self.dispatcher.consumers if self.dispatcher is not None else ()

    @property
    def type_name(self) -> str:
        """Return the subscription type for JSON and CONSUMER_STATS: "None" before the first consumer."""
        return SubType.Name(self.dispatcher.type) if self.dispatcher is not None else "None"

    def add_consumer(self, client: Client, options: ConsumerOptions) -> Consumer:
        """Attach a consumer and return it, or raise the error for its client."""
        if self.topic.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        dispatcher = self.dispatcher
        if dispatcher is None or (not dispatcher.consumers and dispatcher.mismatch(options)):
            dispatcher = self.topic.dispatcher_for(self, options)
        elif mismatch := dispatcher.mismatch(options):
            text = f"Subscription is of different type. Active subscription {mismatch}"
            raise SubscriptionBusyError(text, type=self.type_name, held_by=holders(self.consumers))
        self._check_limit(options.type)
        consumer = Consumer(client, self, options, self.topic.name.partition_index, self.topic.now_ms())
        self._before_adding(dispatcher)
        dispatcher.add_consumer(consumer)
        self.topic.note_move()
        return consumer

    def _check_limit(self, type: int) -> None:
        """Enforce maxConsumersPerSubscription, where 0 is no limit.

        Exclusive has its own limit and its own error.
        """
        most = self.topic.policies.max_consumers_per_subscription
        if type != SubType.Exclusive and 0 < most <= len(self.consumers):
            text, there = "Subscription reached max consumers limit", holders(self.consumers)
            raise ConsumerBusyError(text, limit="maxConsumersPerSubscription", allowed=most, held_by=there)

    def _before_adding(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    @property
    def failover_index(self) -> int:
        """Return the index of the active Failover consumer; below zero, a hash ring chooses the consumer."""
        return self.topic.name.partition_index

    @property
    def failover_delay_ms(self) -> int | None:
        """Return the delay in milliseconds before a newly active Failover consumer is served.

        None activates the consumer without delay and without ACTIVE_CONSUMER_CHANGE.
        """
        return self.topic.stores.config.activeConsumerFailoverDelayTimeMillis

    def activated(self) -> None:
        """Start reading for the new active consumer."""

    def remove_consumer(self, consumer: Consumer) -> None:
        """Detach a consumer that closed or lost its connection, and keep its counters."""
        assert self.dispatcher is not None
        consumer.left = True
        self.dispatcher.remove_consumer(consumer)
        self.bytes_out += consumer.bytes_out
        self.messages_out += consumer.messages_out
        self.redelivered += consumer.redelivered
        self.topic.note_move()
        self.flow_ms = max(self.flow_ms, consumer.flow_ms)
        self.consumed_ms = max(self.consumed_ms, consumer.consumed_ms)
        self.acked_ms = max(self.acked_ms, consumer.acked_ms)
        if not self.consumers:
            self._last_consumer_left()

    def may_be_dropped_by(self, consumer: Consumer) -> bool:
        """Return whether UNSUBSCRIBE needs no force: the consumer is alone, and is not a passive Failover consumer."""
        return self.dispatcher is None or (len(self.consumers) <= 1 and consumer in self.dispatcher.served)

    @property
    def compacted(self) -> CompactedTopic:
        """Return the compacted part of the topic."""
        raise NotImplementedError

    def dispatch_soon(self) -> None:
        """Dispatch at the end of this turn. Does nothing without a cursor."""
        return

    def dispatch_next_turn(self) -> None:
        """Dispatch in a turn of its own. Does nothing without a cursor."""
        return

    def resume(self, consumer: Consumer) -> None:
        """Note that a consumer can take more: it has permits, or its connection has room again."""
        if self.dispatcher is not None:
            self.dispatcher.resume(consumer)
        self.dispatch_soon()

    def forget_if_unused(self) -> None:
        """Clear the subscription if its first consumer was refused and it has no other."""
        if not self.consumers:
            self._last_consumer_left()

    def _last_consumer_left(self) -> None: ...

    @property
    def has_backlog(self) -> bool:
        """Return whether the subscription has a backlog."""
        return False

    def disconnect_consumers(self, assigned: AssignedBroker | None = None) -> None:
        """Send CLOSE_CONSUMER to all consumers, with the broker that serves the topic now, and detach them."""
        with self._nobody_follows():
            self.disconnect_those(lambda consumer: True, assigned)

    @contextmanager
    def _nobody_follows(self) -> Iterator[None]:
        """Suspend the choice of an active consumer while consumers are disconnected, as Pulsar does."""
        dispatcher = self.dispatcher
        if dispatcher is not None:
            dispatcher.closing = True
        yield
        if dispatcher is not None:
            dispatcher.closing = False

    def disconnect_those(self, unwanted: Callable[[Consumer], bool], assigned: AssignedBroker | None = None) -> None:
        """Disconnect the consumers for which `unwanted` returns True."""
        for consumer in [each for each in self.consumers if unwanted(each)]:
            consumer.client.close_consumer(consumer.consumer_id, assigned)
            # a client without CLOSE_CONSUMER loses its connection, and with it all its consumers
            if not consumer.left:
                self.remove_consumer(consumer)

    def flow(self, consumer: Consumer, permits: int) -> None:
        """Add permits of a FLOW."""
        consumer.flow_ms = self.topic.now_ms()
        if not consumer.first_consumed_flow_ms:
            consumer.first_consumed_flow_ms = consumer.flow_ms
        consumer.add_permits(permits)
        self.resume(consumer)


NOWHERE = Position(0, 0)  # the message id of every message of a non-persistent topic


class SubscribedNonPersistentTopic(SubscribedTopic, Protocol):
    """A non-persistent topic, as its subscriptions see it."""

    def forget_subscription(self, subscription: NonPersistentSubscription) -> None: ...


class NonPersistentSubscription(Subscription):
    """A subscription of a non-persistent topic: consumers without a cursor."""

    topic: SubscribedNonPersistentTopic

    @property
    def failover_index(self) -> int:
        return max(self.topic.name.partition_index, 0)

    @property
    def failover_delay_ms(self) -> int | None:
        # without a cursor nothing is read again, so there is nothing to wait for
        return None if self.topic.stores.profile.silent_non_persistent_failover else 0

    def publish(self, entry: bytes) -> None:
        """Deliver an entry now, or drop it."""
        consumer = self.dispatcher.consumer_for(entry) if self.dispatcher is not None else None
        messages = messages_in(entry)
        if consumer is None or messages is None:
            self.dropped += messages or 0
        else:
            delivery = Delivery(NOWHERE, entry, messages, 0, ())
            consumer.deliver([delivery], permits=messages, messages=messages, size=len(entry))

    def forget_if_unused(self) -> None:
        """Keep a new subscription whose first consumer was refused.

        As in Pulsar, it goes once other consumers came and left.
        """

    def _last_consumer_left(self) -> None:
        self.topic.forget_subscription(self)


def redelivery_loop(subscription: Subscription) -> RedeliveryLoop | None:
    """Return the worst redelivery loop of a subscription, or None."""
    dispatcher = subscription.dispatcher
    found = None if dispatcher is None else dispatcher.loop()
    if dispatcher is None or found is None:
        return None
    position, redelivered = found
    holder = dispatcher.holder(position) or dispatcher.active
    if holder is None and len(dispatcher.consumers) == 1:
        holder = next(iter(dispatcher.consumers))
    return RedeliveryLoop(position, redelivered + 1, None if holder is None else holder.name)
