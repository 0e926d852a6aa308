"""Subscriptions: the base class of all, and those of non-persistent topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.client import Assigned, Client, Delivery
from pulsarium.broker.model.compaction.compacted import CompactedTopic
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import (
    ConsumerBusyError,
    ServiceNotReadyError,
    SubscriptionBusyError,
)
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.stores import Stores
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.subscription.consumer import Consumer, ConsumerOptions
from pulsarium.broker.model.subscription.dispatcher import Dispatcher, Reason
from pulsarium.proto.entry import messages_in
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.topic_name import TopicName

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.throttle import Throttle

SubType = pb.CommandSubscribe.SubType


class SubscribedTopic(Protocol):
    """A topic, as its subscriptions see it."""

    closed: bool
    moved_to: Assigned | None

    @property
    def name(self) -> TopicName: ...

    @property
    def subscriptions(self) -> Mapping[str, Subscription]: ...

    @property
    def stores(self) -> Stores: ...

    @property
    def policies(self) -> Policies: ...

    def now_ms(self) -> int: ...

    def unsubscribe(self, name: str) -> None: ...

    def dispatcher_for(self, subscription: Subscription, options: ConsumerOptions) -> Dispatcher: ...


@dataclass(slots=True)
class Expired:
    """Counts of expired entries of a subscription (B-24), for its stats."""

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
        self.flow_ms = self.consumed_ms = self.acked_ms = 0  # the latest times of consumers that have left

    @property
    def consumers(self) -> Sequence[Consumer]:
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
            raise SubscriptionBusyError(f"Subscription is of different type. Active subscription {mismatch}")
        self._check_limit(options.type)
        consumer = Consumer(client, self, options, self.topic.name.partition_index, self.topic.now_ms())
        self._before_adding(dispatcher)
        dispatcher.add_consumer(consumer)
        return consumer

    def _check_limit(self, type: int) -> None:
        """Enforce maxConsumersPerSubscription, where 0 is no limit (C-13).

        Exclusive has its own limit and its own error.
        """
        if type != SubType.Exclusive and 0 < self.topic.policies.max_consumers_per_subscription <= len(self.consumers):
            raise ConsumerBusyError("Subscription reached max consumers limit")

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
        self.dispatcher.remove_consumer(consumer)
        self.bytes_out += consumer.bytes_out
        self.messages_out += consumer.messages_out
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

    def disconnect_consumers(self, assigned: Assigned | None = None) -> None:
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

    def disconnect_those(self, unwanted: Callable[[Consumer], bool], assigned: Assigned | None = None) -> None:
        """Disconnect the consumers for which `unwanted` returns True."""
        for consumer in [each for each in self.consumers if unwanted(each)]:
            consumer.client.close_consumer(consumer.consumer_id, assigned)
            # a client without CLOSE_CONSUMER loses its connection, and with it all its consumers
            if consumer in self.consumers:
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
        return None  # without a cursor nothing is read again, so there is nothing to wait for

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
