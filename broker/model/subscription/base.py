"""What all subscriptions share, their consumers; and those without a cursor."""

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
    """Entries that were too old for a subscription (B-24), as its stats show them."""

    total: int = 0
    tried_ms: int = 0  # when they were last looked for


class Subscription:
    """The consumers of one subscription, and the dispatcher of their type."""

    durable = False
    replicated = False
    cursor: ManagedCursor | None = None  # of a persistent one
    reason: Reason | None = None  # of that, why nothing more was delivered, the last time it was tried
    throttle: Throttle | None = None

    def __init__(self, topic: SubscribedTopic, name: str) -> None:
        self.topic = topic
        self.name = name
        self.dispatcher: Dispatcher | None = None  # none until the first consumer gave the type
        self.expired = Expired()
        self.dropped = 0  # messages that nobody had permits for, of one without a cursor
        self.bytes_out = 0  # of consumers that are gone
        self.messages_out = 0
        self.flow_ms = self.consumed_ms = self.acked_ms = 0  # the last time, but for consumers there

    @property
    def consumers(self) -> Sequence[Consumer]:
        return self.dispatcher.consumers if self.dispatcher is not None else ()

    @property
    def type_name(self) -> str:
        """The type as JSON and CONSUMER_STATS show it: None while nobody ever connected."""
        return SubType.Name(self.dispatcher.type) if self.dispatcher is not None else "None"

    def add_consumer(self, client: Client, options: ConsumerOptions) -> Consumer:
        """Attach a consumer; raises what it is told when it may not."""
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
        """maxConsumersPerSubscription; 0: none (C-13). Exclusive has its own limit, and its own words for it."""
        if type != SubType.Exclusive and 0 < self.topic.policies.max_consumers_per_subscription <= len(self.consumers):
            raise ConsumerBusyError("Subscription reached max consumers limit")

    def _before_adding(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    @property
    def failover_index(self) -> int:
        """Which of several Failover consumers is active; below zero a ring of hashes decides."""
        return self.topic.name.partition_index

    @property
    def failover_delay_ms(self) -> int | None:
        """How long a newly active Failover consumer waits; None: it is active without a word."""
        return self.topic.stores.config.activeConsumerFailoverDelayTimeMillis

    def activated(self) -> None:
        """The active consumer changed and may now be served."""

    def remove_consumer(self, consumer: Consumer) -> None:
        """A consumer closed, or its connection did."""
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
        """Whether UNSUBSCRIBE needs no force: nobody else is here, and one who waits to be active is not enough."""
        return self.dispatcher is None or (len(self.consumers) <= 1 and consumer in self.dispatcher.served)

    @property
    def compacted(self) -> CompactedTopic:
        """Return what compaction kept of the topic."""
        raise NotImplementedError

    def dispatch_soon(self) -> None:
        """Deliver what waits at the end of this turn, where anything does."""
        return

    def resume(self, consumer: Consumer) -> None:
        """A consumer can take more: it has permits, or its connection has room again."""
        if self.dispatcher is not None:
            self.dispatcher.resume(consumer)
        self.dispatch_soon()

    def forget_if_unused(self) -> None:
        """A consumer was refused: what lives only with its consumers goes when it has none."""
        if not self.consumers:
            self._last_consumer_left()

    def _last_consumer_left(self) -> None: ...

    @property
    def has_backlog(self) -> bool:
        """Whether there is anything that its consumers did not acknowledge."""
        return False

    def disconnect_consumers(self, assigned: Assigned | None = None) -> None:
        """Tell every consumer that it is closed (CLOSE_CONSUMER), and who serves it now, and let it go."""
        with self._nobody_follows():
            self.disconnect_those(lambda consumer: True, assigned)

    @contextmanager
    def _nobody_follows(self) -> Iterator[None]:
        """Consumers that are sent away meanwhile have none made active in their place, as in Pulsar."""
        dispatcher = self.dispatcher
        if dispatcher is not None:
            dispatcher.closing = True
        yield
        if dispatcher is not None:
            dispatcher.closing = False

    def disconnect_those(self, unwanted: Callable[[Consumer], bool], assigned: Assigned | None = None) -> None:
        """The same for some of them."""
        for consumer in [each for each in self.consumers if unwanted(each)]:
            consumer.client.close_consumer(consumer.consumer_id, assigned)
            if consumer in self.consumers:  # else an old client was disconnected, with all that it had
                self.remove_consumer(consumer)

    def flow(self, consumer: Consumer, permits: int) -> None:
        """FLOW: the consumer takes `permits` more messages."""
        consumer.flow_ms = self.topic.now_ms()
        if not consumer.first_consumed_flow_ms:
            consumer.first_consumed_flow_ms = consumer.flow_ms
        consumer.add_permits(permits)
        self.resume(consumer)


NOWHERE = Position(0, 0)  # the id that every message of a non-persistent topic has


class SubscribedNonPersistentTopic(SubscribedTopic, Protocol):
    """A non-persistent topic, as its subscriptions see it."""

    def forget_subscription(self, subscription: NonPersistentSubscription) -> None: ...


class NonPersistentSubscription(Subscription):
    """Has consumers but no cursor."""

    topic: SubscribedNonPersistentTopic

    @property
    def failover_index(self) -> int:
        return max(self.topic.name.partition_index, 0)

    @property
    def failover_delay_ms(self) -> int | None:
        return None  # there is nothing to read again, so nothing to wait for

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
        """As in Pulsar it stays, when it is new and its first consumer is refused, until others came and left."""

    def _last_consumer_left(self) -> None:
        self.topic.forget_subscription(self)
