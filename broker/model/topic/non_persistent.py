"""Non-persistent topics: nothing is stored (B-37)."""

from __future__ import annotations

from pulsarium.broker.model.ledger.managed_ledger import Pending, Stores
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.subscription.non_persistent import NOWHERE, NonPersistentSubscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.producer import Producer
from pulsarium.proto.topic_name import TopicName


class NonPersistentTopic(Topic):
    """Hands each entry to the subscriptions that are there, and answers at once."""

    def __init__(self, name: TopicName, stores: Stores, policies: Policies) -> None:
        super().__init__(name, stores, policies)
        self._subscriptions: dict[str, NonPersistentSubscription] = {}

    @property
    def subscriptions(self) -> dict[str, NonPersistentSubscription]:
        return self._subscriptions

    def _in_use(self, producers: int, consumers: int) -> str:
        return f"Topic has {producers + consumers} connected producers/consumers"

    def publish(
        self, producer: Producer, sequence_id: int, highest_sequence_id: int, messages: int, entry: bytes
    ) -> None:
        self.messages_in += messages
        self.bytes_in += len(entry)
        for subscription in list(self._subscriptions.values()):  # a delivery may end a connection, and with it one
            subscription.publish(entry)
        producer.persisted([Pending(producer, NOWHERE, sequence_id, highest_sequence_id)])

    def subscribe(self, name: str) -> NonPersistentSubscription:
        """The subscription of this name, made when there is none."""
        found = self._subscriptions.get(name)
        if found is None:
            found = self._subscriptions[name] = NonPersistentSubscription(self, name)
        return found

    def unsubscribe(self, name: str) -> None:
        subscription = self._subscriptions.pop(name, None)
        if subscription is not None:  # it is gone with its last consumer
            subscription.delete()

    def forget_subscription(self, subscription: NonPersistentSubscription) -> None:
        """It lost its last consumer."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
