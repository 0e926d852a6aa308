"""What all dispatchers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.dispatch.reason import Reason
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.consumer import Consumer
from pulsarium.proto.entry import messages_in

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription


class Dispatcher(ABC):
    """The consumers of a subscription and the rule that gives each entry to one of them."""

    type: int  # CommandSubscribe.SubType
    counts_redeliveries = False

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []
        self.redeliveries: dict[Position, int] = {}  # in memory, until all consumers are gone (B-19)

    @abstractmethod
    def add_consumer(self, consumer: Consumer) -> None:
        """Let a consumer in, or raise what it is told."""

    @abstractmethod
    def remove_consumer(self, consumer: Consumer) -> None:
        """A consumer left; what it owed goes to others."""

    @abstractmethod
    def pick(self) -> Consumer | None:
        """The consumer that an entry would go to now."""

    @abstractmethod
    def dispatch(self, subscription: PersistentSubscription) -> Reason:
        """Deliver what can be delivered; why no more."""

    @abstractmethod
    def redeliver(
        self, subscription: PersistentSubscription, consumer: Consumer, positions: Sequence[Position] | None
    ) -> None:
        """REDELIVER_UNACKNOWLEDGED_MESSAGES: the named entries, or all that the consumer owes."""

    def _hand_over(self, cursor: ManagedCursor, consumer: Consumer, entries: Sequence[tuple[Position, bytes]]) -> int:
        """Deliver entries while the consumer has permits and its connection has room; how many were taken."""
        permits, room = has_permits, has_room = consumer.permits, consumer.client.room
        batch_acks, redeliveries = cursor.batch_acks, self.redeliveries
        some_partly = len(batch_acks) > 0
        deliveries: list[Delivery] = []
        taken = 0
        for position, entry in entries:
            if permits <= 0 or room <= 0:
                break
            taken += 1
            messages = messages_in(entry)
            if messages is None:  # no client may see it: it is passed over, as Pulsar does
                cursor.ack(position)
                continue
            ack_set: Sequence[int] = ()
            if some_partly and (ack_set := batch_acks.words(position)):
                messages = batch_acks.remaining(position)
            permits -= messages
            room -= len(entry)
            count = redeliveries.get(position, 0) if redeliveries else 0
            deliveries.append(Delivery(position, entry, messages, count, ack_set))
        if deliveries:
            self._delivering(consumer, deliveries)
            consumer.deliver(deliveries, messages=has_permits - permits, size=has_room - room)
        return taken

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery]) -> None:
        """Remember what a consumer owes, where that is counted; before it is sent, for that may end the connection."""
        return

    def acknowledged(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Whole entries were acknowledged through `consumer`, whoever has them."""
        return

    def acknowledged_partly(self, consumer: Consumer, position: Position, remaining: int) -> None:
        """Of a batch, `remaining` messages are still unacknowledged."""
        return

    def reset(self) -> None:
        """The cursor was moved; nothing that was delivered before counts any more."""
        return

    def blocked_reason(self) -> Reason:
        """Why `pick` gives nobody."""
        if not self.consumers:
            return Reason.NO_CONSUMER
        return Reason.NOT_WRITABLE if any(c.permits > 0 for c in self.consumers) else Reason.NO_PERMITS
