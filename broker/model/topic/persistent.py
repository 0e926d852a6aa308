"""Persistent topics: a managed ledger and its subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.client import AssignedBroker
from pulsarium.broker.model.compaction.compaction import Compaction
from pulsarium.broker.model.compaction.compactor import Compactor
from pulsarium.broker.model.context import Context
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.cursor.records import NO_SUBSCRIPTION_PROPERTIES, SubscriptionProperties
from pulsarium.broker.model.errors import (
    BrokerServiceError,
    HasShadowsError,
    NotAllowedError,
    PersistenceError,
    ServiceNotReadyError,
    SubscriptionNotFoundError,
    TopicMigratedError,
    TopicTerminatedError,
)
from pulsarium.broker.model.ledger.interceptors import INDEX_PROPERTY, EntryStamps
from pulsarium.broker.model.ledger.ledger import consumed, first_needed
from pulsarium.broker.model.ledger.managed_ledger import (
    LedgerFencedError,
    LedgerListener,
    LedgerTerminatedError,
    ManagedLedger,
    PendingPublish,
    Unwatched,
)
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.news import Kind
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.rate.rates import DispatchLimiter, PublishAverage
from pulsarium.broker.model.subscription.mark_moves import MovedBy
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import skip_all, skip_through
from pulsarium.broker.model.topic.backlog import expire, expired_before, last_published_before, refuse_producers
from pulsarium.broker.model.topic.base import FAILED_ON_SUBSCRIPTION, NO_PENDING_ACKS, TRANSACTIONS_OFF, Joining, Topic
from pulsarium.broker.model.topic.deduplication import Deduplication
from pulsarium.broker.model.topic.joining import OWN_CURSORS, check_new_subscription
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.broker.model.topic.producers import AppendRun, Producer, ProducerClient, ProducerOptions
from pulsarium.broker.model.transaction.buffer import FAILED, TransactionBuffer
from pulsarium.broker.model.transaction.coordinator import Participant
from pulsarium.broker.storage.interface import StorageError
from pulsarium.proto.entry import with_broker_metadata
from pulsarium.proto.special_names import COMPACTION_CURSOR, DEDUPLICATION_CURSOR
from pulsarium.proto.topic_name import TopicName

UPKEEP = PartLog("upkeep")


class PersistentTopic(Topic, LedgerListener):
    """A topic that stores entries in a managed ledger. Subscriptions deliver committed entries."""

    def __init__(self, name: TopicName, stores: Context, policies: Policies, log: TopicLog) -> None:
        epoch = log.ledger.properties.get(EPOCH_PROPERTY)
        super().__init__(name, stores, policies, int(epoch) if epoch is not None else None)
        self.publish_average = PublishAverage(self, stores.clock, stores.config)
        self.dispatch_limit = DispatchLimiter(stores.clock, self.publish_average)
        self.dispatch_limit.update(policies.dispatch_rate)
        self.log = log
        self.ledger: ManagedLedger = log.ledger
        log.topic = self
        self._subscriptions: dict[str, PersistentSubscription] = {}
        # position up to which entries were examined, and the last dispatchable one
        self.last_dispatchable = (EARLIEST, EARLIEST)
        # the last message that a client asked for, and the index of its last message, -1 without a batch
        self.last_batch_index = (EARLIEST, -1)
        self._parked: dict[str, Position] = {}  # mark-delete positions of readers that disconnected for a SEEK
        self.offload_failed = False  # an offload was requested, which always fails here
        self._ended_empty = self.ledger.terminated is not None and not self.ledger.count
        self.trimmer = Trimmer(self)
        self._stamps = EntryStamps(stores.config, stores.clock)
        if self._stamps:
            self._stamps.go_on(self.ledger)
        record = log.transactions
        self.transactions = (
            TransactionBuffer(self, record, marks=not self.name.is_segment) if record is not None else None
        )
        for cursor in log.cursors.values():
            if cursor.name not in OWN_CURSORS:
                self._subscribe_cursor(cursor)
        self.deduplication = self._deduplication()
        self.compaction: Compaction = Compaction(self, log.compaction)
        self.compaction.policies_changed()
        self.check_ttl()

    @property
    def subscriptions(self) -> dict[str, PersistentSubscription]:
        return self._subscriptions

    @property
    def cursor_names(self) -> list[str]:
        names = list(self._subscriptions)
        return names if self.log.compaction.cursor is None else [COMPACTION_CURSOR, *names]

    @property
    def has_messages(self) -> bool:
        return self.ledger.size > 0

    def set_policies(self, policies: Policies) -> None:
        before = self.policies
        super().set_policies(policies)
        self.dispatch_limit.update(policies.dispatch_rate)
        self.deduplication = self._deduplication()
        if policies.message_ttl_seconds != before.message_ttl_seconds:
            self.check_ttl()
        self.compaction.policies_changed()
        for subscription in self._subscriptions.values():
            subscription.policies_changed()

    @property
    def compactor(self) -> Compactor | None:
        """Return the compaction engine that this run of the broker was started with."""
        return self.stores.compactor

    @property
    def dispatch_limits(self) -> tuple[tuple[str, DispatchLimiter], ...]:
        """Return the limits that its subscriptions share, each with its name."""
        return (
            ("Broker", self.broker_limits.dispatch),
            ("ResourceGroup", self.group_limits.dispatch),
            ("Topic", self.dispatch_limit),
        )

    def _deduplication(self) -> Deduplication | None:
        """Return the deduplication by the policy, or None. A new one does not know entries stored before."""
        log = self.log
        cursor = log.cursors.get(DEDUPLICATION_CURSOR)
        if not self.policies.deduplication:
            log.deduplication = None
            if cursor is not None:
                cursor.delete()
                log.forget_cursor(DEDUPLICATION_CURSOR)
                self.trim_soon()
            return None
        if log.deduplication is None:
            if cursor is None:
                cursor = log.open_cursor(DEDUPLICATION_CURSOR, log.ledger.last_confirmed)
                cursor.save()
            log.deduplication = Deduplication(str(self.name), cursor, self.stores, log.trim_soon)
        return log.deduplication

    def _check_backlog(self) -> None:
        refuse_producers(self.log, self.policies, self.now_ms())

    def _keep_epoch(self, epoch: int) -> None:
        self.ledger.set_properties({EPOCH_PROPERTY: str(epoch)})

    # publishing

    def add_producer(self, client: ProducerClient, options: ProducerOptions) -> tuple[Producer, bool]:
        if MIGRATED_PROPERTY in self.ledger.properties:
            raise TopicMigratedError("Topic was already migrated")
        if self.ledger.terminated is not None:
            return self.producers.wait_for_nothing(Producer(client, self, options, self.now_ms())), False
        if refusal := self.stores.storage.refusal:  # else clients repeat each refused SEND, ten times a second
            raise PersistenceError(refusal)
        return super().add_producer(client, options)

    def publish(self, producer: Producer, pending: PendingPublish) -> None:
        if pending.txn is not None and self.transactions is None:
            raise NotAllowedError(TRANSACTIONS_OFF)
        if refusal := self.stores.storage.refusal:
            raise PersistenceError(refusal)
        deduplication = None if pending.is_marker else self.deduplication
        if deduplication is not None and not deduplication.admits(producer, pending):
            return
        if pending.txn is None or self.transactions is None:
            self.append(pending)
        else:
            self.transactions.publish(pending.txn, pending)

    def append(self, pending: PendingPublish) -> Position:
        """Append an entry, and return its position."""
        if self._stamps:
            pending.entry = with_broker_metadata(pending.entry, self._stamps.next(pending.messages))
        self._append_run((pending,))
        return pending.position

    @property
    def append_run(self) -> AppendRun | None:
        looked_at = self.checks is not None or self.deduplication is not None or self._stamps
        return None if looked_at or self.stores.storage.refusal else self._append_run

    def _append_run(self, run: Sequence[PendingPublish]) -> None:
        try:
            self.ledger.append_run(run)
        except LedgerFencedError:
            raise PersistenceError(FAILED) from None
        except LedgerTerminatedError:
            raise TopicTerminatedError(LEDGER_TERMINATED) from None

    def publish_unwatched(self, entry: bytes) -> Position:
        return self.append(PendingPublish(Unwatched(), entry))

    def confirmed(self) -> None:
        """Dispatch new confirmed entries."""
        self.note_move()
        if self.deduplication is not None:
            self.deduplication.snapshot_when_full()
        turn = self.stores.turn
        for subscription in self._subscriptions.values():
            if subscription.dispatcher is not None:
                turn.dispatch(subscription)
        for shadow in self.ledger.shadows:
            if shadow.listed_as in self.policies.shadows:
                shadow.follow()

    def buffer(self) -> Participant:
        if self.transactions is None:
            raise NotAllowedError(TRANSACTIONS_OFF)
        return self.transactions

    # subscriptions

    def join(self, name: str, joining: Joining) -> PersistentSubscription:
        self.subscribe_rate.check(joining.address, joining.consumer_name, joining.consumer_id)
        earliest, rollback, properties = joining.earliest, joining.rollback_seconds, joining.properties
        if not joining.durable:
            return self.open_reader(
                name, joining.start, earliest=earliest, rollback_seconds=rollback, properties=properties
            )
        return self.subscribe(
            name,
            earliest=earliest,
            rollback_seconds=rollback,
            properties=properties,
            replicated=joining.replicated,
        )

    def make_initial(self, name: str) -> None:
        if name in self._subscriptions:
            return
        if not self.policies.auto_subscription:
            text = "Could not create the initial subscription due to the auto subscription creation is not allowed."
            raise NotAllowedError(text, limit="allowAutoSubscriptionCreation")
        self.subscribe(name, earliest=True)

    def pending_acks_of(self, name: str) -> Participant | None:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            return None
        if subscription.pending_acks is None:
            raise NotAllowedError(FAILED_ON_SUBSCRIPTION + NO_PENDING_ACKS)
        return subscription.pending_acks

    def subscribe(
        self,
        name: str,
        *,
        earliest: bool,
        rollback_seconds: int = 0,
        properties: SubscriptionProperties = NO_SUBSCRIPTION_PROPERTIES,
        replicated: bool = False,
    ) -> PersistentSubscription:
        """Return the durable subscription of this name, created at the earliest or latest position.

        With `rollback_seconds`, it begins with the first message of that age. An existing subscription begins
        again there.
        """
        found = self._subscriptions.get(name)
        if found is not None:
            if not found.durable:
                raise NotAllowedError("NonDurable subscription with the same name already exists.")
            if replicated:
                found.set_replicated(True)
            if rollback_seconds and not found.resetting:
                found.move(self._at_age(rollback_seconds))
            return found
        self._check_new(name)
        if earliest and self._ended_empty and self.stores.profile.own_faults_are_shown:
            raise BrokerServiceError("")
        start = self.ledger.first_position() if earliest else self.ledger.last_confirmed
        if rollback_seconds:
            start = self._before_age(rollback_seconds)
        cursor = self.log.open_cursor(name, start)
        self.stores.news.tell(Kind.SUBSCRIPTION_CREATED, topic=self.name, subscription=name)
        cursor.cursor_properties = properties
        subscription = self._subscribe_cursor(cursor)
        subscription.set_replicated(replicated)
        return subscription

    def open_reader(
        self,
        name: str,
        start: Position | None,
        *,
        earliest: bool,
        rollback_seconds: int = 0,
        properties: SubscriptionProperties = NO_SUBSCRIPTION_PROPERTIES,
    ) -> PersistentSubscription:
        """Open a non-durable subscription, which ends with its last consumer.

        The entry at `start` is delivered too: the client skips messages of a batch that it has read.
        """
        found = self._subscriptions.get(name)
        if found is not None:
            if found.durable:
                raise NotAllowedError("Durable subscription with the same name already exists.")
            return found
        self._check_new(name)
        if start is None or start.ledger_id == LATEST.ledger_id:
            start = EARLIEST if earliest else LATEST
        mark = self._before(start)
        if name in self._parked:
            parked = self._parked.pop(name)
            mark = parked if parked != self.ledger.first_position() else min(mark, parked)
        elif rollback_seconds:
            mark = self._before_age(rollback_seconds)
        cursor = self.log.reader_cursor(name, mark)
        cursor.cursor_properties = properties
        return self._subscribe_cursor(cursor)

    def _check_new(self, name: str) -> None:
        check_new_subscription(self, name)
        if name in self.log.leaving:
            raise ServiceNotReadyError("Subscription is fenced")

    def _before(self, start: Position) -> Position:
        """Return the mark-delete position of a reader that begins at `start`.

        A position before all ledgers stays, if compaction may have kept entries there.
        """
        ledger, horizon = self.ledger, self.compaction.compacted.horizon
        if start == LATEST:
            return ledger.last_confirmed
        if horizon is not None and start <= horizon and start < ledger.first_position():
            return max(EARLIEST, Position(start.ledger_id, start.entry_id - 1))
        if start.ledger_id == EARLIEST.ledger_id:
            return ledger.first_position()
        return ledger.previous(ledger.clamp(start))

    def _subscribe_cursor(self, cursor: ManagedCursor) -> PersistentSubscription:
        subscription = self._subscriptions[cursor.name] = PersistentSubscription(self, cursor)
        self.note_move()
        return subscription

    def forget_reader(self, subscription: PersistentSubscription) -> None:
        """Remove a non-durable subscription that lost its last consumer.

        After a seek, its mark-delete position is kept for the reader that reconnects.
        """
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            self._subscription_removed(subscription)
            self.touch()
            if subscription.resetting:
                self.stores.turn.after_commit(lambda error: self._park(subscription))
            else:
                self._parked.pop(subscription.name, None)

    def _park(self, subscription: PersistentSubscription) -> None:
        self._parked[subscription.name] = subscription.cursor.mark_delete

    def unsubscribe(self, name: str, why: str = "") -> None:
        """Delete a subscription with its cursor. If that is not committed, the subscription is restored."""
        subscription = self._subscriptions.pop(name, None)
        if subscription is None:
            raise SubscriptionNotFoundError(f"Subscription {name} not found")
        subscription.delete()
        self._subscription_removed(subscription)
        self.touch()
        if subscription.durable:
            self.stores.news.tell(Kind.SUBSCRIPTION_DELETED, topic=self.name, subscription=name, why=why)
            self.log.leaving[name] = self.log.cursors.pop(name)
            self.stores.turn.after_commit(partial(self._unsubscribed, name))

    def _unsubscribed(self, name: str, error: Exception | None) -> None:
        cursor = self.log.leaving.pop(name)
        if error is None:
            self.trim_soon()
            return
        self.log.take_back(cursor)
        if self.closed:
            self.log.fenced()  # a topic loaded meanwhile does not know the cursor
        else:
            self._subscribe_cursor(cursor)

    # positions

    def position_at(self, time_ms: int) -> Position:
        """Return the first entry published at `time_ms` or later.

        The time of an entry is the broker's timestamp, or else publish_time. Raise `StorageError` when an entry
        on the way is damaged.
        """
        found = last_published_before(self.ledger, self.stores.config, time_ms)
        return self.ledger.next(found if found is not None else self.ledger.first_position())

    def _at_age(self, seconds: int) -> Position:
        """Return the first entry that is at most `seconds` old. Raise `PersistenceError` when an entry is damaged."""
        try:
            return self.position_at(self.now_ms() - seconds * 1000)
        except StorageError as error:
            raise PersistenceError(str(error)) from error

    def _before_age(self, seconds: int) -> Position:
        return self.ledger.previous(self._at_age(seconds))

    # life

    def is_subscribed(self, *, caught_up_is_enough: bool) -> bool:
        """Return whether the topic has subscriptions.

        Compaction counts as one, as in Pulsar, and so does a running compaction.
        """
        if self.compaction.status == "RUNNING":
            return True
        if caught_up_is_enough:
            return any(subscription.cursor.backlog() for subscription in self._subscriptions.values())
        return bool(self._subscriptions) or self.log.compaction.cursor is not None

    def is_retained(self, idle: float) -> bool:
        minutes = self.policies.retention.minutes
        return self.ledger.count > 0 and (minutes < 0 or idle < minutes * 60)

    def send_away(self) -> None:
        """Terminate the topic, which has migrated. Clients are redirected once they have read all messages."""
        if MIGRATED_PROPERTY not in self.ledger.properties:
            self.ledger.set_properties({MIGRATED_PROPERTY: "true"})
        self.terminate()

    @property
    def shadows(self) -> list[TopicName]:
        return [TopicName.from_managed_ledger(shadow.name) for shadow in self.ledger.shadows]

    def check_unused(self, policies_of: Callable[[TopicName], Policies]) -> None:
        if self.policies.shadows:
            raise HasShadowsError(f"Delete forbidden. Topic {self.name} is replicated to shadow topics.")
        super().check_unused(policies_of)

    def close(self, assigned: AssignedBroker | None = None, *, deleted: bool = False) -> None:
        super().close(assigned, deleted=deleted)
        self.stop_compaction()

    def stop_compaction(self) -> None:
        self.compaction.close()

    def terminate(self) -> Position:
        """Terminate the topic, and return its last position.

        Once that is stored, producers are disconnected. Consumers without a backlog get REACHED_END_OF_TOPIC, again
        with each further call.
        """
        last = self.ledger.terminate()
        self.stores.turn.after_commit(self._terminated)
        return last

    def _terminated(self, error: Exception | None) -> None:
        if error is None:
            self.producers.disconnect(self.moved_to, terminated=True)
            # a subscription of a reader goes with its connection
            for subscription in list(self._subscriptions.values()):
                subscription.check_end_of_topic(again=True)

    def check_ttl(self) -> None:
        """Expire entries older than the TTL on every subscription, even of readers.

        Do nothing without durable cursors.
        """
        try:
            last = expired_before(self.log, self.policies.message_ttl_seconds, self.now_ms())
        except StorageError as error:  # as in Pulsar, without autoSkipNonRecoverableData
            UPKEEP.warning("nothing expires: the entries cannot be read", topic=self.name, reason=error)
            return
        if last is not None:
            for subscription in list(self._subscriptions.values()):
                expire(subscription, last)

    def rolled(self) -> None:
        self.trim_soon()

    def going(self, last: Position) -> None:
        self.trimmer.going(last)

    def trim_soon(self) -> None:
        """Trim ledgers that every subscription has consumed, at the end of the turn."""
        self.trimmer.soon()

    def ledgers_going(self, last: Position) -> None:
        """Prepare for the deletion of entries up to `last`. The index of messages continues all the same."""
        self.note_move()
        if self._stamps and last >= self.ledger.last_confirmed:
            self.ledger.properties[INDEX_PROPERTY] = str(self._stamps.index)
        if self.log.transactions is not None:
            self.log.transactions.trimmed(last)
        for shadow in self.ledger.shadows:
            shadow.let_go(last)


LEDGER_TERMINATED = (  # for a SEND that arrives between the request and CLOSE_PRODUCER
    "org.apache.bookkeeper.mledger.ManagedLedgerException$ManagedLedgerTerminatedException: "
    "Managed ledger was already terminated"
)
EPOCH_PROPERTY = "pulsar.topic.epoch"
MIGRATED_PROPERTY = "migrated"


class Trimmer:
    """Delete consumed ledgers.

    Only durable cursors keep ledgers. A reader goes on behind the deleted entries, or with what compaction kept of
    them.
    """

    def __init__(self, topic: PersistentTopic) -> None:
        self._topic = topic
        self._due = False
        self._decided_for = -1  # first needed ledger at the last check

    def soon(self) -> None:
        """Check at the end of the turn, because a ledger may be consumed."""
        if not self._due and len(self._topic.ledger.ledgers) > 1:
            self._due = True
            self._topic.stores.turn.after_commit(self._look)

    def _look(self, error: Exception | None) -> None:
        self._due = False
        if error is not None:  # the acknowledgements may not be stored
            return
        needed = first_needed(self._topic.ledger.ledgers, self._slowest())
        last = next(reversed(self._topic.ledger.ledgers), -1)
        if min(needed, last) != self._decided_for:
            self._decided_for = min(needed, last)
            self.trim()

    def _slowest(self) -> Position | None:
        log = self._topic.log
        marks = [cursor.mark_delete for cursor in chain(log.cursors.values(), log.leaving.values())]
        if log.compaction.mark_before is not None:
            marks.append(log.compaction.mark_before)
        return min(marks, default=None)

    def trim(self) -> None:
        """Trim now, because time may have passed since the last check."""
        self._topic.ledger.trim(self._slowest(), self._topic.policies.retention, self.going)

    def truncate(self) -> None:
        """Skip all entries on every subscription, and delete all ledgers but the open one, retained or not."""
        for subscription in list(self._topic.subscriptions.values()):
            skip_all(subscription)
        ledger = self._topic.ledger
        ledger.truncate(list(consumed(ledger.ledgers, None)), self.going)

    def going(self, last: Position) -> None:
        """Skip entries up to `last`, which are deleted, on every subscription that has not consumed them."""
        self._topic.ledgers_going(last)
        for subscription in list(self._topic.subscriptions.values()):
            if subscription.cursor.mark_delete < last and not self._reads_on(subscription, last):
                skip_through(subscription, last, by=MovedBy.EVICTED)

    def _reads_on(self, subscription: PersistentSubscription, last: Position) -> bool:
        """Return whether a reader goes on with the compacted entries up to `last`."""
        horizon = self._topic.compaction.compacted.horizon
        retained = horizon is not None and last <= horizon
        return retained and not subscription.durable and any(each.read_compacted for each in subscription.consumers)
