"""What all dispatchers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsarium.broker.model.dispatch.reason import Reason
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.consumer import Consumer
from pulsarium.proto.entry import parse_metadata
from pulsarium.proto.errors import EntryError

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription

HIDDEN = -1


def messages_in(entry: bytes) -> int:
    """How many messages an entry counts for; HIDDEN when no client may see it: a marker, or unreadable metadata."""
    try:
        metadata = parse_metadata(entry)
    except EntryError:
        return HIDDEN
    return HIDDEN if metadata.HasField("marker_type") else metadata.num_messages_in_batch


class Dispatcher(ABC):
    """The consumers of a subscription and the rule that gives each entry to one of them."""

    type: int  # CommandSubscribe.SubType
    counts_redeliveries = False

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []

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

    def acknowledged(self, consumer: Consumer, position: Position) -> None:
        """A whole entry was acknowledged through `consumer`."""
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
