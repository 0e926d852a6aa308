"""Exclusive and Failover: one active consumer gets everything, in order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from pulsarium.broker.clock import Timer
from pulsarium.broker.model.compaction.compacted import read_compacted
from pulsarium.broker.model.dispatch.selector import hash_of
from pulsarium.broker.model.errors import ConsumerBusyError, OwnerMustAnswerError
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.consumer import Consumer
from pulsarium.broker.model.subscription.dispatcher import MOST_READS, Dispatcher, Entries, Reason
from pulsarium.proto.generated import PulsarApi_pb2 as pb

RING_POINTS = 100  # points of each consumer name on the ring that chooses the consumer of a topic without partitions


class SingleActiveDispatcher(Dispatcher):
    """Deliver to the active consumer only.

    The subscription reads from the mark-delete position for a new active consumer: at once for Exclusive, after
    activeConsumerFailoverDelayTimeMillis for Failover (B-03). When the delay is None, no client gets
    ACTIVE_CONSUMER_CHANGE.
    """

    def __init__(self, subscription: Subscription, type: int) -> None:
        super().__init__(subscription)
        self.type = type
        self.active = None
        self._topic = str(subscription.topic.name)
        self._partition = subscription.failover_index
        delay_ms = subscription.failover_delay_ms
        self._tells = type == pb.CommandSubscribe.Failover and delay_ms is not None
        self._delay = (delay_ms or 0) / 1000 if self._tells else 0.0
        self._waiting: Timer | None = None

    @property
    def served(self) -> Sequence[Consumer]:
        return () if self.active is None else (self.active,)

    def add_consumer(self, consumer: Consumer) -> None:
        if self.type == pb.CommandSubscribe.Exclusive and self.consumers:
            busy = ConsumerBusyError("Exclusive consumer is already connected")
            raise OwnerMustAnswerError(self.consumers[0].client, busy)
        self.consumers.append(consumer)
        if not self._choose() and self.type == pb.CommandSubscribe.Failover:
            consumer.client.active_consumer_change(consumer.consumer_id, False)

    def remove_consumer(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        if self.active is consumer:
            self.active = None
        if self.consumers:
            if not self.closing:
                self._choose()
        elif self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _choose(self) -> bool:
        """Choose the active consumer (B-02), and return whether it changed."""
        self.consumers.sort(key=lambda c: (c.priority_level, c.name))
        first = self.consumers[0].priority_level
        group = [c for c in self.consumers if c.priority_level == first]
        if self._partition >= 0:
            chosen = group[self._partition % len(group)]
        elif len(group) == 1:
            chosen = group[0]
        else:
            chosen = group[self._on_ring(group)]
        if chosen is self.active:
            return False
        self.active = chosen
        if self._delay <= 0:
            self._activate()
        elif self._waiting is None:
            self._waiting = self._subscription.topic.stores.clock.call_later(self._delay, self._activate)
        return True

    def _on_ring(self, group: list[Consumer]) -> int:
        ring = {hash_of(f"{c.name}{j}"): i for i, c in enumerate(group) for j in range(RING_POINTS)}
        points = sorted(ring)
        return ring[points[bisect_left(points, hash_of(self._topic)) % len(points)]]

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
        for _ in range(MOST_READS):
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
            taken = self._hand_over(consumer, batch, consumer.permits)
            if taken < len(batch) and consumer is self.active:
                cursor.read_position = batch[taken][0]
        return self._goes_on()

    def _read(self, consumer: Consumer, limit: int) -> Entries | None:
        ready = self._subscription.dispatch_soon
        if not consumer.read_compacted:
            return self.cursor.read(limit, ready)
        return read_compacted(self._subscription.compacted, self.cursor, limit, ready)

    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None) -> None:
        if consumer is self.active:  # the ids are ignored, because the order must be kept (cmd 20)
            self.cursor.rewind()

    def give_back(self, positions: Sequence[Position]) -> None:
        self.cursor.rewind()
