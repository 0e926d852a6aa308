"""Backlog quotas: how much, or how old, what a topic's slowest subscription has before it may be (B-26, P-06).

The age is that of ledgers, counted from when they were closed, as in Pulsar unless preciseTimeBasedBacklogQuotaCheck is
set; the ledger that is written to has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import BacklogQuotaExceededError
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.policy.policies import AGE, STORAGE, Quota
from pulsarium.broker.model.subscription.passes import How
from pulsarium.broker.model.subscription.skip import nth_position, skip_through

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import SubscribedPersistentTopic
    from pulsarium.broker.model.topic.persistent import PersistentTopic

EVICTION = "consumer_backlog_eviction"
REDUCED_TO = 0.9  # of the limit, by an eviction
NO_QUOTA = Quota()


def quota_of(topic: PersistentTopic, kind: str) -> Quota:
    return topic.policies.backlog_quotas.get(kind, NO_QUOTA)


# how much there is


def slowest_cursor(topic: PersistentTopic) -> ManagedCursor | None:
    """The durable cursor that is farthest behind."""
    return min(topic.log.cursors.values(), key=lambda cursor: cursor.mark_delete, default=None)


def backlog_size(topic: PersistentTopic) -> int:
    """Estimated bytes that the slowest durable subscription has before it; 0 when there is none."""
    slowest = slowest_cursor(topic)
    return size_after(topic, slowest.mark_delete) if slowest is not None else 0


def size_after(topic: SubscribedPersistentTopic, position: Position) -> int:
    """The bytes after a position, taking every entry of its ledger for one of average size, as Pulsar does."""
    ledgers = topic.ledger.ledgers
    size = sum(ledger.size for ledger in ledgers.values() if ledger.id >= position.ledger_id)
    ledger = ledgers.get(position.ledger_id)
    if ledger is None or not ledger.count:
        return size
    passed = position.entry_id + 1
    return size - (ledger.size if passed >= ledger.count else passed * (ledger.size // ledger.count))


def oldest_ms(topic: PersistentTopic) -> int | None:
    """When the ledger was closed in which the backlog begins; None while that is the one that is written to."""
    slowest = slowest_cursor(topic)
    ledger = _where_it_goes_on(topic, slowest) if slowest is not None else None
    return ledger.rolled_ms if ledger is not None and ledger.closed else None


def _where_it_goes_on(topic: PersistentTopic, cursor: ManagedCursor) -> Ledger | None:
    following = topic.ledger.next(cursor.mark_delete)
    return topic.ledger.ledgers[following.ledger_id] if topic.ledger.is_valid(following) else None


def is_exceeded(topic: PersistentTopic, kind: str) -> bool:
    """Whether the backlog is as large, or older than, its quota allows."""
    quota = quota_of(topic, kind)
    if kind == STORAGE:
        return 0 <= quota.limit_size <= backlog_size(topic)
    oldest = oldest_ms(topic) if quota.limit_seconds > 0 else None
    return oldest is not None and topic.now_ms() > oldest + quota.limit_seconds * 1000


# what happens


def refuse_producers(topic: PersistentTopic) -> None:
    """Raise what a new producer is told while a quota is exceeded."""
    for kind in (STORAGE, AGE):
        policy = quota_of(topic, kind).policy
        if policy != EVICTION and is_exceeded(topic, kind):
            raise BacklogQuotaExceededError(policy)


def check_backlog(topic: PersistentTopic) -> None:
    """The periodic check: disconnect the producers, or skip messages for who is slowest; size comes before age."""
    kind = next((kind for kind in (STORAGE, AGE) if is_exceeded(topic, kind)), None)
    if kind is None:
        return
    quota = quota_of(topic, kind)
    if quota.policy != EVICTION:
        topic.producers.disconnect_those(lambda producer: True)  # they come back, and are refused
    elif kind == STORAGE:
        _evict_by_size(topic, quota.limit_size)
    else:
        _evict_by_age(topic, quota.limit_seconds)


def _evict_by_size(topic: PersistentTopic, limit: int) -> None:
    target, before = int(REDUCED_TO * limit), None
    while (size := backlog_size(topic)) > target:
        slowest = slowest_cursor(topic)
        if slowest is None or slowest is before:  # it was not enough, and nobody else is slower now
            return
        position = nth_position(slowest, int((size - target) * slowest.backlog() / size), with_acked=True)
        if position is None:
            return
        _move(topic, slowest, position)
        before = slowest


def _evict_by_age(topic: PersistentTopic, seconds: int) -> None:
    """Whole ledgers, as long as the slowest cursor stands in one that was closed so long ago."""
    while (slowest := slowest_cursor(topic)) is not None:
        ledger = _where_it_goes_on(topic, slowest)
        if ledger is None or not ledger.closed or topic.now_ms() - ledger.rolled_ms <= seconds * 1000:
            return
        _move(topic, slowest, Position(ledger.id, ledger.confirmed - 1))


def _move(topic: PersistentTopic, cursor: ManagedCursor, position: Position) -> None:
    subscription = topic.subscriptions.get(cursor.name)
    if subscription is not None:
        skip_through(subscription, position, how=How.EVICTED)
    elif topic.deduplication is not None:  # the only cursor without a subscription
        topic.deduplication.snapshot()
