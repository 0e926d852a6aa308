"""A subscription without connections, and clients that can close in the middle of a delivery, as sessions can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.client import AssignedBroker, Client, Delivery
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.policy.policies import resolve
from pulsarium.broker.model.subscription.base import Consumer
from pulsarium.broker.model.subscription.options import ConsumerOptions, KeySharedOptions
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.storage.interface import Storage
from pulsarium.proto.topic_name import TopicName
from tests.broker.model.stores import NAME, Publisher, append, cluster_of

PLENTY = 1 << 20


class FakeClient:
    """A minimal connection for dispatch, with `room` in bytes. With `closes`, it closes at its next delivery."""

    address = client_version = ""
    unstored = 0

    def __init__(self, room: int = PLENTY, *, takes_closings: bool = True) -> None:
        self.consumers: dict[int, Consumer] = {}
        self.got: list[Delivery] = []
        self.messages_of: dict[int, int] = {}  # how many messages each consumer received
        self.closes = self.closed = False
        self._free = room
        self._was_full = False
        self._takes_closings = takes_closings

    @property
    def room(self) -> int:
        self._was_full |= not self.has_room
        return self._free if self.has_room else 0

    @property
    def has_room(self) -> bool:
        """Return whether the connection has room, without a promise to resume the consumers later."""
        return not self.closed and self._free > 0

    def messages(
        self, consumer_id: int, partition: int, consumer_epoch: int | None, deliveries: Sequence[Delivery]
    ) -> None:
        if self.closes:
            self.close("")
            return
        assert not self.closed
        for delivery in deliveries:
            self.got.append(delivery)
            self._free -= len(delivery.entry)
            self.messages_of[consumer_id] = self.messages_of.get(consumer_id, 0) + delivery.messages

    def drained(self, room: int = PLENTY) -> None:
        """Give the connection room again, as when the socket has taken all bytes."""
        self._free = room
        if self._was_full:
            self._was_full = False
            for consumer in self.consumers.values():
                consumer.subscription.resume(consumer)

    def close_consumer(self, consumer_id: int, assigned: AssignedBroker | None = None) -> None:
        self.consumers.pop(consumer_id, None)
        if not self._takes_closings:
            self.close("")

    def active_consumer_change(self, consumer_id: int, is_active: bool) -> None: ...

    def reached_end_of_topic(self, consumer_id: int) -> None: ...

    def close(self, reason: str) -> None:
        if not self.closed:
            self.closed = True
            consumers, self.consumers = list(self.consumers.values()), {}
            for consumer in consumers:
                consumer.subscription.remove_consumer(consumer)

    def leave(self, consumer: Consumer) -> None:
        """Remove a consumer, as its CLOSE_CONSUMER does."""
        del self.consumers[consumer.consumer_id]
        consumer.subscription.remove_consumer(consumer)


class Stand:
    """A topic with one subscription. Each call that changes something is a turn of its own."""

    def __init__(self, storage: Storage | None = None, *, durable: bool = True, **config: Any) -> None:
        self.cluster: Cluster = cluster_of(storage, **config)
        self.cluster.turn.begin()
        policies = resolve(self.cluster.config, {}, {})
        log = TopicLog(NAME, self.cluster)
        self.topic = PersistentTopic(TopicName.parse("t"), self.cluster, policies, log)
        self.subscription: PersistentSubscription
        if durable:
            self.subscription = self.topic.subscribe("sub", earliest=True)
        else:
            self.subscription = self.topic.open_reader("sub", None, earliest=True)
        self._consumers = 0
        self.end_turn()

    def end_turn(self) -> None:
        self.cluster.turn.finish()

    def publish(self, *entries: bytes) -> list[Position]:
        publisher = Publisher()
        append(self.topic.ledger, self.cluster, *entries, publisher=publisher)
        return publisher.kept

    def join(
        self, client: FakeClient, type: int, permits: int = 0, options: KeySharedOptions | None = None, **fields: Any
    ) -> Consumer:
        number = self._consumers = self._consumers + 1
        key_shared = options or KeySharedOptions()
        asked = ConsumerOptions(number, f"c{number}", type, key_shared=key_shared, **fields)
        consumer = client.consumers[number] = self.subscription.add_consumer(cast(Client, client), asked)
        if permits:
            self.flow(consumer, permits)
        return consumer

    def flow(self, consumer: Consumer, permits: int) -> None:
        self.subscription.flow(consumer, permits)
        self.end_turn()

    def ack(self, consumer: Consumer, *positions: Position) -> None:
        self.subscription.acknowledge(consumer, positions, save_now=False)
        self.end_turn()

    def redeliver(self, consumer: Consumer, *positions: Position) -> None:
        self.subscription.redeliver(consumer, positions or None, None)
        self.end_turn()


class Loud:
    """A log for `turn` that raises each error. The real log would hide the error."""

    @staticmethod
    def error(event: str, *, exception: Exception) -> None:
        raise exception
