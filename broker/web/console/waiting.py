"""Find out since when the oldest message of a subscription waits."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.web.admin.topic.stats_json import publish_time

PATIENCE_MS = 60_000
"""A subscription that made no progress for longer deserves a look."""


class WaitingTimes:
    """Since when subscriptions wait. Each entry is read once, however often a page looks."""

    def __init__(self) -> None:
        self._published: WeakKeyDictionary[Subscription, tuple[Position, int]] = WeakKeyDictionary()

    def since(self, subscription: Subscription) -> int:
        """Return since when a subscription has messages and made no progress, in ms since the epoch. 0: no backlog.

        Progress is a move of the mark-delete position.
        """
        published = self._oldest(subscription)
        if published is None:
            return 0
        assert isinstance(subscription, PersistentSubscription)
        return max(published, subscription.mark_delete_advanced_ms)

    def age(self, subscription: Subscription) -> int:
        """Return how many ms the oldest unacknowledged message has waited, by its publish time. 0: no backlog."""
        published = self._oldest(subscription)
        return 0 if not published else max(0, subscription.topic.now_ms() - published)

    def _oldest(self, subscription: Subscription) -> int | None:
        if not isinstance(subscription, PersistentSubscription):
            return None
        cursor, ledger = subscription.cursor, subscription.topic.ledger
        if cursor.mark_delete >= ledger.last_confirmed:
            return None
        first = ledger.next(cursor.mark_delete)
        known = self._published.get(subscription)
        if known is None or known[0] != first:
            known = self._published[subscription] = (first, publish_time(ledger, first))
        return known[1]

    def is_late(self, subscription: Subscription) -> bool:
        """Return whether messages, other than delayed ones, have waited for over a minute without progress."""
        since = self.since(subscription)
        if not since or subscription.topic.now_ms() - since <= PATIENCE_MS:
            return False
        assert isinstance(subscription, PersistentSubscription)
        delayed = 0 if subscription.dispatcher is None else subscription.dispatcher.count_delayed(unacknowledged=True)
        return subscription.cursor.backlog() > delayed
