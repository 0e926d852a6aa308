"""The base class of Shared and Key_Shared: unacknowledged, redelivered and waiting entries.

An entry behind the mark-delete position is at each moment in one of these places, and moves between them:

    not read yet --read--> on its way --send--> pending at a consumer --ack--> gone
                              ^                        |
                              |                        | nack, end of the consumer, abort
           replay or waiting  +------------------------+
           delayed: until its time

`replay` has the entries to deliver again, which come before entries that were never read. Consumers take turns by their
priority level (`Rotation`), those of the lowest level first, as long as one of them has permits and room on its
connection. A dispatch goes on until no consumer can receive, nothing is left, or a limit stops it, and returns the
reason. Whatever may lift that reason (FLOW, an acknowledgement, a timer, room on a connection) calls for a dispatch at
the end of its turn. So nothing polls, and a subscription without traffic costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import itemgetter

from pulsarium.broker.model.client import Delivery
from pulsarium.broker.model.dispatch.delays import Delays
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.position_set import PositionSet
from pulsarium.broker.model.news import Kind
from pulsarium.broker.model.subscription.base import Consumer, Dispatcher, Subscription
from pulsarium.broker.model.subscription.loops import LOOP
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

Entry = tuple[Position, bytes]
_debt_of = itemgetter(0, 2)  # position and messages of a delivery
MOST_FREE = 64  # slots that may be free beside as many as are taken


class Level:
    """Consumers of one priority level in the order they joined, each in a slot, with a bit for each that may be ready.

    The slots of consumers that left stay free until most are free, so a consumer leaves without a step for each other.
    """

    __slots__ = ("consumers", "end", "following", "ready", "slot_of", "taken")

    def __init__(self) -> None:
        self.consumers: dict[int, Consumer] = {}  # by slot, in order
        self.slot_of: dict[Consumer, int] = {}
        self.taken = 0  # a bit for each slot with a consumer
        self.ready = 0
        self.end = 0  # slot of the next consumer
        self.following = 0  # slot at which the search for the next consumer begins

    def add(self, consumer: Consumer) -> None:
        self.consumers[self.end] = consumer
        self.slot_of[consumer] = self.end
        self.taken |= 1 << self.end
        self.end += 1

    def remove(self, consumer: Consumer) -> None:
        slot = self.slot_of.pop(consumer)
        del self.consumers[slot]
        following = self._taken_from(self.following)
        self.taken &= ~(1 << slot)
        self.ready &= ~(1 << slot)
        self.following = following if slot > following else self._taken_from(following + 1)
        if self.end > 2 * len(self.consumers) + MOST_FREE:
            self._close_up()

    def _taken_from(self, slot: int) -> int:
        """Return the first taken slot from `slot` on. Slots from `end` on count as taken."""
        later = self.taken >> slot
        return slot + (later & -later).bit_length() - 1 if later else max(slot, self.end)

    def _close_up(self) -> None:
        """Give consumers new slots without free ones between them."""
        consumers, count = list(self.consumers.values()), len(self.consumers)
        before = (self.taken & ((1 << self.following) - 1)).bit_count()
        self.following = before + max(self.following - self.end, 0)
        self.consumers = dict(enumerate(consumers))
        self.slot_of = {consumer: slot for slot, consumer in enumerate(consumers)}
        self.taken = self.ready = (1 << count) - 1
        self.end = count

    def next(self) -> Consumer | None:
        start = self.following
        while self.ready:
            later = self.ready >> start
            if not later:
                start = 0
                continue
            slot = start + (later & -later).bit_length() - 1
            consumer = self.consumers[slot]
            if consumer.can_receive:
                self.following = slot + 1
                return consumer
            self.ready &= ~(1 << slot)  # until `Rotation.ready` sets the bit again
        return None


class Rotation(Collection[Consumer]):
    """Consumers in the order of their priority levels. They take turns, those of the lowest level first.

    A consumer that cannot receive is skipped until `ready` is called. So a turn costs the same with one consumer and
    with a thousand.
    """

    def __init__(self) -> None:
        self._levels: dict[int, Level] = {}  # in order
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Consumer]:
        for level in self._levels.values():
            yield from level.slot_of

    def __contains__(self, consumer: object) -> bool:
        return any(consumer in level.slot_of for level in self._levels.values())

    def add(self, consumer: Consumer) -> None:
        level = self._levels.get(consumer.priority_level)
        if level is None:
            self._levels[consumer.priority_level] = level = Level()
            self._levels = dict(sorted(self._levels.items()))
        level.add(consumer)
        self._count += 1

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer. The turn stays at the same index, as in Pulsar, even if that skips a consumer."""
        level = self._levels[consumer.priority_level]
        level.remove(consumer)
        self._count -= 1
        if not level.consumers:
            del self._levels[consumer.priority_level]

    def ready(self, consumer: Consumer) -> None:
        """Note that a consumer may be able to receive."""
        level = self._levels[consumer.priority_level]
        level.ready |= 1 << level.slot_of[consumer]

    def next(self) -> Consumer | None:
        """Return the consumer whose turn it is, or None when none can receive."""
        for level in self._levels.values():
            if level.ready and (consumer := level.next()) is not None:
                return consumer
        return None


