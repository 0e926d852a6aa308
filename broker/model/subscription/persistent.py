"""Subscriptions of persistent topics: a cursor and a dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from pulsarium.broker.model.client import Client
from pulsarium.broker.model.compaction.compacted import CompactedTopic, is_compacted_away
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import BrokerServiceError, ServiceNotReadyError
from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.broker.model.policy import without_effect
from pulsarium.broker.model.rate.rates import DispatchLimiter, PublishAverage
from pulsarium.broker.model.subscription.base import SubscribedTopic, Subscription
from pulsarium.broker.model.subscription.consumer import INT_MAX, Consumer, ConsumerOptions
from pulsarium.broker.model.subscription.dispatcher import Dispatcher, Reason
from pulsarium.broker.model.subscription.skip import CUMULATIVE, MarkMoves, MovedBy
from pulsarium.broker.model.subscription.throttle import Throttle
from pulsarium.broker.model.subscription.unreadable import Unreadable
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.entry import visible_metadata

if TYPE_CHECKING:
    from pulsarium.broker.model.cursor.pending_acks import PendingAcks
    from pulsarium.broker.model.cursor.pending_record import Acked
    from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
    from pulsarium.proto.message_id import TxnId


REPLICATED = "pulsar.replicated.subscription"
NO_PROPERTIES: Mapping[str, int] = MappingProxyType({})


class Compaction(Protocol):
    """Compaction of a topic, as its subscriptions see it."""

    @property
    def compacted(self) -> CompactedTopic: ...


class SubscribedPersistentTopic(SubscribedTopic, Protocol):
    """A persistent topic, as its subscriptions see it."""

    last_dispatchable: tuple[Position, Position]
    last_batch_index: tuple[Position, int]

    @property
    def ledger(self) -> ManagedLedger: ...

    @property
    def compaction(self) -> Compaction: ...

    @property
    def publish_average(self) -> PublishAverage: ...

    @property
    def dispatch_limits(self) -> Iterable[tuple[str, DispatchLimiter]]: ...

    def forget_reader(self, subscription: PersistentSubscription) -> None: ...

    def trim_soon(self) -> None: ...

    def position_at(self, time_ms: int) -> Position: ...


class PersistentSubscription(Subscription):
    """A subscription of a persistent topic: delivers entries, and keeps acknowledgements in a cursor."""

    topic: SubscribedPersistentTopic
    reason: Reason
    throttle: Throttle
    cursor: ManagedCursor

    def __init__(self, topic: SubscribedPersistentTopic, cursor: ManagedCursor) -> None:
        super().__init__(topic, cursor.name)
        self.cursor = cursor
        self.reason = Reason.NO_CONSUMER  # why the last dispatch stopped
        self.resetting = False
        self.mark_delete_advanced_ms = 0
        self.used = topic.stores.clock.monotonic()  # time of the last known use; loading the topic counts, as in Pulsar
        self.unreadable = Unreadable(self)
        self.mark_moves = MarkMoves(cursor.mark_delete)
        self.throttle = Throttle(cursor, topic.stores, topic.publish_average, self.dispatch_soon)
        self._mark_seen = cursor.mark_delete
        self._dispatches_next_turn = False
        self._told_end: set[Consumer] = set()  # consumers that got REACHED_END_OF_TOPIC
        if cursor.pending_acks is not None:
            cursor.pending_acks.attach(self, str(topic.name))

    @property
    def compacted(self) -> CompactedTopic:
        return self.topic.compaction.compacted

    @property
    def durable(self) -> bool:  # type: ignore[override]
        return self.cursor.durable

    @property
    def pending_acks(self) -> PendingAcks | None:
        """Return the acknowledgements of open transactions, or None without transactionCoordinatorEnabled."""
        return self.cursor.pending_acks

    @property
    def replicated(self) -> bool:  # type: ignore[override]
        """Return whether the subscription is replicated. Pulsar keeps this among the cursor's properties too."""
        return REPLICATED in self.cursor.properties

    def set_replicated(self, replicated: bool) -> None:
        """Keep whether the subscription is replicated, which has no effect here."""
        if replicated and not self.replicated:
            without_effect.tell(without_effect.REPLICATED, f"{self.topic.name}/{self.name}")
        others = {key: value for key, value in self.cursor.properties.items() if key != REPLICATED}
        self.cursor.properties = ({REPLICATED: 1} if replicated else {}) | others
        self.cursor.save()

    # consumers

    def touch(self) -> None:
        """Note that the subscription is in use, or was until now."""
        self.used = self.topic.stores.clock.monotonic()

    def add_consumer(self, client: Client, options: ConsumerOptions) -> Consumer:
        if self.resetting:
            raise ServiceNotReadyError("Subscription is fenced")
        return super().add_consumer(client, options)

    def _before_adding(self, dispatcher: Dispatcher) -> None:
        super()._before_adding(dispatcher)
        dispatcher.throttle = self._throttled()
        if not dispatcher.consumers:
            dispatcher.reset()
            self.cursor.rewind()

    def _throttled(self) -> Throttle | None:
        """Return the throttle with the current limits, or None without limits."""
        return self.throttle.changed(self.topic.policies.dispatch_rate_of(self.name), self.topic.dispatch_limits)

    def activated(self) -> None:
        self.cursor.rewind()
        self.dispatch_soon()

    def remove_consumer(self, consumer: Consumer) -> None:
        super().remove_consumer(consumer)
        self.dispatch_soon()

    def _last_consumer_left(self) -> None:
        self.touch()
        self.throttle.stop()
        self.unreadable.stop()
        self.cursor.save_soon()
        if not self.durable:
            self.topic.forget_reader(self)

    def flow(self, consumer: Consumer, permits: int) -> None:
        if consumer.permits + permits > INT_MAX:
            self.dispatch()  # deliver what the old permits allow, before they wrap
            if consumer not in self.consumers:  # the delivery ended its connection
                return
        super().flow(consumer, permits)

    # delivering

    def dispatch_soon(self) -> None:
        """Dispatch at the end of this turn."""
        self.topic.stores.turn.dispatch(self)

    def dispatch_next_turn(self) -> None:
        """Dispatch in a turn of its own, after other work that is ready."""
        if not self._dispatches_next_turn:
            self._dispatches_next_turn = True
            self.topic.stores.turn.later(self._go_on)

    def _go_on(self) -> None:
        self._dispatches_next_turn = False
        self.dispatch_soon()

    def policies_changed(self) -> None:
        """Apply changed limits and delays."""
        if self.dispatcher is not None:
            self.dispatcher.throttle = self._throttled()
            self.dispatcher.policies_changed()
            self.dispatch_soon()

    def dispatch(self) -> None:
        """Deliver as much as possible, and keep the reason why dispatch stopped."""
        if self.dispatcher is None:
            self.reason = Reason.NO_CONSUMER
        elif self.resetting:
            self.reason = Reason.FENCED
        else:
            try:
                self.reason = self.dispatcher.dispatch()
            except StorageError as error:
                self.reason = self.unreadable.met(error)
            if self.reason is Reason.CAUGHT_UP:
                if self.unreadable.told:
                    self.unreadable.stop()
                self.check_end_of_topic()

    @property
    def has_backlog(self) -> bool:
        return self.cursor.backlog() > 0

    def check_end_of_topic(self, *, again: bool = False) -> None:
        """Send REACHED_END_OF_TOPIC once everything of a terminated topic is acknowledged (cmd 27).

        Call this when a read finds the end, and after acknowledgements. For a request to terminate, pass `again`:
        consumers that have the command already receive it again.
        """
        if not self.topic.ledger.is_ended or self.has_backlog:
            return
        if self.topic.moved_to is not None:
            self.disconnect_consumers(self.topic.moved_to)
            return
        for consumer in list(self.consumers):
            if again or consumer not in self._told_end:
                consumer.client.reached_end_of_topic(consumer.consumer_id)
        self._told_end = set(self.consumers)

    def why(self, position: Position) -> Reason:
        """Return the state of one entry: why no consumer has it, or that one does."""
        if self.cursor.is_acked(position):
            return Reason.ACKNOWLEDGED
        if self.pending_acks and self.cursor.left_of(position) == 0:
            return Reason.PENDING_ACK
        reads_compacted = any(consumer.read_compacted for consumer in self.consumers)
        if reads_compacted and is_compacted_away(self.compacted, position):
            return Reason.COMPACTED_AWAY
        ledger = self.topic.ledger
        if position > ledger.max_read:
            return Reason.OPEN_TRANSACTION
        entry = ledger.read_now(position)
        if ledger.transactions.hides(position, entry):
            return Reason.ABORTED
        metadata = visible_metadata(entry)
        if self.dispatcher is None or metadata is None:
            return self.reason
        if not self.dispatcher.shares_messages and position < self.reads_on_at:
            return Reason.DELIVERED
        reason = self.dispatcher.why(position, metadata)
        stopped = reason is Reason.TO_BE_DELIVERED and self.reason is not Reason.CAUGHT_UP
        return self.reason if stopped else reason

    @property
    def reads_on_at(self) -> Position:
        """Return the position where reading goes on.

        Without a served consumer, that is behind the mark-delete position: the next one receives unacknowledged
        messages again.
        """
        dispatcher, cursor = self.dispatcher, self.cursor
        anew = dispatcher is None or dispatcher.blocked_reason() in (Reason.NO_CONSUMER, Reason.FAILOVER_DELAY)
        return cursor.ledger.next(cursor.mark_delete) if anew else cursor.read_position

    def redeliver(self, consumer: Consumer, positions: Sequence[Position] | None, epoch: int | None) -> None:
        """Redeliver entries, or with None all unacknowledged messages of the consumer.

        Later deliveries to a single active consumer carry a greater `epoch` (C-09).
        """
        assert self.dispatcher is not None
        if epoch is not None and not self.dispatcher.shares_messages and signed(epoch) > signed(consumer.epoch or 0):
            consumer.epoch = epoch
        if positions is None:
            self.flow_ms = self.topic.now_ms()  # Pulsar counts this as a FLOW of the held-back permits, even of none
        self.dispatcher.redeliver(consumer, positions)
        self.dispatch_soon()

    def give_back(self, positions: Sequence[Position]) -> None:
        """Redeliver entries at once, because the transaction that acknowledged them was aborted."""
        if self.dispatcher is not None:
            self.dispatcher.give_back(positions)
            self.dispatch()  # deliver before the end of the transaction is answered

    # acknowledging

    def acknowledge(
        self,
        consumer: Consumer | None,
        positions: Sequence[Position],
        parts: Iterable[tuple[Position, Sequence[int]]] = (),
        properties: Mapping[str, int] = NO_PROPERTIES,
        *,
        save_now: bool,
    ) -> None:
        """Acknowledge whole entries, and `parts`: batches with the ack set of their remaining messages (PIP-54).

        Without a `consumer`, the acknowledgement counts as one of the first consumer. `save_now` stores the cursor with
        this commit.
        """
        dispatcher = self.dispatcher
        unacked = 0 if dispatcher is None else dispatcher.unacked
        if consumer is None:
            consumer = next(iter(self.consumers), None)
        for position, ack_set in parts:
            self._acknowledge_partly(consumer, position, ack_set)
        for position in positions:
            self.cursor.ack(position)
        if self.pending_acks:
            self.pending_acks.forget(positions)
        if consumer is not None and dispatcher is not None:
            dispatcher.settle(consumer, positions)
            consumer.acked += unacked - dispatcher.unacked
        self._acknowledged(properties, save_now=save_now)

    def _acknowledge_partly(self, consumer: Consumer | None, position: Position, ack_set: Sequence[int]) -> None:
        cursor, dispatcher = self.cursor, self.dispatcher
        whole = cursor.ack_batch(position, ack_set)
        if consumer is None or dispatcher is None:
            return
        if whole:
            dispatcher.settle(consumer, (position,))
        elif not cursor.is_acked(position) and (left := cursor.left_of(position)) is not None:
            dispatcher.settle_partly(consumer, position, left.bit_count())

    def acknowledge_in(self, txn: TxnId, consumer: Consumer, acks: Sequence[Acked]) -> None:
        """Acknowledge entries or parts of batches in a transaction, or raise `TransactionConflictError`."""
        assert self.pending_acks is not None
        assert self.dispatcher is not None
        self.pending_acks.acknowledge(txn, acks)
        unacked = self.dispatcher.unacked
        for each in acks:
            left = self.cursor.left_of(each.position)
            self.dispatcher.owed_less(consumer, each.position, (left or 0).bit_count())
        consumer.acked += unacked - self.dispatcher.unacked

    def acknowledge_through(
        self,
        position: Position,
        ack_set: Sequence[int] = (),
        by: MovedBy = CUMULATIVE,
        properties: Mapping[str, int] = NO_PROPERTIES,
        *,
        save_now: bool,
    ) -> None:
        """Acknowledge all entries through `position`; with an ack set, up to a message inside that batch."""
        before = self.cursor.mark_delete
        if ack_set:
            self.cursor.ack_cumulative(self.cursor.ledger.previous(position))
            if any(ack_set):
                self.cursor.ack_batch(position, ack_set)
        else:
            self.cursor.ack_cumulative(position)
        # cumulative acknowledgements are frequent, and a timestamp would slow them down
        ms = 0 if by is CUMULATIVE else self.topic.now_ms()
        self.mark_moves.note(by, before, self.cursor.mark_delete, ms)
        if self.dispatcher is not None and self.dispatcher.shares_messages:
            for consumer in list(self.dispatcher.consumers):
                passed = [each for each in consumer.pending if each <= self.cursor.mark_delete]
                if passed:
                    self.dispatcher.settle(consumer, passed)
        self._acknowledged(properties, save_now=save_now)

    def _acknowledged(self, properties: Mapping[str, int], *, save_now: bool) -> None:
        """Store acknowledgements, and trim ledgers that are not needed any more."""
        if properties:
            self.cursor.properties = ({REPLICATED: 1} if self.replicated else {}) | dict(properties)
        if self.cursor.mark_delete != self._mark_seen:
            self._mark_seen = self.cursor.mark_delete
            self.mark_delete_advanced_ms = self.topic.now_ms()
        if save_now:
            self.cursor.save()
        else:
            self.cursor.save_soon()
        self.check_end_of_topic()
        if self.durable:
            self.topic.trim_soon()

    @property
    def shares_messages(self) -> bool:
        """Return whether several consumers receive messages, which rules out cumulative acknowledgement (B-16)."""
        return self.dispatcher is not None and self.dispatcher.shares_messages

    # moving

    def reset(self, move: Callable[[], None], done: Callable[[BrokerServiceError | None], None]) -> None:
        """Disconnect the served consumers, call `move`, which moves the cursor, and call `done` once that is stored.

        The subscription is fenced from now on. The rest happens at the end of the turn, so that a second SEEK right
        behind this one is refused, as in Pulsar.
        """
        turn = self.topic.stores.turn
        if self.resetting:
            text = "Error when resetting subscription: Failed to fence subscription"
            turn.after_commit(lambda error: done(BrokerServiceError(text)))
            return
        self.resetting = True
        turn.after_commit(lambda error: self.reset_now(move, done))

    def reset_now(
        self, move: Callable[[], None], done: Callable[[BrokerServiceError | None], None] = lambda error: None
    ) -> None:
        """Reset the subscription at once, for requests of no consumer. Not to be called while `resetting`."""
        self.resetting = True
        self._move(move)

        def kept(error: Exception | None) -> None:
            self.resetting = False
            done(None if error is None else BrokerServiceError(f"Error when resetting subscription: {error}"))
            self.dispatch_soon()

        self.topic.stores.turn.after_commit(kept)

    def move(self, position: Position) -> None:
        """Move the cursor to `position`, for a consumer that is about to join."""
        self._move(lambda: self.cursor.reset(position))

    def _move(self, move: Callable[[], None]) -> None:
        # As in Pulsar, passive consumers stay connected, and stay passive until a consumer joins or leaves.
        served = () if self.dispatcher is None else tuple(self.dispatcher.served)
        with self._nobody_follows():
            self.disconnect_those(lambda consumer: consumer in served)
        move()
        self.touch()
        self.mark_moves.sought(self.cursor.mark_delete, self.topic.now_ms())
        if self.dispatcher is not None:
            self.dispatcher.reset()

    def delete(self) -> None:
        """Disconnect all consumers, and delete the cursor."""
        self.disconnect_consumers()
        self.cursor.delete()
