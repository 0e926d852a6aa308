"""What all dispatchers have in common, and why nothing more is delivered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from pulsarium.broker.model.client import Delivery
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


class Reason(Enum):
    """The outcome of a dispatch, or the state of one entry, in the words of "why was this not delivered?"."""

    NO_CONSUMER = "no consumer is connected"
    FAILOVER_DELAY = "the active consumer changed; waiting for activeConsumerFailoverDelayTimeMillis"
    NO_PERMITS = "no consumer has permits left: the client sent no FLOW"
    NOT_WRITABLE = "the connections of the consumers with permits are full: the client does not read"
    CONSUMERS_OWE = "the consumers with permits owe maxUnackedMessagesPerConsumer messages"
    SUBSCRIPTION_OWES = "the consumers together owe maxUnackedMessagesPerSubscription messages"
    LOOK_AHEAD = "too many entries wait for their consumers (keySharedLookAheadMsgInReplayThreshold...)"
    RATE_LIMITED = "rate limited until the tokens of a dispatch rate come back"
    LOADING = "the entries are being read back from disk"
    UNREADABLE = "the disk cannot read what comes next; it is tried again (dispatcherReadFailureBackoff...)"
    BEHIND_CHUNK = (
        "a chunk comes first that the consumer of its message's first chunk cannot be given, as in Pulsar 4.2"
    )
    CAUGHT_UP = "everything was delivered"
    OPEN_TRANSACTION = "what comes next is in an open transaction, or behind one"
    FENCED = "the subscription is being reset"

    # of one entry
    ACKNOWLEDGED = "it is acknowledged"
    PENDING_ACK = "a transaction acknowledged it that is not over"
    COMPACTED_AWAY = "compaction did not keep it, and its consumers read compacted: a cumulative ack goes past it"
    ABORTED = "its transaction was aborted: consumers are not given it"
    DELIVERED = "a consumer has it and did not acknowledge it yet"
    DELAYED = "its deliver_at_time has not come"
    WAITING = "its consumer has no permits, or its connection is full"
    DRAINING = "the consumer that had its key still owes messages of that key"
    RECENTLY_JOINED = "its consumer joined before older messages were acknowledged, which come first"
    NO_OWNER = "no consumer has its key (STICKY ranges with a gap)"
    ORPHAN_CHUNK = "it is a chunk of a message whose first chunk no consumer has"
    TO_BE_DELIVERED = "it is next"


SubType = pb.CommandSubscribe.SubType
Entries = Sequence[tuple[Position, bytes]]


class Dispatcher(ABC):
    """The consumers of a subscription and the rule that gives each entry to one of them."""

    type: int  # CommandSubscribe.SubType
    shares_messages = False  # whether several consumers get messages at a time

    active: Consumer | None = None  # the one of Exclusive and Failover that is served
    blocked = False  # maxUnackedMessagesPerSubscription
    delayed: Collection[Position] = ()  # what waits for its time
    joined: Mapping[Consumer, Position] = MappingProxyType({})  # who waits for what was read before there
    waiting_count = 0  # entries that were read and wait for somebody who can take them
    cursor: ManagedCursor  # of a persistent subscription; nothing is dispatched for another

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        if subscription.cursor is not None:
            self.cursor = subscription.cursor
        self._max_read = subscription.topic.stores.config.dispatcherMaxReadBatchSize
        self.consumers: list[Consumer] = []
        self.redeliveries: dict[Position, int] = {}  # in memory, until all consumers are gone (B-19)
        self.throttle: Throttle | None = None  # where there is a dispatch rate
        self.closing = False  # who is sent away now has nobody take its place

    def mismatch(self, options: ConsumerOptions) -> str:
        """What keeps a consumer with these options from joining, behind "Active subscription"; "" when nothing does."""
        if options.type == self.type:
            return ""
        return (
            f"type of '{SubType.Name(self.type)}' is different than the connecting consumer's type "
            f"'{SubType.Name(options.type)}'."
        )

    @abstractmethod
    def add_consumer(self, consumer: Consumer) -> None:
        """Let a consumer in, or raise what it is told."""

    @abstractmethod
    def remove_consumer(self, consumer: Consumer) -> None:
        """A consumer left; what it owed goes to others."""

    @property
    def served(self) -> Sequence[Consumer]:
        """Return the consumers that messages go to; others only wait for their turn."""
        return self.consumers

    def comes_again(self, position: Position) -> bool:
        """Tell whether somebody had an entry, which waits to be delivered once more."""
        return False

    def count_delayed(self, *, unacknowledged: bool) -> int:
        """Count what waits for its time, with or without what was acknowledged meanwhile."""
        return 0

    def forget_delayed(self) -> None:
        """Have nothing wait for its time: it was passed over."""
        return

    @abstractmethod
    def consumer_for(self, entry: bytes) -> Consumer | None:
        """The consumer that an entry which is stored nowhere goes to now."""

    @abstractmethod
    def dispatch(self) -> Reason:
        """Deliver what can be delivered; why no more."""

    @abstractmethod
    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None) -> None:
        """REDELIVER_UNACKNOWLEDGED_MESSAGES: the named entries, or all that the consumer owes."""

    def _hand_over(self, consumer: Consumer, entries: Entries, permits: int, source: PositionSet | None = None) -> int:
        """Deliver entries to a consumer while `permits` last and its connection has room; how many were dealt with.

        Each is taken from `source` before it is dealt with: to send it may end the connection, and bring it back.
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
                if metadata is None:  # passed over, as Pulsar does
                    cursor.ack(position)
                    continue
                if self._holds_back(consumer, position, metadata):
                    continue
                messages = metadata.num_messages_in_batch
            ack_set: Sequence[int] = ()
            if some_partly and (left := cursor.left_of(position)) is not None:
                if not left:  # open transactions acknowledged it
                    continue
                ack_set, whole, messages = words_of(left), messages, left.bit_count()
                acked += whole - messages
            total += messages
            room -= len(entry)
            count = redeliveries.get(position, 0) if redeliveries else 0
            deliveries.append(Delivery(position, entry, messages, count, ack_set))
        if deliveries:
            self._delivering(consumer, deliveries, total)
            if self.throttle is not None:
                self.throttle.delivered(len(deliveries), total + acked, has_room - room)
            consumer.deliver(deliveries, permits=total, messages=total + acked, size=has_room - room)
        return dealt_with

    def _allowed(self, entries: int) -> int:
        """How many of so many entries the dispatch rates let be read now; 0: it is dispatched again when they do."""
        return entries if self.throttle is None else self.throttle.entries(entries)

    def _holds_back(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        """Whether an entry is not for this consumer now; it is remembered where it will be found."""
        return False

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery], messages: int) -> None:
        """Remember what a consumer owes, where that is counted; before it is sent, for that may end the connection."""
        return

    def nothing_more(self) -> Reason:
        """Why a read found nothing."""
        return Reason.OPEN_TRANSACTION if self.cursor.is_held() else Reason.CAUGHT_UP

    def resume(self, consumer: Consumer) -> None:
        """A consumer got permits, or its connection has room again."""
        return

    def settle(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        """Have nobody owe these entries: they were acknowledged through `consumer`, whoever has them."""
        return

    def settle_partly(self, consumer: Consumer, position: Position, remaining: int) -> None:
        """Have `remaining` messages of a batch owed, of which the others were acknowledged."""
        return

    def owed_less(self, consumer: Consumer, position: Position, remaining: int) -> None:
        """Of an entry only so many messages are owed still: a transaction acknowledged the others."""
        return

    @abstractmethod
    def give_back(self, positions: Sequence[Position]) -> None:
        """A transaction that had acknowledged these was aborted: deliver them again."""

    def policies_changed(self) -> None:
        """The topic's policies are others now."""
        return

    def reset(self) -> None:
        """Nobody is here any more, and the cursor is elsewhere: nothing that was delivered before counts."""
        return

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        """Where an entry stands that is not acknowledged."""
        return Reason.TO_BE_DELIVERED if self._any_ready() else self.blocked_reason()

    def holder(self, position: Position) -> Consumer | None:
        """The consumer that an entry which was read is for: it has it, or it waits for that one."""
        return None

    def undelivered(self) -> list[Iterable[Position]]:
        """Each kind of entries that were read and wait, in order. Some may be acknowledged meanwhile."""
        return []

    def _any_ready(self) -> bool:
        return any(consumer.can_receive for consumer in self.consumers)

    def blocked_reason(self) -> Reason:
        """Why no consumer can be given anything."""
        if not self.consumers:
            return Reason.NO_CONSUMER
        if any(consumer.permits > 0 and consumer.blocked for consumer in self.consumers):
            return Reason.CONSUMERS_OWE
        return Reason.NOT_WRITABLE if any(c.permits > 0 for c in self.consumers) else Reason.NO_PERMITS
