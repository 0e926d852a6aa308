"""Retry or skip entries that the store cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.clock import Timer
from pulsarium.broker.logs import Log
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.dispatcher import Reason
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription

log = Log("dispatch")


class Unreadable:
    """Retries of a subscription whose next entries cannot be read.

    The pauses between retries grow (dispatcherReadFailureBackoff...). With autoSkipNonRecoverableData, damaged entries
    are acknowledged and skipped.
    """

    def __init__(self, subscription: PersistentSubscription) -> None:
        self.until_ms = 0  # time of the next try, in milliseconds since the epoch
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
            self.until_ms = topic.now_ms() + self._pause_ms
            self._timer = topic.stores.clock.call_later(self._pause_ms / 1000, self._again)
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
