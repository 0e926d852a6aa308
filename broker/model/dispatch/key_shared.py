"""Key_Shared: all entries of a key go to one consumer, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pulsarium.broker.model.client import Delivery, delivery_of
from pulsarium.broker.model.dispatch.draining import KeyOwner, OwedKeys
from pulsarium.broker.model.dispatch.selector import Selector, key_of
from pulsarium.broker.model.dispatch.sharing import SharingDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.consumer import Consumer, ConsumerOptions, KeySharedOptions
from pulsarium.broker.model.subscription.dispatcher import MOST_READS, Entries, Reason
from pulsarium.proto.entry import parse_metadata, visible_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import words_of


class Parcel:
    """Entries of one read for one consumer."""

    __slots__ = ("cost", "deliveries", "messages", "owners", "permits", "room", "size")

    def __init__(self, permits: int, room: int) -> None:
        self.deliveries: list[Delivery] = []
        self.owners: list[KeyOwner] = []  # owner of each delivery
        self.cost = self.messages = self.size = 0
        self.permits = permits
        self.room = room


class KeySharedDispatcher(SharingDispatcher):
    """Deliver each entry to the consumer that the selector names for its key's hash.

    A hash may change hands while its former consumer has unacknowledged messages of it. Then its entries are held until
    that consumer has none (`owed.draining`), unless delivery out of order is allowed (B-11). Other entries are read
    past those that wait, up to keySharedLookAheadMsgInReplayThresholdPerConsumer and -PerSubscription entries.
    """

    type = pb.CommandSubscribe.Key_Shared

    def __init__(self, subscription: Subscription, selector: Selector, options: KeySharedOptions) -> None:
        super().__init__(subscription)
        self.selector = selector
        self.mode = options.mode
        self.entry_buckets = options.entry_buckets
        self.out_of_order = options.out_of_order
        self.drains = options.mode == pb.AUTO_SPLIT and not options.out_of_order
        self.owed = OwedKeys()
        self._unowned = PositionSet()

    def hash_of(self, metadata: pb.MessageMetadata) -> int:
        """Return the hash that chooses the consumer of an entry."""
        return self.selector.hash_of_key(key_of(metadata))

    # consumers

    def mismatch(self, options: ConsumerOptions) -> str:
        if found := super().mismatch(options):
            return found
        if options.key_shared.mode != self.mode:
            name = pb.KeySharedMode.Name
            return (
                f"key_shared mode of '{name(self.mode)}' is different than the connecting consumer's key_shared mode "
                f"'{name(options.key_shared.mode)}'."
            )
        if options.key_shared.entry_buckets and not self.entry_buckets:
            return "does not dispatch by entry-bucket while the connecting consumer does."
        if options.key_shared.out_of_order == self.out_of_order:
            return ""
        if self.out_of_order:
            return "allows out of order delivery while the connecting consumer does not allow it."
        return "does not allow out of order delivery while the connecting consumer allows it."

    def add_consumer(self, consumer: Consumer) -> None:
        self.selector.add(consumer)
        super().add_consumer(consumer)
        self.owed.join(consumer)
        self._reassign()
        # the newcomer may get entries that waited for others, and raises the look-ahead limit
        self._subscription.dispatch_soon()

    def remove_consumer(self, consumer: Consumer) -> None:
        self.selector.remove(consumer)
        self._again(self.owed.leave(consumer))
        super().remove_consumer(consumer)
        self._reassign()

    def _reassign(self) -> None:
        """Drain hashes that changed hands, and select the consumers of all waiting entries again."""
        if self.drains:
            self._again(self.owed.reassign(self.selector.select))
        waiting, self._waiting = self._waiting, {}
        self._to_serve.clear()
        for positions in [*waiting.values(), self._unowned]:
            self._again(positions)
        self._unowned.clear()

    def consumer_for(self, entry: bytes) -> Consumer | None:
        metadata = visible_metadata(entry)
        if metadata is None:
            return None
        consumer = self.selector.select(self.hash_of(metadata))
        return consumer if consumer is not None and consumer.can_receive else None

    # unacknowledged messages

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery], messages: int) -> None:
        """Record the key hash of each delivered entry. Compute it again, because waiting entries do not store it."""
        hashes = (self.hash_of(parse_metadata(delivery.entry)) for delivery in deliveries)
        self.owed.owe(consumer, deliveries, [KeyOwner(consumer, key_hash) for key_hash in hashes])
        super()._delivering(consumer, deliveries, messages)

    def _owner(self, position: Position) -> Consumer | None:
        owner = self.owed.owner(position)
        return owner.consumer if owner is not None else None

    def _settled(self, positions: Sequence[Position]) -> None:
        if freed := self.owed.settle(positions):
            self._again(freed)
            self._subscription.dispatch_soon()

    # delivering

    def dispatch(self) -> Reason:
        cursor = self.cursor
        for _ in range(MOST_READS):
            if not self.replay:  # entries to redeliver come first: a waiting entry may be later in the order of its key
                if (stopped := self._serve_waiting()) is not None:
                    return stopped
                self._again(self.delayed.take_due(self._max_read))
            if self._rotation.next() is None:
                return self.blocked_reason()
            if not self.replay:
                if not cursor.has_more():
                    return self.nothing_more()
                if self.blocked:
                    return Reason.SUBSCRIPTION_OWES
                if self._is_far_ahead():
                    return Reason.LOOK_AHEAD
            limit = self._allowed(self._max_read)
            if not limit:
                return Reason.RATE_LIMITED
            if self.replay:
                entries = self._stored(self.replay, limit)
                for position, _ in entries or ():
                    self.replay.discard(position)
            else:
                entries = cursor.read(limit, self._subscription.dispatch_soon)
            if entries is None:
                return Reason.LOADING
            self._share_out(entries)
        return self._goes_on()

    def _look_ahead(self) -> int:
        """Return how many entries may wait while others are read past them. 0 is no limit."""
        config = self._subscription.topic.stores.config
        each = config.keySharedLookAheadMsgInReplayThresholdPerConsumer * len(self.consumers)
        limits = (each, config.keySharedLookAheadMsgInReplayThresholdPerSubscription)
        return min((limit for limit in limits if limit > 0), default=0)

    def _is_far_ahead(self) -> bool:
        """Return whether so many entries wait that no others are read past them."""
        cursor = self.cursor
        limit, mark = self._look_ahead(), cursor.mark_delete
        if not limit or cursor.ledger.count_after(mark, cursor.read_position) - self.owed.entries < limit:
            return False  # nearly always, and counting the waiting entries is expensive
        if self.waiting_count >= limit:  # some of them may have been skipped, or have expired
            for positions in (*self._waiting.values(), *self.owed.held.values(), self._unowned):
                positions.remove_through(mark)
        return self.waiting_count >= limit

    def _share_out(self, entries: Entries) -> None:
        """Deliver each entry to the consumer of its key, or keep it until that consumer can take it."""
        cursor = self.cursor
        parcels: dict[Consumer, Parcel] = {}
        transactions, some_partly = cursor.ledger.transactions, cursor.has_parts
        some_hidden = bool(entries) and entries[0][0] <= transactions.hidden_through
        for position, entry in entries:
            metadata = visible_metadata(entry)
            if metadata is None or (some_hidden and transactions.hides(position, entry)):
                cursor.ack(position)
                continue
            left = cursor.left_of(position) if some_partly else None
            if left == 0:  # open transactions acknowledged all of the entry
                continue
            owner = self._owner_now(position, metadata)
            if owner is None:
                continue
            consumer = owner.consumer
            parcel = parcels.get(consumer)
            if parcel is None:
                room = consumer.client.room if consumer.permits > 0 and not consumer.blocked else 0
                parcel = parcels[consumer] = Parcel(self._capacity(consumer), room)
            if parcel.cost >= parcel.permits or parcel.size >= parcel.room:
                self._wait_for(consumer, position)
                continue
            messages = metadata.num_messages_in_batch
            cost, ack_set = (messages, ()) if left is None else (left.bit_count(), words_of(left))
            count = self.redeliveries.get(position, 0) if self.redeliveries else 0
            parcel.deliveries.append(delivery_of((position, entry, cost, count, ack_set)))
            parcel.owners.append(owner)
            parcel.cost += cost
            parcel.messages += messages
            parcel.size += len(entry)
        for consumer, parcel in parcels.items():
            if consumer in self.owed:
                self._send(consumer, parcel)
            elif self.consumers:  # the connection ended with another consumer's delivery
                self._again(delivery.position for delivery in parcel.deliveries)

    def _send(self, consumer: Consumer, parcel: Parcel) -> None:
        deliveries = parcel.deliveries
        if not deliveries:
            return
        self.owed.owe(consumer, deliveries, parcel.owners)
        super()._delivering(consumer, deliveries, parcel.cost)
        if self.throttle is not None:
            self.throttle.delivered(len(deliveries), parcel.messages, parcel.size)
        consumer.deliver(deliveries, permits=parcel.cost, messages=parcel.messages, size=parcel.size)

    def _owner_now(self, position: Position, metadata: pb.MessageMetadata) -> KeyOwner | None:
        """Return the consumer for an entry, and the hash of its key.

        Return None for an entry that must wait, and keep it.
        """
        key_hash = self.hash_of(metadata)
        consumer = self.selector.select(key_hash)
        if consumer is None:
            self._unowned.add(position)
            return None
        if self._holds_back(consumer, position, metadata):
            return None
        owner = KeyOwner(consumer, key_hash)
        if self.owed.holds_back(position, owner):
            return None
        if consumer in self._waiting:
            self._waiting[consumer].add(position)
            return None
        return owner

    # the rest

    @property
    def waiting_count(self) -> int:  # type: ignore[override]
        return super().waiting_count + len(self._unowned) + sum(map(len, self.owed.held.values()))

    def _forget_everything(self) -> None:
        super()._forget_everything()
        self.owed.forget()
        self._unowned.clear()

    def undelivered(self) -> list[Iterable[Position]]:
        return [*super().undelivered(), *self.owed.held.values(), self._unowned]

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        if any(position in each for each in self.owed.held.values()):
            return Reason.DRAINING
        return Reason.NO_OWNER if position in self._unowned else super().why(position, metadata)


class RecentlyJoinedDispatcher(KeySharedDispatcher):
    """Key_Shared as before Pulsar 4.0 (subscriptionKeySharedUseClassicPersistentImplementation).

    Hashes do not drain. A consumer that joins gets no entry that is read later, until all entries read before are
    acknowledged, by any consumer. So no key can be with two consumers (B-12).
    """

    def __init__(self, subscription: Subscription, selector: Selector, options: KeySharedOptions) -> None:
        super().__init__(subscription, selector, options)
        self.drains = False
        self.joined: dict[Consumer, Position] = {}  # read position when each consumer joined
        self._too_new = PositionSet()  # entries that wait for recently joined consumers

    def add_consumer(self, consumer: Consumer) -> None:
        cursor = self.cursor
        owes = cursor.ledger.next(cursor.mark_delete) < cursor.read_position
        if self.consumers and owes and not self.out_of_order:
            self.joined[consumer] = cursor.read_position
        super().add_consumer(consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        self.joined.pop(consumer, None)
        if len(self.consumers) == 2:  # the remaining consumer need not wait for itself
            self.joined.clear()
        super().remove_consumer(consumer)

    def _reassign(self) -> None:
        super()._reassign()
        self._try_again()

    def _try_again(self) -> None:
        self._again(self._too_new)
        self._too_new.clear()

    def _settled(self, positions: Sequence[Position]) -> None:
        super()._settled(positions)
        if self.joined:
            self._subscription.dispatch_soon()

    def dispatch(self) -> Reason:
        if self.joined:
            self._let_go()
        return super().dispatch()

    def _let_go(self) -> None:
        """Release consumers that joined before the first unacknowledged entry: they are like all others now."""
        cursor = self.cursor
        first = cursor.ledger.next(cursor.mark_delete)
        left = {consumer: position for consumer, position in self.joined.items() if position > first}
        if len(left) < len(self.joined):
            self.joined = left
            self._try_again()

    def _holds_back(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        if super()._holds_back(consumer, position, metadata):
            return True
        if consumer not in self.joined or position < min(self.joined.values()):
            return False
        self._too_new.add(position)
        return True

    @property
    def waiting_count(self) -> int:  # type: ignore[override]
        return super().waiting_count + len(self._too_new)

    def _forget_everything(self) -> None:
        super()._forget_everything()
        self.joined.clear()
        self._too_new.clear()

    def undelivered(self) -> list[Iterable[Position]]:
        return [*super().undelivered(), self._too_new]

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        return Reason.RECENTLY_JOINED if position in self._too_new else super().why(position, metadata)
