"""Shared: whole entries, round robin among the consumers that have permits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.dispatch.dispatcher import Dispatcher
from pulsarium.broker.model.dispatch.reason import Reason
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.subscription.consumer import Consumer
from pulsarium.proto.generated import PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription


class SharedDispatcher(Dispatcher):
    """Gives up to `in_a_row` entries to one consumer, then goes on to the next (dispatcherMaxRoundRobinBatchSize).

    Consumers of the lowest priority level come first. What was nacked, or owed by a consumer that left, is delivered
    again before new entries, in order of position (B-18).
    """

    type = pb.CommandSubscribe.Shared
    counts_redeliveries = True

    def __init__(self, in_a_row: int) -> None:
        super().__init__()
        self.replay = PositionSet()
        self._in_a_row = in_a_row
        self._turn_of: dict[int, int] = {}  # priority level -> index of the consumer whose turn it is

    def add_consumer(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        self.consumers.sort(key=lambda c: c.priority_level)

    def remove_consumer(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        for position in consumer.pending:
            self.replay.add(position)
        consumer.pending.clear()
        consumer.unacked = 0
        if not self.consumers:
            self.redeliveries.clear()

    def pick(self) -> Consumer | None:
        level: int | None = None
        group: list[Consumer] = []
        for consumer in [*self.consumers, None]:
            if consumer is not None and (level is None or consumer.priority_level == level):
                level = consumer.priority_level
                group.append(consumer)
                continue
            if level is None:
                return None
            found = self._pick_of(level, group)
            if found is not None or consumer is None:
                return found
            level, group = consumer.priority_level, [consumer]
        return None

    def _pick_of(self, level: int, group: list[Consumer]) -> Consumer | None:
        start = self._turn_of.get(level, 0)
        for step in range(len(group)):
            index = (start + step) % len(group)
            if group[index].can_receive:
                self._turn_of[level] = index + 1
                return group[index]
        return None

    def dispatch(self, subscription: PersistentSubscription) -> Reason:
        cursor = subscription.cursor
        while self.replay or cursor.has_more():
            consumer = self.pick()
            if consumer is None:
                return self.blocked_reason()
            limit = min(consumer.permits, self._in_a_row if len(self.consumers) > 1 else subscription.max_read)
            replayed = bool(self.replay)
            batch = self._next_replays(subscription, limit) if replayed else self._next_new(subscription, limit)
            if batch is None:
                return Reason.LOADING
            taken = self._hand_over(cursor, consumer, batch)
            if not replayed and taken < len(batch):
                cursor.read_position = batch[taken][0]
        return Reason.CAUGHT_UP if self.consumers else Reason.NO_CONSUMER

    def _next_new(self, subscription: PersistentSubscription, limit: int) -> list[tuple[Position, bytes]] | None:
        return subscription.cursor.read(limit, subscription.dispatch_soon)

    def _next_replays(self, subscription: PersistentSubscription, limit: int) -> list[tuple[Position, bytes]] | None:
        found: list[tuple[Position, bytes]] = []
        cursor = subscription.cursor
        gone: list[Position] = []
        for position in self.replay:
            if len(found) == limit:
                break
            if cursor.is_acked(position) or not cursor.ledger.is_valid(position):
                gone.append(position)
                continue
            entries = cursor.ledger.read(position, 1, subscription.dispatch_soon)
            if entries is None:
                if not found:
                    return None
                break
            found.append((position, entries[0]))
        for position in gone:
            self.replay.discard(position)
        return found

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery]) -> None:
        pending = consumer.pending
        for position, _, messages, _, _ in deliveries:
            pending[position] = messages
            consumer.unacked += messages
        if self.replay:
            for delivery in deliveries:
                self.replay.discard(delivery.position)

    def redeliver(
        self, subscription: PersistentSubscription, consumer: Consumer, positions: Sequence[Position] | None
    ) -> None:
        named = list(consumer.pending) if positions is None else dict.fromkeys(positions)
        for position in named:
            owner = consumer if position in consumer.pending else self._owner(position)
            if owner is None:
                continue
            owner.unacked -= owner.pending.pop(position)
            if not subscription.cursor.is_acked(position):
                self.replay.add(position)
                self.redeliveries[position] = self.redeliveries.get(position, 0) + 1

    def _owner(self, position: Position) -> Consumer | None:
        return next((c for c in self.consumers if position in c.pending), None)

    def acknowledged(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        pending = consumer.pending
        for position in positions:
            unacked = pending.pop(position, None)
            if unacked is not None:
                consumer.unacked -= unacked
            elif (owner := self._owner(position)) is not None:
                owner.unacked -= owner.pending.pop(position)
        for position in positions if self.redeliveries or self.replay else ():
            self.redeliveries.pop(position, None)
            self.replay.discard(position)

    def acknowledged_partly(self, consumer: Consumer, position: Position, remaining: int) -> None:
        owner = consumer if position in consumer.pending else self._owner(position)
        if owner is not None:
            owner.unacked -= owner.pending[position] - min(remaining, owner.pending[position])
            owner.pending[position] = min(remaining, owner.pending[position])

    def reset(self) -> None:
        self.replay.clear()
        self.redeliveries.clear()
        for consumer in self.consumers:
            consumer.pending.clear()
            consumer.unacked = 0