class SharingDispatcher(Dispatcher):
    """A dispatcher of several consumers, each with its unacknowledged entries (`Consumer.pending`).

    `replay` has negatively acknowledged entries, and those of consumers that left. They go out before new entries, in
    order of position. `_waiting` has entries that only one consumer may get, which cannot take them now.
    """

    shares_messages = True
    delayed: Delays

    def __init__(self, subscription: Subscription) -> None:
        super().__init__(subscription)
        self.replay = PositionSet()
        self.delayed = Delays(subscription)
        self.blocked = False
        self.consumers = self._rotation = Rotation()
        self._waiting: dict[Consumer, PositionSet] = {}
        self._to_serve: dict[Consumer, None] = {}  # consumers in `_waiting` that may be able to take entries

    # consumers

    def add_consumer(self, consumer: Consumer) -> None:
        if not self.consumers:
            self.delayed.clear()
        self._rotation.add(consumer)

    def remove_consumer(self, consumer: Consumer) -> None:
        self._rotation.remove(consumer)
        unacked = list(consumer.pending)
        consumer.pending.clear()
        consumer.blocked = False
        self._owe(consumer, -consumer.unacked)
        waiting = self._waiting.pop(consumer, None)
        self._to_serve.pop(consumer, None)
        if not self.consumers:
            self._forget_everything()
            return
        self._again(unacked)
        if waiting is not None:
            self._again(waiting)

    def resume(self, consumer: Consumer) -> None:
        self._rotation.ready(consumer)
        if consumer in self._waiting:
            self._to_serve[consumer] = None

    def _again(self, positions: Iterable[Position]) -> None:
        """Redeliver entries, to the consumers that may get them now."""
        self.replay.update(positions)

    # unacknowledged messages

    def _owe(self, consumer: Consumer, messages: int) -> None:
        """Add to a consumer's unacknowledged messages (or subtract), and enforce their limits."""
        consumer.unacked += messages
        self.unacked += messages
        policies = self._subscription.topic.policies
        if not self._subscription.durable:
            return
        limit = policies.max_unacked_per_consumer
        if consumer.blocked:
            if consumer.unacked <= limit // 2 or limit <= 0:
                self._unblock(consumer)
        elif consumer.unacked >= limit > 0:
            consumer.blocked = True
        limit = policies.max_unacked_per_subscription
        if self.blocked:
            if self.unacked < limit // 2 or limit <= 0:
                self.blocked = False
                self._subscription.dispatch_soon()
        elif self.unacked >= limit > 0:
            self.blocked = True

    def _unblock(self, consumer: Consumer) -> None:
        consumer.unblock()
        self.resume(consumer)
        self._subscription.dispatch_soon()

    def policies_changed(self) -> None:
        for consumer in self.consumers:
            self._owe(consumer, 0)
        self._again(self.delayed.policy_changed())

    def _capacity(self, consumer: Consumer) -> int:
        """Return how many messages a consumer that can receive may get."""
        limit = self._subscription.topic.policies.max_unacked_per_consumer
        if limit > 0 and self._subscription.durable:
            return max(1, min(consumer.permits, limit - consumer.unacked))
        return consumer.permits

    def _delivering(self, consumer: Consumer, deliveries: Sequence[Delivery], messages: int) -> None:
        consumer.pending.update(map(_debt_of, deliveries))
        self._owe(consumer, messages)

    def _owner(self, position: Position) -> Consumer | None:
        return next((each for each in self.consumers if position in each.pending), None)

    def _settled(self, positions: Sequence[Position]) -> None:
        """Note that entries are not unacknowledged any more."""
        return

    def settle(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        pending, messages = consumer.pending, 0
        for position in positions:
            unacked = pending.pop(position, None)
            if unacked is not None:
                messages += unacked
            elif (owner := self._owner(position)) is not None:
                self._owe(owner, -owner.pending.pop(position))
        if messages:
            self._owe(consumer, -messages)
        self._settled(positions)
        for position in positions if self.redeliveries or self.replay else ():
            self.redeliveries.pop(position, None)
            self.replay.discard(position)

    def settle_partly(self, consumer: Consumer, position: Position, remaining: int) -> None:
        self.redeliveries.pop(position, None)  # the count begins anew, as in Pulsar
        self.settle_in_transaction(consumer, position, remaining)

    def settle_in_transaction(self, consumer: Consumer, position: Position, remaining: int) -> None:
        owner = consumer if position in consumer.pending else self._owner(position)
        if owner is None:
            return
        if not remaining:
            self._take_back(owner, position)
        elif remaining < owner.pending[position]:
            settled = owner.pending[position] - remaining
            owner.pending[position] = remaining
            self._owe(owner, -settled)

    def _take_back(self, owner: Consumer, position: Position) -> None:
        """Remove an entry from a consumer's unacknowledged messages."""
        self._owe(owner, -owner.pending.pop(position))
        self._settled((position,))

    def will_redeliver(self, position: Position) -> bool:
        return position in self.replay

    def count_delayed(self, *, unacknowledged: bool) -> int:
        return self.delayed.count_unacknowledged(self.cursor) if unacknowledged else len(self.delayed)

    def forget_delayed(self) -> None:
        self.delayed.clear()

    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None) -> None:
        asked = list(consumer.pending) if positions is None else dict.fromkeys(positions)
        for position in self._taken_back(consumer, asked):
            self._count_redelivery(position)

    def take_returned(self, consumer: Consumer, positions: Sequence[Position]) -> None:
        self._taken_back(consumer, [each for each in dict.fromkeys(positions) if each in consumer.pending])

    def _taken_back(self, consumer: Consumer, positions: Iterable[Position]) -> list[Position]:
        """Take entries back from their consumers, to deliver them again, and return those that are unacknowledged."""
        again: list[Position] = []
        unacked = self.unacked
        for position in positions:
            owner = consumer if position in consumer.pending else self._owner(position)
            if owner is None:
                continue
            self._take_back(owner, position)
            if not self.cursor.is_acked(position):
                again.append(position)
        consumer.redelivered += unacked - self.unacked
        self._again(again)
        if consumer.blocked:
            self._unblock(consumer)
        return again

    def _count_redelivery(self, position: Position) -> None:
        if self.redeliveries.again(position) == LOOP:
            topic = self._subscription.topic
            about = {"topic": topic.name, "subscription": self._subscription.name, "message": position}
            topic.stores.news.tell(Kind.LOOP_FOUND, **about)

    def give_back(self, positions: Sequence[Position]) -> None:
        for position in positions if self.consumers else ():
            owner = self._owner(position)
            if owner is not None:  # the consumer has the rest of the batch
                self._take_back(owner, position)
            self._count_redelivery(position)
            if position < self.cursor.read_position:  # else the entry will be read
                self.replay.add(position)

    # entries that wait for their time

    def _holds_back(self, consumer: Consumer, position: Position, metadata: pb.MessageMetadata) -> bool:
        return self.delayed.holds_back(position, metadata)

    # entries that wait for their consumer

    def _wait_for(self, consumer: Consumer, position: Position) -> None:
        self._waiting.setdefault(consumer, PositionSet()).add(position)
        self._to_serve[consumer] = None

    @property
    def waiting_count(self) -> int:  # type: ignore[override]
        return len(self.replay) + sum(map(len, self._waiting.values()))

    def _serve_waiting(self) -> Reason | None:
        """Deliver entries that waited for their consumers. Return the reason if that stops, else None."""
        while self._to_serve:
            consumer = next(iter(self._to_serve))
            positions = self._waiting.get(consumer)
            while positions and consumer.can_receive:
                permits = self._capacity(consumer)
                limit = self._allowed(min(permits, self._max_read))
                if not limit:
                    return Reason.RATE_LIMITED
                entries = self._stored(positions, limit)
                if entries is None:
                    return Reason.LOADING
                self._hand_over(consumer, entries, permits, positions)
            if not positions:
                self._waiting.pop(consumer, None)
            self._to_serve.pop(consumer, None)
        return None

    def holder(self, position: Position) -> Consumer | None:
        waiting = (consumer for consumer, positions in self._waiting.items() if position in positions)
        return self._owner(position) or next(waiting, None)

    def undelivered(self) -> list[Iterable[Position]]:
        return [self.replay, *self._waiting.values()]

    def _stored(self, positions: PositionSet, limit: int) -> list[Entry] | None:
        """Return the first of these entries, or None while they are loaded.

        Drop acknowledged positions from `positions`.
        """
        cursor = self.cursor
        found: list[Entry] = []
        gone: list[Position] = []
        run: Sequence[bytes] = ()  # entries that were read together, and the position of the first of them
        run_ledger, run_first = -1, 0
        for position in positions:
            if len(found) == limit:
                break
            ledger_id, entry_id = position
            is_read = ledger_id == run_ledger and entry_id - run_first < len(run)
            if cursor.is_acked(position) or not (is_read or cursor.ledger.is_valid(position)):
                gone.append(position)
                continue
            if not is_read:
                try:
                    entries = cursor.ledger.read(position, self._max_read, self._subscription.dispatch_soon)
                except StorageError:
                    if not found:
                        raise
                    break
                if entries is None:
                    if not found:
                        return None
                    break
                run, run_ledger, run_first = entries, ledger_id, entry_id
            found.append((position, run[entry_id - run_first]))
        for position in gone:
            positions.discard(position)
        return found

    # the rest

    def reset(self) -> None:
        self._forget_everything()

    def _forget_everything(self) -> None:
        self.blocked = False
        self.replay.clear()
        self.redeliveries.clear()
        self._waiting.clear()
        self._to_serve.clear()
        self.delayed.leave()

    def why(self, position: Position, metadata: pb.MessageMetadata) -> Reason:
        if self._owner(position) is not None:
            return Reason.DELIVERED
        if any(position in positions for positions in self._waiting.values()):
            return Reason.WAITING
        if position in self.delayed:
            return Reason.DELAYED
        return super().why(position, metadata)
