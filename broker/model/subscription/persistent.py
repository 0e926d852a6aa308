"""Subscriptions of persistent topics: a cursor and a dispatcher, and retries of what the store cannot read."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Protocol

from pulsarium.broker.clock import Timer
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.client import Client
from pulsarium.broker.model.compaction.compacted import CompactedTopic, CompactionOf, is_compacted_away
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.pending_acks import PendingAcks
from pulsarium.broker.model.cursor.pending_record import PendingEntry
from pulsarium.broker.model.cursor.records import NO_PROPERTIES, CursorProperties
from pulsarium.broker.model.errors import BrokerServiceError, ServiceNotReadyError
from pulsarium.broker.model.ledger.managed_ledger import ManagedLedger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.policy import without_effect
from pulsarium.broker.model.rate.rates import DispatchLimiter, PublishAverage
from pulsarium.broker.model.subscription.base import Consumer, Dispatcher, SubscribedTopic, Subscription
from pulsarium.broker.model.subscription.mark_moves import CUMULATIVE, MarkMoves, MovedBy
from pulsarium.broker.model.subscription.options import ConsumerOptions
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.model.subscription.throttle import Throttle
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError
from pulsarium.proto.entry import visible_metadata
from pulsarium.proto.message_id import TxnId
from pulsarium.proto.numbers import INT_MAX, signed

log = PartLog("dispatch")

REPLICATED = "pulsar.replicated.subscription"


class SubscribedPersistentTopic(SubscribedTopic, Protocol):
    """A persistent topic, as its subscriptions see it."""

    last_dispatchable: tuple[Position, Position]
    last_batch_index: tuple[Position, int]

    @property
    def ledger(self) -> ManagedLedger: ...

    @property
    def compaction(self) -> CompactionOf: ...

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
        self.used_ms = topic.now_ms()  # time of the last known use; loading the topic counts, as in Pulsar
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
        self.cursor.properties = CursorProperties(({REPLICATED: 1} if replicated else {}) | others)
        self.cursor.save()

    # consumers

    def touch(self) -> None:
        """Note that the subscription is in use, or was until now."""
        self.used_ms = self.topic.now_ms()

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
            if consumer.left:  # the delivery ended its connection
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
        """Send REACHED_END_OF_TOPIC once everything of a terminated topic is acknowledged.

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
        reason = self.dispatcher.why(position, metadata)
        passed = not self.dispatcher.shares_messages and position < self.reads_on_at
        if passed and reason is not Reason.NO_OWNER:
            return Reason.DELIVERED
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

        Later deliveries to a single active consumer carry a greater `epoch`.
        """
        assert self.dispatcher is not None
        if epoch is not None and not self.dispatcher.shares_messages and signed(epoch) > signed(consumer.epoch or 0):
            consumer.epoch = epoch
        if positions is None:
            self.flow_ms = self.topic.now_ms()  # Pulsar counts this as a FLOW of the held-back permits, even of none
        self.dispatcher.redeliver(consumer, positions)
        self.topic.note_move()
        self.dispatch_soon()

    def negative_ack(self, consumer: Consumer, refused: Sequence[Position], returned: Sequence[Position]) -> None:
        """Keep the order of the keys of `refused`, and deliver `returned` again (PIP-493)."""
        assert self.dispatcher is not None
        if self.topic.stores.config.keySharedNegativeAckOrderingEnabled:
            self.dispatcher.refuse(consumer, refused)
        self.dispatcher.take_returned(consumer, returned)
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
        properties: CursorProperties = NO_PROPERTIES,
        *,
        save_now: bool,
    ) -> None:
        """Acknowledge whole entries, and `parts`: batches with the ack set of their remaining messages (PIP-54).

        Without a `consumer`, the acknowledgement counts as one of the first consumer. `save_now` stores the cursor for
        a caller that waits, by `ManagedCursor.after_save`.
        """
        dispatcher = self.dispatcher
        unacked = 0 if dispatcher is None else dispatcher.unacked
        if consumer is None:
            consumer = next(iter(self.consumers), None)
        for position, ack_set in parts:
            self._acknowledge_partly(consumer, position, ack_set)
        self.cursor.ack_all(positions)
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

    def acknowledge_in(self, txn: TxnId, consumer: Consumer, acks: Sequence[PendingEntry]) -> None:
        """Acknowledge entries or parts of batches in a transaction, or raise `TransactionConflictError`."""
        assert self.pending_acks is not None
        assert self.dispatcher is not None
        self.pending_acks.acknowledge(txn, acks)
        self._settle_in_transaction(consumer, acks)

    def acknowledge_in_steps(
        self, txn: TxnId, consumer: Consumer, acks: Iterable[PendingEntry]
    ) -> Generator[None, None, None]:
        """Acknowledge very many entries as `acknowledge_in` does. See `PendingAcks.acknowledge_in_steps`."""
        assert self.pending_acks is not None
        return self.pending_acks.acknowledge_in_steps(txn, acks, partial(self._settle_in_transaction, consumer))

    def _settle_in_transaction(self, consumer: Consumer, acks: Sequence[PendingEntry]) -> None:
        assert self.dispatcher is not None
        unacked = self.dispatcher.unacked
        for each in acks:
            left = self.cursor.left_of(each.position)
            self.dispatcher.settle_in_transaction(consumer, each.position, (left or 0).bit_count())
        self.topic.note_move()
        consumer.acked += unacked - self.dispatcher.unacked

    def acknowledge_through(
        self,
        position: Position,
        ack_set: Sequence[int] = (),
        by: MovedBy = CUMULATIVE,
        properties: CursorProperties = NO_PROPERTIES,
        *,
        save_now: bool,
    ) -> None:
        """Acknowledge all entries through `position`; with an ack set, up to a message inside that batch."""
        before, acks = self.cursor.mark_delete, self.cursor.individual_acks
        acked_before = len(acks) if acks else 0
        if any(ack_set):
            self.cursor.ack_cumulative(self.cursor.ledger.previous(position))
            self.cursor.ack_batch(position, ack_set)
        elif ack_set and self.topic.stores.profile.empty_sets_keep_batches:
            self.cursor.ack_cumulative(self.cursor.ledger.previous(position))
        else:
            self.cursor.ack_cumulative(position)
        # cumulative acknowledgements are frequent, and a timestamp would slow them down
        ms = 0 if by is CUMULATIVE else self.topic.now_ms()
        some_acked = acked_before > 0 and len(acks) < acked_before
        self.mark_moves.note(by, before, self.cursor.mark_delete, ms, some_acked=some_acked)
        if self.dispatcher is not None and self.dispatcher.shares_messages:
            for consumer in list(self.dispatcher.consumers):
                passed = [each for each in consumer.pending if each <= self.cursor.mark_delete]
                if passed:
                    self.dispatcher.settle(consumer, passed)
        self._acknowledged(properties, save_now=save_now)

    def _acknowledged(self, properties: CursorProperties, *, save_now: bool) -> None:
        """Store acknowledgements, and trim ledgers that are not needed any more."""
        if not self.topic.moved:
            self.topic.note_move()
        if properties:
            if self.replicated:
                properties = CursorProperties({REPLICATED: 1} | properties)
            self.cursor.properties = properties
        if self.cursor.mark_delete != self._mark_seen:
            self._mark_seen = self.cursor.mark_delete
            if self.dispatcher is not None:
                self.dispatcher.passed(self._mark_seen)
            self.mark_delete_advanced_ms = self.topic.now_ms()
        if save_now:
            self.cursor.save_now()
        else:
            self.cursor.save_soon()
        self.check_end_of_topic()
        if self.durable:
            self.topic.trim_soon()

    @property
    def shares_messages(self) -> bool:
        """Return whether several consumers receive messages, which rules out cumulative acknowledgement."""
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
        served = frozenset(() if self.dispatcher is None else self.dispatcher.served)
        with self._nobody_follows():
            self.disconnect_those(lambda consumer: consumer in served)
        before, some_acked = self.cursor.mark_delete, bool(self.cursor.individual_acks)
        move()
        self.touch()
        self.topic.note_move()
        self.mark_moves.sought(before, self.cursor.mark_delete, self.topic.now_ms(), some_acked=some_acked)
        if self.dispatcher is not None:
            self.dispatcher.reset()

    def delete(self) -> None:
        """Disconnect all consumers, and delete the cursor."""
        self.disconnect_consumers()
        self.cursor.delete()


class Unreadable:
    """Retries of a subscription whose next entries cannot be read.

    The pauses between retries grow (dispatcherReadFailureBackoff...). With autoSkipNonRecoverableData, damaged entries
    are acknowledged and skipped.
    """

    def __init__(self, subscription: PersistentSubscription) -> None:
        self.until = 0.0  # time of the next try, in the clock's monotonic seconds
        self.told = ""  # the last logged error; "" while all entries can be read
        self._subscription = subscription
        self._pause_ms = 0
        self._timer: Timer | None = None

    def met(self, error: StorageError) -> Reason:
        """Handle a failed read: skip the damaged entries, or log the error and schedule another try."""
        if isinstance(error, DamagedEntriesError) and self._goes_past(error):
            return Reason.LOADING
        topic = self._subscription.topic
        if str(error) != self.told:
            self._pause_ms = 0
            self.told = str(error)
            log.error(
                "entries cannot be read: the broker tries again",
                topic=topic.name,
                subscription=self._subscription.name,
                reason=error,
            )
        if self._timer is None:
            config = topic.stores.config
            longest = min(2 * self._pause_ms, config.dispatcherReadFailureBackoffMaxTimeInMs)
            self._pause_ms = max(longest, config.dispatcherReadFailureBackoffInitialTimeInMs)
            clock, pause = topic.stores.clock, self._pause_ms / 1000
            self.until = clock.monotonic() + pause
            self._timer = clock.call_later(pause, self._again)
        return Reason.UNREADABLE

    def _again(self) -> None:
        self._timer = None
        self._subscription.cursor.unreadable = None
        self._subscription.dispatch_soon()

    def stop(self) -> None:
        """Stop retrying, because all entries were read or no consumer is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._subscription.cursor.unreadable = None
        self.told, self._pause_ms = "", 0

    def _goes_past(self, error: DamagedEntriesError) -> bool:
        """Return whether reading goes on behind damaged entries, which are acknowledged."""
        subscription = self._subscription
        topic, cursor = subscription.topic, subscription.cursor
        if error.ledger_id not in topic.ledger.ledgers:  # the error is one of a compacted ledger
            return False
        damaged = (Position(error.ledger_id, number) for number in range(error.first, error.last + 1))
        left = [each for each in damaged if not (cursor.is_acked(each) or self._is_held(each))]
        if left and not topic.stores.config.autoSkipNonRecoverableData:
            return False
        if left:
            first, last = left[0], left[-1]
            log.warning(
                "damaged entries are skipped", topic=topic.name, subscription=subscription.name, first=first, last=last
            )
            subscription.acknowledge(None, left, save_now=False)
            before, some_acked = (
                Position(first.ledger_id, first.entry_id - 1),
                len(left) <= last.entry_id - first.entry_id,
            )
            subscription.mark_moves.note(MovedBy.UNREADABLE, before, last, topic.now_ms(), some_acked=some_acked)
        ledger_id, entry_id = cursor.read_position
        stood_there = ledger_id == error.ledger_id and error.first <= entry_id <= error.last
        if stood_there:
            cursor.read_position = Position(error.ledger_id, error.last + 1)
        if not (left or stood_there):
            return False
        cursor.unreadable = None
        subscription.dispatch_soon()
        return True

    def _is_held(self, position: Position) -> bool:
        """Return whether a consumer has an entry, because it could be read before."""
        subscription = self._subscription
        if subscription.shares_messages:
            return any(position in consumer.pending for consumer in subscription.consumers)
        return position < subscription.cursor.read_position
