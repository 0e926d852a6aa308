"""What persistent and non-persistent subscriptions share: their consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pulsarium.broker.model.client import Assigned, Client
from pulsarium.broker.model.dispatch.dispatcher import Dispatcher
from pulsarium.broker.model.dispatch.key_shared import KeySharedDispatcher
from pulsarium.broker.model.dispatch.selector.choice import selector_for
from pulsarium.broker.model.dispatch.shared import SharedDispatcher
from pulsarium.broker.model.dispatch.single_active import SingleActiveDispatcher
from pulsarium.broker.model.dispatch.stalling import StallingSharedDispatcher
from pulsarium.broker.model.errors import (
    ConsumerBusyError,
    ServiceNotReadyError,
    SubscriptionBusyError,
)
from pulsarium.broker.model.subscription.consumer import Consumer, ConsumerOptions
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.topic.base import Topic

SubType = pb.CommandSubscribe.SubType


class Subscription:
    """The consumers of one subscription, and the dispatcher of their type."""

    durable = False
    replicated = False

    def __init__(self, topic: Topic, name: str) -> None:
        self.topic = topic
        self.name = name
        self.dispatcher: Dispatcher | None = None  # none until the first consumer gave the type
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
            dispatcher = self._dispatcher_for(options)
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

    def _dispatcher_for(self, options: ConsumerOptions) -> Dispatcher:
        if options.type == SubType.Shared:
            return StallingSharedDispatcher(self) if self.topic.stores.profile.chunks_stall else SharedDispatcher(self)
        if options.type == SubType.Key_Shared:
            selector = selector_for(options.key_shared, self.topic.stores.config)
            return KeySharedDispatcher(self, selector, options.key_shared)
        return SingleActiveDispatcher(
            options.type,
            str(self.topic.name),
            self._failover_index(),
            self.topic.stores.clock,
            self._failover_delay_ms(),
            self._activated,
        )

    def _failover_index(self) -> int:
        """Which of several Failover consumers is active; below zero a ring of hashes decides."""
        return self.topic.name.partition_index

    def _failover_delay_ms(self) -> int | None:
        """How long a newly active Failover consumer waits; None: it is active without a word."""
        return self.topic.stores.config.activeConsumerFailoverDelayTimeMillis

    def _activated(self) -> None:
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
