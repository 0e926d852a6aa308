"""What persistent and non-persistent topics share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from pulsarium.broker.model.client import Client
from pulsarium.broker.model.errors import ServiceNotReadyError, TopicHasClientsError
from pulsarium.broker.model.ledger.managed_ledger import Stores
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.topic.producer import Producer, ProducerOptions
from pulsarium.broker.model.topic.producers import Producers
from pulsarium.proto.topic_name import TopicName


class Topic(ABC):
    """A topic that this broker serves."""

    def __init__(self, name: TopicName, stores: Stores, policies: Policies, epoch: int | None = None) -> None:
        self.name = name
        self.stores = stores
        self.policies = policies
        self.producers = Producers(str(name), epoch, self._keep_epoch)
        self.closed = False  # unloaded or deleted; whoever still holds it must look the topic up again
        self.messages_in = 0
        self.bytes_in = 0
        self.created_ms = stores.clock.now_ms()

    @property
    @abstractmethod
    def subscriptions(self) -> Mapping[str, Subscription]: ...

    def _keep_epoch(self, epoch: int) -> None:
        """Keep the topic epoch, where there is something to keep it in."""
        return

    def now_ms(self) -> int:
        return self.stores.clock.now_ms()

    def set_policies(self, policies: Policies) -> None:
        """They changed: what depends on them follows."""
        self.policies = policies

    def add_producer(self, client: Client, options: ProducerOptions) -> tuple[Producer, bool]:
        """Let a producer in; False when it waits for its turn (WaitForExclusive)."""
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        producer = Producer(client, self, options, self.now_ms())
        return producer, self.producers.add(producer, self.policies.max_producers)

    @abstractmethod
    def publish(
        self, producer: Producer, sequence_id: int, highest_sequence_id: int, messages: int, entry: bytes
    ) -> None:
        """Take an entry; `producer.persisted` or `producer.failed` answers."""

    @abstractmethod
    def unsubscribe(self, name: str) -> None:
        """Delete a subscription with its consumers; SubscriptionNotFoundError when there is none."""

    def check_unused(self) -> None:
        """Raise when anybody is connected, in the words that REST shows."""
        producers = len(self.producers)
        consumers = sum(len(subscription.consumers) for subscription in self.subscriptions.values())
        if producers or consumers:
            raise TopicHasClientsError(self._in_use(producers, consumers))

    def _in_use(self, producers: int, consumers: int) -> str:
        clients = producers + consumers
        return (
            f"Topic has {clients} client{'s' if clients > 1 else ''} connected Including {consumers} consumers, "
            f"{producers} producers, and 0 replicators."
        )

    def close(self) -> None:
        """Disconnect everybody (unload, delete): clients look the topic up again (B-50)."""
        self.closed = True
        self.producers.disconnect()
        for subscription in list(self.subscriptions.values()):
            subscription.disconnect_consumers()
