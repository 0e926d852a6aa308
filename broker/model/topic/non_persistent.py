"""Non-persistent topics, which store nothing."""

from __future__ import annotations

from pulsarium.broker.model.context import Context
from pulsarium.broker.model.errors import BrokerServiceError, NotAllowedError
from pulsarium.broker.model.ledger.managed_ledger import PendingPublish
from pulsarium.broker.model.ledger.position import NOT_STORED, Position
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.subscription.base import NOWHERE, NonPersistentSubscription
from pulsarium.broker.model.topic.base import FAILED_ON_SUBSCRIPTION, TRANSACTIONS_OFF, Joining, Topic
from pulsarium.broker.model.topic.producers import Producer, ProducerClient
from pulsarium.broker.model.transaction.coordinator import Participant
from pulsarium.proto.topic_name import TopicName


class NonPersistentTopic(Topic):
    """A topic that passes each entry to its subscriptions, and answers at once."""

    def __init__(self, name: TopicName, stores: Context, policies: Policies) -> None:
        super().__init__(name, stores, policies)
        self._subscriptions: dict[str, NonPersistentSubscription] = {}

    @property
    def subscriptions(self) -> dict[str, NonPersistentSubscription]:
        return self._subscriptions

    def _in_use(self, producers: int, consumers: int) -> str:
        return f"Topic has {producers + consumers} connected producers/consumers"

    def publish(self, producer: Producer, pending: PendingPublish) -> None:
        if pending.txn is not None:
            raise NotAllowedError(TRANSACTIONS_OFF)
        pending.position = NOWHERE
        self.note_move()
        if self._takes_more(producer.client):
            self.pass_on(pending.entry)
        else:
            pending.position = NOT_STORED
            producer.dropped += pending.messages
        producer.persisted([pending])

    def publish_unwatched(self, entry: bytes) -> Position:
        self.pass_on(entry)
        return NOWHERE

    def pass_on(self, entry: bytes) -> None:
        """Pass an entry to all subscriptions."""
        # a delivery may end a connection, and so remove a subscription
        for subscription in list(self._subscriptions.values()):
            subscription.publish(entry)

    def _takes_more(self, client: ProducerClient) -> bool:
        """Return whether a connection has not sent too much at once (maxConcurrentNonPersistentMessagePerConnection).

        This broker passes each message on before it reads the next one. So all messages that arrive together count as
        concurrent. The count starts anew where Pulsar would pause reading (maxPendingPublishRequestsPerConnection).
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
        """Return the subscription of this name, created if necessary."""
        found = self._subscriptions.get(name)
        if found is None:
            found = self._subscriptions[name] = NonPersistentSubscription(self, name)
        return found

    def unsubscribe(self, name: str, why: str = "") -> None:
        subscription = self._subscriptions.get(name)
        if subscription is not None:
            subscription.disconnect_consumers()  # the subscription goes with its last consumer

    def forget_subscription(self, subscription: NonPersistentSubscription) -> None:
        """Remove a subscription that lost its last consumer."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            self._subscription_removed(subscription)
