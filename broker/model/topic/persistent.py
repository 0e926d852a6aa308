"""Persistent topics: a managed ledger and its subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarium.broker.model.errors import PersistenceError, SubscriptionNotFoundError
from pulsarium.broker.model.ledger.interceptors import EntryStamps
from pulsarium.broker.model.ledger.managed_ledger import LedgerFencedError, Stores
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.policy.policies import Policies
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.producer import Producer
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata, with_broker_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.topic_name import TopicName

if TYPE_CHECKING:
    from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
    from pulsarium.broker.model.topic.log import TopicLog


class PersistentTopic(Topic):
    """Entries go to the managed ledger; when they are committed, subscriptions deliver them."""

    def __init__(self, name: TopicName, stores: Stores, policies: Policies, log: TopicLog) -> None:
        epoch = log.ledger.properties.get(EPOCH_PROPERTY)
        super().__init__(name, stores, policies, int(epoch) if epoch is not None else None)
        self.log = log
        self.ledger = log.ledger
        self.ledger.on_confirmed = self._confirmed
        self._subscriptions: dict[str, PersistentSubscription] = {}
        self._parked: dict[str, Position] = {}  # where SEEK left readers that have not come back yet
        self._trimming = False
        self._stamps = EntryStamps(stores.config, stores.clock)
        if self._stamps and self.ledger.last_confirmed.entry_id >= 0:
            self._stamps.go_on_after(self.ledger.read_now(self.ledger.last_confirmed))
        for cursor in log.cursors.values():
            self._subscribe_cursor(cursor)

    @property
    def subscriptions(self) -> dict[str, PersistentSubscription]:
        return self._subscriptions

    def _keep_epoch(self, epoch: int) -> None:
        self.ledger.set_properties({EPOCH_PROPERTY: str(epoch)})

    # publishing

    def publish(
        self, producer: Producer, sequence_id: int, highest_sequence_id: int, messages: int, entry: bytes
    ) -> None:
        self.messages_in += messages
        self.bytes_in += len(entry)
        if self._stamps:
            entry = with_broker_metadata(entry, self._stamps.next(messages))
        try:
            self.ledger.append(entry, producer, sequence_id, highest_sequence_id)
        except LedgerFencedError:
            raise PersistenceError("The topic failed to store messages; look it up again") from None

    def _confirmed(self) -> None:
        """New entries are visible."""
        turn = self.stores.turn
        for subscription in self._subscriptions.values():
            if subscription.dispatcher is not None:
                turn.dispatch(subscription)

    # subscriptions

    def subscribe(
        self,
        name: str,
        *,
        earliest: bool,
        rollback_seconds: int = 0,
        properties: dict[str, str] | None = None,
        replicated: bool | None = None,
    ) -> PersistentSubscription:
        """The durable subscription of this name; made at the earliest or latest position when there is none.

        `rollback_seconds` makes it begin with the first message of that age (C-08).
        """
        found = self._subscriptions.get(name)
        if found is not None:
            return found
        start = self.ledger.first_position() if earliest else self.ledger.last_confirmed
        if rollback_seconds:
            start = self._before_age(rollback_seconds)
        cursor = self.log.open_cursor(name, start)
        cursor.cursor_properties = properties or {}
        cursor.save()
        subscription = self._subscribe_cursor(cursor)
        subscription.replicated = replicated
        return subscription

    def open_reader(
        self, name: str, start: Position | None, *, earliest: bool, rollback_seconds: int = 0
    ) -> PersistentSubscription:
        """A non-durable subscription, which is forgotten with its last consumer.

        The entry at `start` is delivered: a batch may be half read, and the client skips what it had (C-07).
        """
        found = self._subscriptions.get(name)
        if found is not None:
            return found
        ledger = self.ledger
        if name in self._parked:
            mark = self._parked.pop(name)
        elif rollback_seconds:
            mark = self._before_age(rollback_seconds)
        elif start is None or start.ledger_id == LATEST.ledger_id:
            mark = ledger.first_position() if earliest else ledger.last_confirmed
        elif start.ledger_id == EARLIEST.ledger_id:
            mark = ledger.first_position()
        else:
            mark = ledger.previous(ledger.clamp(start))
        return self._subscribe_cursor(self.log.reader_cursor(name, mark))

    def _subscribe_cursor(self, cursor: ManagedCursor) -> PersistentSubscription:
        subscription = self._subscriptions[cursor.name] = PersistentSubscription(self, cursor)
        return subscription

    def forget_reader(self, subscription: PersistentSubscription) -> None:
        """A non-durable subscription lost its last consumer; a seek leaves its mark for the one that comes back."""
        if self._subscriptions.get(subscription.name) is subscription:
            del self._subscriptions[subscription.name]
            if subscription.resetting:
                self.stores.turn.after_commit(lambda error: self._park(subscription))
            else:
                self._parked.pop(subscription.name, None)
            self.trim_soon()

    def _park(self, subscription: PersistentSubscription) -> None:
        self._parked[subscription.name] = subscription.cursor.mark_delete

    def unsubscribe(self, name: str) -> None:
        """Delete a subscription with its cursor."""
        subscription = self._subscriptions.pop(name, None)
        if subscription is None:
            raise SubscriptionNotFoundError(f"Subscription {name} not found")
        subscription.delete()
        self.log.forget_cursor(name)
        self.trim_soon()

    # positions

    def last_message(self) -> tuple[Position, int]:
        """Where the last message stands, with its batch index (-1 when it is no batch); -1:-1 on an empty topic."""
        last = self.ledger.last_confirmed
        if last.entry_id < 0:
            return EARLIEST, -1
        metadata = parse_metadata(self.ledger.read_now(last))
        if metadata.HasField("num_messages_in_batch"):
            return last, metadata.num_messages_in_batch - 1
        return last, -1

    def position_at(self, time_ms: int) -> Position:
        """The first entry of that time or later: by the broker's stamp where there is one, else publish_time (B-34)."""
        found = self.ledger.find_last(published_before(time_ms))
        return self.ledger.next(found if found is not None else self.ledger.first_position())

    def _before_age(self, seconds: int) -> Position:
        """The position before the first entry that is no older than that."""
        return self.ledger.previous(self.position_at(self.now_ms() - seconds * 1000))

    # life

    def trim_soon(self) -> None:
        """Let go of ledgers that every subscription has consumed, at the end of the turn."""
        if not self._trimming and len(self.ledger.ledgers) > 1:
            self._trimming = True
            self.stores.turn.after_commit(lambda error: self._trim())

    def _trim(self) -> None:
        """Ledgers that somebody may still read stay: those of readers too, and all where there is no subscription."""
        self._trimming = False
        cursors = [each.cursor for each in self._subscriptions.values()]
        if any(cursor.durable for cursor in cursors):
            self.ledger.trim(min(cursor.mark_delete for cursor in cursors))


EPOCH_PROPERTY = "pulsar.topic.epoch"


def published_before(time_ms: int) -> Callable[[bytes], bool]:
    """Whether an entry is older than that."""

    def matches(entry: bytes) -> bool:
        stamp = parse_broker_metadata(entry)
        if stamp is not None and stamp.HasField("broker_timestamp"):
            return stamp.broker_timestamp < time_ms
        try:
            return parse_metadata(entry).publish_time < time_ms
        except EntryError:  # as in Pulsar
            return False

    return matches
