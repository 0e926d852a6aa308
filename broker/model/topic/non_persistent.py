"""Non-persistent topics: nothing is stored (B-37)."""

from __future__ import annotations

from pulsarium.broker.model.context import Context
from pulsarium.broker.model.errors import BrokerServiceError, NotAllowedError
from pulsarium.broker.model.ledger.managed_ledger import Pending
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.subscription.base import NOWHERE, NonPersistentSubscription
from pulsarium.broker.model.topic.base import FAILED_ON_SUBSCRIPTION, TRANSACTIONS_OFF, Joining, Topic
from pulsarium.broker.model.topic.producers import Producer, ProducerClient
from pulsarium.broker.model.transaction.coordinator import Participant
from pulsarium.proto.topic_name import TopicName

DROPPED = Position(2**64 - 1, 2**64 - 1)  # in a receipt: -1:-1 as it is sent


class NonPersistentTopic(Topic):
    """Hands each entry to the subscriptions that are there, and answers at once."""

    def __init__(self, name: TopicName, stores: Context, policies: Policies) -> None:
        super().__init__(name, stores, policies)
        self._subscriptions: dict[str, NonPersistentSubscription] = {}

    @property
    def subscriptions(self) -> dict[str, NonPersistentSubscription]:
        return self._subscriptions

    def _in_use(self, producers: int, consumers: int) -> str:
        return f"Topic has {producers + consumers} connected producers/consumers"

    def publish(self, producer: Producer, pending: Pending) -> None:
        if pending.txn is not None:
            raise NotAllowedError(TRANSACTIONS_OFF)
        pending.position = NOWHERE
        if self._takes_more(producer.client):
            self.pass_on(pending.entry)
        else:
            pending.position = DROPPED
            producer.dropped += pending.messages
        producer.persisted([pending])

    def publish_unwatched(self, entry: bytes) -> Position:
        self.pass_on(entry)
        return NOWHERE

    def pass_on(self, entry: bytes) -> None:
        """Give an entry to everybody who is there."""
        for subscription in list(self._subscriptions.values()):  # a delivery may end a connection, and with it one
            subscription.publish(entry)

    def _takes_more(self, client: ProducerClient) -> bool:
        """Whether a connection has not sent too much at once (maxConcurrentNonPersistentMessagePerConnection).

        Here a message is passed on before the next is looked at, so what came together counts as concurrent. Where
        Pulsar would stop reading until all is answered (maxPendingPublishRequestsPerConnection) it starts anew.
        """
        config = self.stores.config
        if client.unstored > config.maxConcurrentNonPersistentMessagePerConnection:
            return False
        client.unstored += 1
        if client.unstored >= config.maxPendingPublishRequestsPerConnection:
            client.unstored = 0
        return True

    def join(self, name: str, joining: Joining) -> NonPersistentSubscription:
        return self.subscribe(name)

    def buffer(self) -> Participant:
        raise BrokerServiceError("Unsupported operation endTxn in non-persistent topic.")

    def pending_acks_of(self, name: str) -> Participant | None:
        raise BrokerServiceError(f"{FAILED_ON_SUBSCRIPTION}Unsupported operation end txn for NonPersistentSubscription")

    def subscribe(self, name: str) -> NonPersistentSubscription:
        """The subscription of this name, made when there is none."""
        found = self._subscriptions.get(name)
        if found is None:
            found = self._subscriptions[name] = NonPersistentSubscription(self, name)
        return found

    def unsubscribe(self, name: str) -> None:
        subscription = self._subscriptions.get(name)
        if subscription is not None:
            subscription.disconnect_consumers()  # it goes with the last

    def forget_subscription(self, subscription: NonPersistentSubscription) -> None:
        """It lost its last consumer."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            self._subscription_removed(subscription)
