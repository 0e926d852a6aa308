"""Key_Shared: all entries of a key go to one consumer, in order.

A selector maps the hash of a key to a consumer (`selector.py`). Two things keep the order of a key:

- An entry whose consumer cannot take it waits, and all later entries of the key wait behind it (`_waiting`). Entries
  of other keys are read past them, up to the look-ahead limit. Beyond the limit the slow consumer stops the others.
- When a consumer joins or leaves, hashes change hands. The new owner of a hash gets none of its entries while the
  former one has unacknowledged messages of the hash: it drains, and its entries are held (PIP-379, `draining.py`).

With PIP-493, a third thing keeps it after a negative acknowledgement: later entries of the hash are held until the
entry is acknowledged, wherever it is meanwhile (`retrying.py`).

The hash of an entry is computed once. `KeyOwner` is the consumer of a key as an object: entries on their way point to
it, so an acknowledgement counts down the owner's entries without a look at the key, and a hash is drained when the
count is 0. `_by_key` finds the owner of a key that came lately by its bytes, without a hash.

Portions (`Portion`) collect what one dispatch has for each consumer over several reads, because a read of 100 entries
spread over 1,000 consumers would send frames of one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pulsarium.broker.model.client import Delivery, delivery_of
from pulsarium.broker.model.dispatch.draining import KeyOwner, KeyOwners
from pulsarium.broker.model.dispatch.retrying import RetryingHashes
from pulsarium.broker.model.dispatch.selector import Selector, key_of
from pulsarium.broker.model.dispatch.sharing import SharingDispatcher
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.base import Consumer, Entries, Subscription, reads
from pulsarium.broker.model.subscription.options import ConsumerOptions, KeySharedOptions
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.entry import parse_metadata, plain_key, visible_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.message_id import words_of

HIGHEST = 2**63
NO_ACK_SET: Sequence[int] = ()
MOST_KEYS = 10_000  # whose owners are known


class Portion:
    """Entries that were read for one consumer. Its permits and its room count down."""

    __slots__ = ("already_acked", "deliveries", "first_permits", "first_room", "is_full", "owners", "permits", "room")

    def __init__(self, permits: int, room: int) -> None:
        self.deliveries: list[Delivery] = []
        self.owners: list[KeyOwner] = []  # owner of each delivery
        self.already_acked = 0  # messages that cost no permits
        self.permits = self.first_permits = permits
        self.room = self.first_room = room
        self.is_full = permits <= 0 or room <= 0


class DispatchLoad:
    """The portions of a dispatch. They stay open over several reads, so that each of many consumers gets few of them.

    Messages, entries and bytes count, because they change what may be read next.
    """

    __slots__ = ("cost", "entries", "is_any_full", "portions", "room")

    def __init__(self) -> None:
        self.portions: dict[Consumer, Portion] = {}
        self.clear()

    def clear(self) -> None:
        self.portions.clear()
        self.entries = self.cost = 0
        self.room = HIGHEST  # bytes until the first connection may be full
        self.is_any_full = False


class KeySharedDispatcher(SharingDispatcher):
    """Deliver each entry to the consumer that the selector names for its key's hash.

    A hash may change hands while its former consumer has unacknowledged messages of it. Then its entries are held until
    that consumer has none (`key_owners.draining`), unless delivery out of order is allowed. Other entries are read
    past those that wait, up to keySharedLookAheadMsgInReplayThresholdPerConsumer and -PerSubscription entries.
    """

    type = pb.CommandSubscribe.Key_Shared
    orders_retries = True  # whether negative acknowledgements keep the order of keys (PIP-493)

    def __init__(self, subscription: Subscription, selector: Selector, options: KeySharedOptions) -> None:
        super().__init__(subscription)
        self.selector = selector
        self.mode = options.mode
        self.entry_buckets = options.entry_buckets
        self.out_of_order = options.out_of_order
        self.drains = options.mode == pb.AUTO_SPLIT and not options.out_of_order
        self.key_owners = KeyOwners()
        self.retrying = RetryingHashes()
        self._profile = subscription.topic.stores.profile
        self._unowned = PositionSet()
        self._by_key: dict[bytes | None, KeyOwner] = {}  # owners of keys that came lately
        self._to_reassign = False  # consumers came or left since the last dispatch

    def hash_of(self, metadata: pb.MessageMetadata) -> int:
        """Return the hash that chooses the consumer of an entry."""
        return self.selector.hash_of_key(key_of(metadata, scatters=self._profile.scatters_keyless))

    # consumers

    def mismatch(self, options: ConsumerOptions) -> str:
        if (found := super().mismatch(options)) or self._profile.key_shared_modes_mix:
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
        self.key_owners.join(consumer)
        self._members_changed()
        # the newcomer may get entries that waited for others, and raises the look-ahead limit
        self._subscription.dispatch_soon()

    def remove_consumer(self, consumer: Consumer) -> None:
        if not self.closing:
            self.selector.remove(consumer)
        elif len(self.consumers) == 1:  # all are disconnected, and nobody gets their hashes
            self.selector.remove_all()
        self._again(self.key_owners.leave(consumer))
        super().remove_consumer(consumer)
        self._members_changed()

    def _members_changed(self) -> None:
        self._by_key.clear()
        self._to_reassign = True

    def _reassign(self) -> None:
        """Drain hashes that changed hands, and select the consumers of all waiting entries again."""
        self._to_reassign = False
        self.selector.settle()
        if self.drains:
            self._again(self.key_owners.reassign(self.selector.select))
        self._judge_waiting_again()
        self._again(self._unowned)
        self._unowned.clear()

    def _judge_waiting_again(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._to_serve.clear()
        for positions in waiting.values():
            self._again(positions)

    def _reassign_if_needed(self, load: DispatchLoad) -> None:
        """Select anew when consumers came or left, also when a delivery ended a connection."""
        if self._to_reassign:
            self._send_all(load)  # what is on its way to consumers counts as delivered
            self._reassign()

    def consumer_for(self, entry: bytes) -> Consumer | None:
        metadata = visible_metadata(entry)
        if metadata is None:
            return None
        consumer = self.selector.select(self.hash_of(metadata))
        return consumer if consumer is not None and consumer.can_receive else None

    # unacknowledged messages

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery], messages: int) -> None:
        """Record the owner of each delivered entry, which waiting entries do not store."""
        known, owners = self._by_key, list[KeyOwner]()
        for delivery in deliveries:
            entry = delivery.entry
            owner = known.get(key) if (key := plain_key(entry)) is not None else None
            owners.append(owner or self.key_owners.owner_of(consumer, self.hash_of(parse_metadata(entry))))
        self.key_owners.owe(deliveries, owners)
        super()._delivering(consumer, deliveries, messages)

    def _owner(self, position: Position) -> Consumer | None:
        owner = self.key_owners.owner(position)
        return owner.consumer if owner is not None else None

    def _settled(self, positions: Sequence[Position]) -> None:
        if freed := self.key_owners.settle(positions):
            self._again(freed)
            self._subscription.dispatch_soon()

    # negative acknowledgements

    @property
    def _most_retrying(self) -> int:
        return self._subscription.topic.stores.config.keySharedNegativeAckMaxRetryingPositionsPerSubscription

    def refuse(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        if self.out_of_order or not self.orders_retries:
            return
        for position in positions:
            owner = self.key_owners.owner(position)
            if owner is not None and owner.consumer is consumer:
                self.retrying.add(position, owner.key_hash)
        self._judge_waiting_again()

    def settle(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        super().settle(consumer, positions)
        if self.retrying:
            self._freed(self.retrying.acknowledged(positions, self._most_retrying))

    def passed(self, mark_delete: Position) -> None:
        if self.retrying:
            self._freed(self.retrying.acknowledged_through(mark_delete, self._most_retrying))

    def _freed(self, positions: Sequence[Position]) -> None:
        if positions:
            self._again(positions)
            self._subscription.dispatch_soon()

    # delivering

    def dispatch(self) -> Reason:
        if self.key_owners.is_full or len(self._by_key) > MOST_KEYS:
            self._by_key.clear()
            self.key_owners.forget_settled()
        load = DispatchLoad()
        try:
            return self._dispatch(load)
        finally:
            self._send_all(load)

    def _dispatch(self, load: DispatchLoad) -> Reason:
        cursor = self.cursor
        most_unacked = self._subscription.topic.policies.max_unacked_per_subscription
        for _ in reads():
            self._reassign_if_needed(load)
            if not self.replay:  # entries to redeliver come first: a waiting entry may be later in the order of its key
                if self._to_serve and (stopped := self._serve_waiting()) is not None:
                    return stopped
                self._again(self.delayed.take_due(self._max_read))
                self._reassign_if_needed(load)
            if self._rotation.next() is None:
                return self.blocked_reason()
            if not self.replay:
                if not cursor.has_more():
                    return self.nothing_more()
                if self.blocked:
                    return Reason.SUBSCRIPTION_OWES
                if self.retrying and len(self.retrying) >= self._most_retrying:
                    return Reason.RETRYING_LIMIT
                if self._is_far_ahead(load.entries):
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
            self._share_out(entries, load)
            owes = most_unacked > 0 and self.unacked + load.cost >= most_unacked
            if load.is_any_full or load.room <= 0 or owes or self.throttle is not None:  # what is next depends on them
                self._send_all(load)
        return self._dispatch_again()

    def _look_ahead(self) -> int:
        """Return how many entries may wait while others are read past them. 0 is no limit."""
        config = self._subscription.topic.stores.config
        each = config.keySharedLookAheadMsgInReplayThresholdPerConsumer * len(self.consumers)
        limits = (each, config.keySharedLookAheadMsgInReplayThresholdPerSubscription)
        return min((limit for limit in limits if limit > 0), default=0)

    def _is_far_ahead(self, unsent: int) -> bool:
        """Return whether so many entries wait that no others are read past them. `unsent` are on their way."""
        cursor = self.cursor
        limit, mark = self._look_ahead(), cursor.mark_delete
        if (
            not limit
            or cursor.ledger.count_after(mark, cursor.read_position) - self.key_owners.entries - unsent < limit
        ):
            return False  # nearly always, and counting the waiting entries is expensive
        if self.waiting_count >= limit:  # some of them may have been skipped, or have expired
            held = (*self.key_owners.held.values(), *self.retrying.held)
            for positions in (*self._waiting.values(), *held, self._unowned):
                positions.remove_through(mark)
        return self.waiting_count >= limit

    def _share_out(self, entries: Entries, load: DispatchLoad) -> None:
        """Put each entry into the portion of its key's consumer, or keep it until that consumer can take it."""
        cursor, portions, waiting, redeliveries = self.cursor, load.portions, self._waiting, self.redeliveries
        known = self._by_key
        some_hidden = bool(entries) and entries[0][0] <= cursor.ledger.transactions.hidden_through
        looks_closer = some_hidden or cursor.has_parts or self.joined or self.key_owners.draining or self.retrying
        put = total = size = 0
        for position, entry in entries:
            owner, cost, ack_set, acked = known.get(plain_key(entry)), 1, NO_ACK_SET, 0
            if owner is None or looks_closer:  # rare
                judged = self._judged(position, entry, some_hidden=some_hidden)
                if judged is None:
                    continue
                owner, cost, ack_set, acked = judged
            consumer = owner.consumer
            if waiting and consumer in waiting:
                waiting[consumer].add(position)
                continue
            portion = portions.get(consumer) or self._open_portion(consumer, load)
            if portion.is_full:
                self._wait_for(consumer, position)
                continue
            count = redeliveries.get(position, 0) if redeliveries else 0
            portion.deliveries.append(delivery_of((position, entry, cost, count, ack_set)))
            portion.owners.append(owner)
            portion.permits -= cost
            portion.room -= len(entry)
            portion.already_acked += acked
            if portion.permits <= 0 or portion.room <= 0:
                portion.is_full = load.is_any_full = True
            put += 1
            total += cost
            size += len(entry)
        load.entries += put
        load.cost += total
        load.room -= size

    def _judged(
        self, position: Position, entry: bytes, *, some_hidden: bool
    ) -> tuple[KeyOwner, int, Sequence[int], int] | None:
        """Return the owner of an entry, its cost in permits, its ack set, and how many messages were acknowledged.

        Return None for an entry that must wait, and keep it, or for one that no client sees, and acknowledge it.
        """
        cursor, metadata, left = self.cursor, None, None
        if (key := plain_key(entry)) is None:
            metadata = visible_metadata(entry)
        if (key is None and metadata is None) or (some_hidden and cursor.ledger.transactions.hides(position, entry)):
            cursor.ack(position)
            return None
        if cursor.has_parts and (left := cursor.left_of(position)) == 0:
            return None  # open transactions acknowledged all of the entry
        if key is not None:
            messages, owner = 1, self._by_key.get(key) or self._owner_of_key(key)
        else:
            assert metadata is not None
            messages, owner = metadata.num_messages_in_batch, self._owner_of(self.hash_of(metadata))
        if owner is None:
            self._unowned.add(position)
            return None
        if metadata is not None and self._holds_back(owner.consumer, position, metadata):
            return None
        if self._is_too_new(owner.consumer, position) or self.key_owners.holds_back(position, owner):
            return None
        if self.retrying and self.retrying.holds_back(position, owner.key_hash, self._most_retrying):
            return None
        if left is None:
            return owner, messages, NO_ACK_SET, 0
        return owner, left.bit_count(), words_of(left), messages - left.bit_count()

    def _open_portion(self, consumer: Consumer, load: DispatchLoad) -> Portion:
        room = consumer.client.room if consumer.permits > 0 and not consumer.blocked else 0
        if room > 0:
            load.room = min(load.room, room)
        portion = load.portions[consumer] = Portion(self._capacity(consumer), room)
        load.is_any_full |= portion.is_full
        return portion

    def _send_all(self, load: DispatchLoad) -> None:
        for consumer, portion in load.portions.items():
            if consumer in self.key_owners:
                self._send(consumer, portion)
            elif self.consumers:  # the connection ended with another consumer's delivery
                self._again(delivery.position for delivery in portion.deliveries)
        load.clear()

    def _send(self, consumer: Consumer, portion: Portion) -> None:
        deliveries = portion.deliveries
        if not deliveries:
            return
        cost, size = portion.first_permits - portion.permits, portion.first_room - portion.room
        messages = cost + portion.already_acked
        self.key_owners.owe(deliveries, portion.owners)
        super()._delivering(consumer, deliveries, cost)
        if self.throttle is not None:
            self.throttle.delivered(len(deliveries), messages, size)
        consumer.deliver(deliveries, permits=cost, messages=messages, size=size)

    def _owner_of_key(self, key: bytes) -> KeyOwner | None:
        """Return the owner of a key, or None, and know it from now on."""
        owner = self._owner_of(self.selector.hash_of_key(key))
        if owner is not None:
            self._by_key[key] = owner
        return owner

    def _owner_of(self, key_hash: int) -> KeyOwner | None:
        consumer = self.selector.select(key_hash)
        return None if consumer is None else self.key_owners.owner_of(consumer, key_hash)

    def _is_too_new(self, consumer: Consumer, position: Position) -> bool:
        """Return whether an entry comes too late for a consumer that has `joined`. If so, keep its position."""
        return False

    # the rest

    @property
    def waiting_count(self) -> int:  # type: ignore[override]
        held = sum(map(len, self.key_owners.held.values())) + sum(map(len, self.retrying.held))
        return super().waiting_count + len(self._unowned) + held

    def _forget_everything(self) -> None:
        super()._forget_everything()
        self._by_key.clear()
        self.key_owners.forget()
        self.retrying.forget()
        self._unowned.clear()

    def undelivered(self) -> list[Iterable[Position]]:
        return [*super().undelivered(), *self.key_owners.held.values(), *self.retrying.held, self._unowned]

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        if any(position in each for each in self.key_owners.held.values()):
            return Reason.DRAINING
        if self.retrying.holds(position):
            return Reason.RETRYING
        return Reason.NO_OWNER if position in self._unowned else super().why(position, metadata)


class RecentlyJoinedDispatcher(KeySharedDispatcher):
    """Key_Shared as before Pulsar 4.0 (subscriptionKeySharedUseClassicPersistentImplementation).

    Hashes do not drain, and negative acknowledgements do not keep the order. A consumer that joins gets no entry that
    is read later, until all entries read before are acknowledged, by any consumer. So no key can be with two consumers.
    """

    def __init__(self, subscription: Subscription, selector: Selector, options: KeySharedOptions) -> None:
        super().__init__(subscription, selector, options)
        self.drains = self.orders_retries = False
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

    def _is_too_new(self, consumer: Consumer, position: Position) -> bool:
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
