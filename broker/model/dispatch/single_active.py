"""Exclusive and Failover: one active consumer gets everything, in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from operator import attrgetter, itemgetter
from typing import NamedTuple

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.client import holders
from pulsarium.broker.model.compaction.compacted import read_compacted
from pulsarium.broker.model.dispatch.selector import StickyRanges, hash_of, key_of
from pulsarium.broker.model.errors import ConsumerAssignError, ConsumerBusyError, OwnerMustAnswerError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Consumer, Dispatcher, Entries, Subscription, reads
from pulsarium.broker.model.subscription.loops import LOOP, Rewinds
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.proto.entry import visible_metadata
from pulsarium.proto.generated import PulsarApi_pb2 as pb

RING_POINTS = 100  # points of each consumer name on the ring that chooses the consumer of a topic without partitions
RING_SIZE = 2**31


class RingPlace(NamedTuple):
    """The place of a consumer in the order of `Ring`. Numbers are given in the order of joining."""

    priority_level: int
    distance: int  # from the topic to the consumer's next point
    name: str
    number: int
    consumer: Consumer


class Ring:
    """Consumers of a topic without partitions, by their distances on a hash ring."""

    def __init__(self, topic: str) -> None:
        self._topic = hash_of(topic)
        self._order: list[RingPlace] = []  # sorted
        self._places: dict[Consumer, RingPlace] = {}
        self._numbers = count()

    def add(self, consumer: Consumer) -> None:
        points = (hash_of(f"{consumer.name}{number}") for number in range(RING_POINTS))
        distance = min((point - self._topic) % RING_SIZE for point in points)
        place = RingPlace(consumer.priority_level, distance, consumer.name, next(self._numbers), consumer)
        self._places[consumer] = place
        insort(self._order, place)

    def remove(self, consumer: Consumer) -> None:
        del self._order[bisect_left(self._order, self._places.pop(consumer))]

    def nearest(self) -> Consumer:
        """Return the nearest consumer of the lowest priority level. Of those at one point, the last one counts."""
        level, distance, *_ = self._order[0]
        behind = bisect_right(self._order, (level, distance), key=itemgetter(0, 1))
        return self._order[behind - 1].consumer


class SingleActiveDispatcher(Dispatcher):
    """Deliver to the active consumer only.

    The subscription reads from the mark-delete position for a new active consumer: at once for Exclusive, after
    activeConsumerFailoverDelayTimeMillis for Failover. When the delay is None, no client gets
    ACTIVE_CONSUMER_CHANGE.

    An Exclusive consumer with hash ranges, such as a reader with a key hash range, gets only entries of keys in its
    ranges. The others are read past, and stay in the backlog.
    """

    def __init__(self, subscription: Subscription, type: int) -> None:
        super().__init__(subscription)
        self.type = type
        self.consumers: list[Consumer] = []  # by priority level and name
        self.active = None
        self._selector: StickyRanges | None = None  # None while the active consumer takes all keys
        self._partition = subscription.failover_index
        on_ring = type == pb.CommandSubscribe.Failover and self._partition < 0
        self._ring = Ring(str(subscription.topic.name)) if on_ring else None
        delay_ms = subscription.failover_delay_ms
        self._tells = type == pb.CommandSubscribe.Failover and delay_ms is not None
        self._delay = (delay_ms or 0) / 1000 if self._tells else 0.0
        self._waiting: Timer | None = None
        self._rewinds = Rewinds()

    @property
    def served(self) -> Sequence[Consumer]:
        return () if self.active is None else (self.active,)

    def add_consumer(self, consumer: Consumer) -> None:
        if self.type == pb.CommandSubscribe.Exclusive and self.consumers:
            busy = ConsumerBusyError("Exclusive consumer is already connected", held_by=holders(self.consumers))
            raise OwnerMustAnswerError(self.consumers[0].client, busy)
        if self.type == pb.CommandSubscribe.Exclusive and consumer.key_shared.ranges.pairs:
            self._selector = StickyRanges()
            with suppress(ConsumerAssignError):  # as in Pulsar, a consumer with invalid ranges joins and gets nothing
                self._selector.add(consumer)
        insort(self.consumers, consumer, key=_order)
        if self._ring is not None:
            self._ring.add(consumer)
        if not self._choose() and self.type == pb.CommandSubscribe.Failover:
            consumer.client.active_consumer_change(consumer.consumer_id, False)

    def remove_consumer(self, consumer: Consumer) -> None:
        del self.consumers[self.consumers.index(consumer, bisect_left(self.consumers, _order(consumer), key=_order))]
        if self._ring is not None:
            self._ring.remove(consumer)
        if self.active is consumer:
            self.active = self._selector = None
        if self.consumers:
            if not self.closing:
                self._choose()
        elif self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _choose(self) -> bool:
        """Choose the active consumer, and return whether it changed."""
        if self._ring is not None:
            chosen = self._ring.nearest()
        else:
            first = self.consumers[0].priority_level
            group = bisect_right(self.consumers, first, key=attrgetter("priority_level"))
            chosen = self.consumers[max(self._partition, 0) % group]
        if chosen is self.active:
            return False
        self.active = chosen
        if self._delay <= 0:
            self._activate()
        elif self._waiting is None:
            self._waiting = self._subscription.topic.stores.clock.call_later(self._delay, self._activate)
        return True

    def _activate(self) -> None:
        self._waiting = None
        if self._tells:
            for consumer in self.consumers:
                consumer.client.active_consumer_change(consumer.consumer_id, consumer is self.active)
        self._subscription.activated()

    def consumer_for(self, entry: bytes) -> Consumer | None:
        return self._ready()

    def _ready(self) -> Consumer | None:
        active = self.active
        return active if active is not None and self._waiting is None and active.can_receive else None

    def _any_ready(self) -> bool:
        return self._ready() is not None

    def blocked_reason(self) -> Reason:
        if self._waiting is not None:
            return Reason.FAILOVER_DELAY
        if self.active is None:
            return Reason.NO_CONSUMER
        return Reason.NOT_WRITABLE if self.active.permits > 0 else Reason.NO_PERMITS

    def dispatch(self) -> Reason:
        cursor = self.cursor
        for _ in reads():
            consumer = self._ready()
            if consumer is None:
                return self.blocked_reason()
            limit = min(consumer.permits, self._max_read)
            if self.throttle is not None and cursor.has_more() and not (limit := self.throttle.entries(limit)):
                return Reason.RATE_LIMITED
            batch = self._read(consumer, limit)
            if batch is None:
                return Reason.LOADING
            if not batch:
                return self.nothing_more()
            if self._selector is not None:
                batch = [each for each in batch if not self._passes_over(visible_metadata(each[1]))]
            taken = self._hand_over(consumer, batch, consumer.permits)
            if taken < len(batch) and consumer is self.active:
                cursor.read_position = batch[taken][0]
        return self._dispatch_again()

    def _read(self, consumer: Consumer, limit: int) -> Entries | None:
        ready = self._subscription.dispatch_soon
        if not consumer.read_compacted:
            return self.cursor.read(limit, ready)
        return read_compacted(self._subscription.compacted, self.cursor, limit, ready)

    def hash_of(self, metadata: pb.MessageMetadata) -> int | None:
        return None if self._selector is None else self._selector.hash_of_key(key_of(metadata))

    def _passes_over(self, metadata: pb.MessageMetadata | None) -> bool:
        """Return whether the key of an entry is outside of the active consumer's hash ranges."""
        key_hash = None if metadata is None else self.hash_of(metadata)
        return key_hash is not None and self._selector is not None and self._selector.select(key_hash) is None

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        return Reason.NO_OWNER if self._passes_over(metadata) else super().why(position, metadata)

    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None) -> None:
        if consumer is self.active:  # the ids are ignored, because the order must be kept
            self._rewinds.again(self.cursor.mark_delete)
            self.cursor.rewind()

    def give_back(self, positions: Sequence[Position]) -> None:
        self.cursor.rewind()

    def loop(self) -> tuple[Position, int] | None:
        mark = self.cursor.mark_delete
        count, first = self._rewinds.at(mark), self.cursor.ledger.next(mark)
        return (first, count) if count >= LOOP and self.cursor.ledger.is_valid(first) else None


def _order(consumer: Consumer) -> tuple[int, str]:
    return consumer.priority_level, consumer.name
