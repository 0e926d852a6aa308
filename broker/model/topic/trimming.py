"""Lets go of a topic's ledgers that are consumed and not retained (B-25)."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.retention import consumed, first_needed
from pulsarium.broker.model.subscription.passes import How
from pulsarium.broker.model.subscription.skip import skip_all, skip_through

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription
    from pulsarium.broker.model.topic.persistent import PersistentTopic


class Trimmer:
    """Durable cursors keep what they have not consumed. Readers do not: they go on behind what was deleted, or
    with what compaction kept of it."""

    def __init__(self, topic: PersistentTopic) -> None:
        self._topic = topic
        self._due = False
        self._decided_for = -1  # the first ledger that was needed when it was last looked

    def soon(self) -> None:
        """Something may be consumed: look at the end of the turn."""
        if not self._due and len(self._topic.ledger.ledgers) > 1:
            self._due = True
            self._topic.stores.turn.after_commit(self._look)

    def _look(self, error: Exception | None) -> None:
        self._due = False
        if error is not None:  # what was consumed may not be kept
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
        """Trim now; time may have passed since the last time."""
        self._topic.ledger.trim(self._slowest(), self._topic.policies.retention, self.going)

    def truncate(self) -> None:
        """Skip everything for everybody and delete every ledger but those that are written to, retained or not."""
        for subscription in list(self._topic.subscriptions.values()):
            skip_all(subscription)
        ledger = self._topic.ledger
        ledger.truncate(list(consumed(ledger.ledgers, None)), self.going)

    def going(self, last: Position) -> None:
        """Skip entries up to `last` for every subscription that has not consumed them: they are deleted."""
        self._topic.ledgers_going(last)
        for subscription in list(self._topic.subscriptions.values()):
            if subscription.cursor.mark_delete < last and not self._reads_on(subscription, last):
                skip_through(subscription, last, how=How.EVICTED)

    def _reads_on(self, subscription: PersistentSubscription, last: Position) -> bool:
        """Whether a reader goes on with what compaction kept of the entries up to `last`."""
        horizon = self._topic.compaction.compacted.horizon
        retained = horizon is not None and last <= horizon
        return retained and not subscription.durable and any(each.read_compacted for each in subscription.consumers)
