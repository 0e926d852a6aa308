"""What persistent and non-persistent subscriptions share: their consumers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsarium.broker.model.client import Client
from pulsarium.broker.model.dispatch.dispatcher import Dispatcher
from pulsarium.broker.model.dispatch.shared import SharedDispatcher
from pulsarium.broker.model.dispatch.single_active import SingleActiveDispatcher
from pulsarium.broker.model.errors import (
    ConsumerBusyError,
    NotAllowedError,
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

    def __init__(self, topic: Topic, name: str) -> None:
        self.topic = topic
        self.name = name
        self.dispatcher: Dispatcher | None = None  # none until the first consumer gave the type
        self.replicated: bool | None = None
        self.bytes_out = 0  # of consumers that are gone
        self.messages_out = 0
        self.flow_ms = self.consumed_ms = self.acked_ms = 0  # the last time, of consumers that are gone

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
        if dispatcher is None or (dispatcher.type != options.type and not dispatcher.consumers):
            dispatcher = self._dispatcher_for(options.type)
        elif dispatcher.type != options.type:
            raise SubscriptionBusyError(
                f"Subscription is of different type. Active subscription type of '{self.type_name}' is different than "
                f"the connecting consumer's type '{SubType.Name(options.type)}'."
            )
        self._check_limits()
        consumer = Consumer(client, self, options, self.topic.name.partition_index, self.topic.now_ms())
        self._before_adding(dispatcher)
        dispatcher.add_consumer(consumer)
        return consumer

    def _check_limits(self) -> None:
        """maxConsumersPerSubscription and maxConsumersPerTopic; 0: none (C-13)."""
        policies = self.topic.policies
        if 0 < policies.max_consumers_per_subscription <= len(self.consumers):
            raise ConsumerBusyError("Subscription reached max consumers limit")
        everybody = sum(len(subscription.consumers) for subscription in self.topic.subscriptions.values())
        if 0 < policies.max_consumers <= everybody:
            raise ConsumerBusyError("Topic reached max consumers limit")

    def _before_adding(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    def _dispatcher_for(self, type: int) -> Dispatcher:
        config = self.topic.stores.config
        if type == SubType.Shared:
            return SharedDispatcher(config.dispatcherMaxRoundRobinBatchSize)
        if type in (SubType.Exclusive, SubType.Failover):
            return SingleActiveDispatcher(
                type,
                str(self.topic.name),
                self.topic.name.partition_index,
                self.topic.stores.clock,
                self._failover_delay_ms(),
                self._activated,
            )
        raise NotAllowedError(f"{SubType.Name(type)} subscription is disabled by broker.")

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

    def dispatch_soon(self) -> None:
        """A consumer can take more: deliver what waits, where anything does."""
        return

    def _last_consumer_left(self) -> None: ...

    def disconnect_consumers(self) -> None:
        """Tell every consumer that it is closed (CLOSE_CONSUMER), and let it go."""
        for consumer in list(self.consumers):
            consumer.client.close_consumer(consumer.consumer_id)
            self.remove_consumer(consumer)

    def flow(self, consumer: Consumer, permits: int) -> None:
        """FLOW: the consumer takes `permits` more messages."""
        consumer.flow_ms = self.topic.now_ms()
        if not consumer.first_consumed_flow_ms:
            consumer.first_consumed_flow_ms = consumer.flow_ms
        consumer.add_permits(permits)
