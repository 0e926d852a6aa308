"""The base class of dispatchers, and the reasons why a dispatcher stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from pulsarium.broker.model.client import Delivery, delivery_of
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.consumer import Consumer, ConsumerOptions
from pulsarium.proto.entry import is_plain, visible_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import words_of

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.base import Subscription
    from pulsarium.broker.model.subscription.throttle import Throttle


MOST_READS = 50  # reads of a dispatch, each of at most dispatcherMaxReadBatchSize entries


class Reason(Enum):
    """A reason why dispatch stopped, or the state of one entry, in the words of `pulsarium why`."""

    NO_CONSUMER = "no consumer is connected"
    FAILOVER_DELAY = "the active consumer changed; waiting for activeConsumerFailoverDelayTimeMillis"
    NO_PERMITS = "no consumer has permits left: the client sent no FLOW"
    NOT_WRITABLE = "the connections of the consumers with permits are full: the client does not read"
    CONSUMERS_OWE = "the consumers with permits have reached maxUnackedMessagesPerConsumer"
    SUBSCRIPTION_OWES = "the subscription has reached maxUnackedMessagesPerSubscription"
    LOOK_AHEAD = "too many entries wait for their consumers (keySharedLookAheadMsgInReplayThreshold...)"
    RATE_LIMITED = "a dispatch rate is used up: delivery goes on when its tokens come back"
    LOADING = "the entries are being read back from disk"
    NEXT_TURN = "other requests come first: delivery goes on in the next turn of the event loop"
    UNREADABLE = "the disk cannot read the next entries; the broker tries again (dispatcherReadFailureBackoff...)"
    BEHIND_CHUNK = "a chunk comes first, and the consumer of its message's first chunk cannot take it, as in Pulsar 4.2"
    CAUGHT_UP = "everything was delivered"
    OPEN_TRANSACTION = "the next entry is in an open transaction, or behind one"
    FENCED = "the subscription is being reset"

    # reasons of one entry
    ACKNOWLEDGED = "the message is acknowledged"
    PENDING_ACK = "an open transaction acknowledged the message"
    COMPACTED_AWAY = (
        "compaction dropped the message, and the consumers read compacted: a cumulative acknowledgement passes it"
    )
    ABORTED = "the transaction of the message was aborted, so it is not delivered"
    DELIVERED = "a consumer has the message and has not acknowledged it yet"
    DELAYED = "the message waits for its deliver_at_time"
    WAITING = "the consumer of the message has no permits, or its connection is full"
    DRAINING = "the former consumer of the key has unacknowledged messages of that key"
    RECENTLY_JOINED = "the consumer of the message joined while older messages were unacknowledged, which come first"
    NO_OWNER = "no consumer has the key of the message (STICKY ranges with a gap)"
    ORPHAN_CHUNK = "the entry is a chunk, and no consumer has the first chunk of its message"
    TO_BE_DELIVERED = "the message is next"


SubType = pb.CommandSubscribe.SubType
Entries = Sequence[tuple[Position, bytes]]


class Dispatcher(ABC):
    """Consumers of a subscription, and the rule that gives each entry to one of them."""

    type: int  # CommandSubscribe.SubType
    shares_messages = False  # whether several consumers receive messages at the same time

    active: Consumer | None = None  # the served consumer of Exclusive and Failover
    unacked = 0  # unacknowledged messages of all consumers; Shared types only
    blocked = False  # maxUnackedMessagesPerSubscription
    delayed: Collection[Position] = ()  # messages that wait for their deliver_at_time
    # recently joined consumers, with the read position at that time
    joined: Mapping[Consumer, Position] = MappingProxyType({})
    waiting_count = 0  # entries that were read, and wait for a consumer that can take them
    cursor: ManagedCursor  # only set for persistent subscriptions; nothing else is dispatched

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        if subscription.cursor is not None:
            self.cursor = subscription.cursor
        self._max_read = subscription.topic.stores.config.dispatcherMaxReadBatchSize
        self.consumers: list[Consumer] = []
        # redelivery counts, in memory until the last consumer leaves (B-19)
        self.redeliveries: dict[Position, int] = {}
        self.throttle: Throttle | None = None  # only set while a dispatch rate is in effect
        self.closing = False  # consumers are being disconnected, and no other takes over

    def mismatch(self, options: ConsumerOptions) -> str:
        """Return why a consumer with these options cannot join, to follow "Active subscription", or ""."""
        if options.type == self.type:
            return ""
        return (
            f"type of '{SubType.Name(self.type)}' is different than the connecting consumer's type "
            f"'{SubType.Name(options.type)}'."
        )

    @abstractmethod
    def add_consumer(self, consumer: Consumer) -> None:
        """Admit a consumer, or raise the error for its client."""

    @abstractmethod
    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer. Other consumers get its unacknowledged messages."""

    @property
    def served(self) -> Sequence[Consumer]:
        """Return the consumers that receive messages. Others wait to become active."""
        return self.consumers

    def comes_again(self, position: Position) -> bool:
        """Return whether an entry waits to be redelivered."""
        return False

    def count_delayed(self, *, unacknowledged: bool) -> int:
        """Count delayed messages, with or without those that were acknowledged meanwhile."""
        return 0

    def forget_delayed(self) -> None:
        """Forget all delayed messages, because the cursor has passed them."""
        return

    @abstractmethod
    def consumer_for(self, entry: bytes) -> Consumer | None:
        """Return the consumer for an entry of a non-persistent topic, or None to drop the entry."""

    @abstractmethod
    def dispatch(self) -> Reason:
        """Deliver as much as possible, and return why dispatch stopped."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None) -> None:
        """Redeliver the unacknowledged messages at `positions`, or all of the consumer."""

    def _hand_over(self, consumer: Consumer, entries: Entries, permits: int, source: PositionSet | None = None) -> int:
        """Deliver entries to a consumer while `permits` last and its connection has room; return the number handled.

        Each entry leaves `source` before it is handled, because sending may end the connection, which puts entries
        back.
        """
        has_room = room = consumer.client.room
        cursor = self.cursor
        redeliveries, some_partly = self.redeliveries, cursor.has_parts
        transactions = cursor.ledger.transactions
        some_hidden = bool(entries) and entries[0][0] <= transactions.hidden_through
        deliveries: list[Delivery] = []
        dealt_with = total = acked = 0
        for position, entry in entries:
            if total >= permits or room <= 0:
                break
            dealt_with += 1
            if source is not None:
                source.discard(position)
            if some_hidden and transactions.hides(position, entry):
                cursor.ack(position)
                continue
            messages = 1
            if not is_plain(entry):
                metadata = visible_metadata(entry)
                if metadata is None:  # undecodable metadata: skipped, as in Pulsar
                    cursor.ack(position)
                    continue
                if self._holds_back(consumer, position, metadata):
                    continue
                messages = metadata.num_messages_in_batch
            ack_set: Sequence[int] = ()
            if some_partly and (left := cursor.left_of(position)) is not None:
                if not left:  # open transactions acknowledged all of the entry
                    continue
                ack_set, whole, messages = words_of(left), messages, left.bit_count()
                acked += whole - messages
            total += messages
            room -= len(entry)
            count = redeliveries.get(position, 0) if redeliveries else 0
            deliveries.append(delivery_of((position, entry, messages, count, ack_set)))
        if deliveries:
            self._delivering(consumer, deliveries, total)
            if self.throttle is not None:
                self.throttle.delivered(len(deliveries), total + acked, has_room - room)
            consumer.deliver(deliveries, permits=total, messages=total + acked, size=has_room - room)
        return dealt_with

    def _allowed(self, entries: int) -> int:
        """Return how many of `entries` the dispatch rates allow now. After 0, the throttle dispatches again."""
        return entries if self.throttle is None else self.throttle.entries(entries)

    def _holds_back(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        """Return whether an entry must wait. If so, keep its position for later."""
        return False

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery], messages: int) -> None:
        """Record unacknowledged messages. Called before sending, because sending may end the connection."""
        return

    def _goes_on(self) -> Reason:
        """Let other work run, and dispatch again after it."""
        self._subscription.dispatch_next_turn()
        return Reason.NEXT_TURN

    def nothing_more(self) -> Reason:
        """Return why a read found no entry."""
        return Reason.OPEN_TRANSACTION if self.cursor.is_held() else Reason.CAUGHT_UP

    def resume(self, consumer: Consumer) -> None:
        """Note that a consumer got permits, or that its connection has room again."""
        return

    def settle(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Drop entries from the unacknowledged messages: `consumer` acknowledged them, whichever consumer has them."""
        return

    def settle_partly(self, consumer: Consumer, position: Position, remaining: int) -> None:
        """Keep only `remaining` unacknowledged messages of a partly acknowledged batch."""
        return

    def owed_less(self, consumer: Consumer, position: Position, remaining: int) -> None:
        """Keep only `remaining` unacknowledged messages of an entry that a transaction acknowledged."""
        return

    @abstractmethod
    def give_back(self, positions: Sequence[Position]) -> None:
        """Redeliver entries, because the transaction that acknowledged them was aborted."""

    def policies_changed(self) -> None:
        """Apply changed policies of the topic."""
        return

    def reset(self) -> None:
        """Forget all deliveries, because the cursor was moved and no consumer is left."""
        return

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        """Return the state of an unacknowledged entry."""
        return Reason.TO_BE_DELIVERED if self._any_ready() else self.blocked_reason()

    def holder(self, position: Position) -> Consumer | None:
        """Return the consumer that has an entry, or for which a read entry waits."""
        return None

    def undelivered(self) -> list[Iterable[Position]]:
        """Return the positions of each kind of waiting entries, in order. Some may be acknowledged meanwhile."""
        return []

    def _any_ready(self) -> bool:
        return any(consumer.can_receive for consumer in self.consumers)

    def blocked_reason(self) -> Reason:
        """Return why no consumer can receive messages."""
        if not self.consumers:
            return Reason.NO_CONSUMER
        if any(consumer.permits > 0 and consumer.blocked for consumer in self.consumers):
            return Reason.CONSUMERS_OWE
        return Reason.NOT_WRITABLE if any(c.permits > 0 for c in self.consumers) else Reason.NO_PERMITS
