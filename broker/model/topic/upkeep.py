"""Expire, trim and evict entries that a topic need not keep.

Entries expire by the broker's timestamp, or else by publish_time (B-24, B-34). Consumed ledgers are deleted unless they
are retained (B-25). The age of a backlog (B-26, P-06) is the time since its first ledger was closed, and the open
ledger has no age. That is Pulsar's rule without preciseTimeBasedBacklogQuotaCheck.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

from pulsarium.broker.logs import Log
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import BacklogQuotaExceededError
from pulsarium.broker.model.ledger.ledger import Ledger, consumed, first_needed
from pulsarium.broker.model.ledger.position import Position, signed
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.broker.model.policy.policies import AGE, STORAGE, Quota
from pulsarium.broker.model.subscription.skip import MovedBy, nth_position, skip_all, skip_through
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata
from pulsarium.proto.errors import EntryError

if TYPE_CHECKING:
    from pulsarium.broker.model.subscription.persistent import PersistentSubscription, SubscribedPersistentTopic
    from pulsarium.broker.model.topic.persistent import PersistentTopic


log = Log("upkeep")

ALMOST_CAUGHT_UP = 1000  # entries; below that, connected consumers are spared until their oldest entry is far too old
OLD_INDEED = 1.5  # factor for the requested age


# age of entries


def published_before(time_ms: int) -> Callable[[bytes], bool]:
    """Return a function that tells whether an entry was published before `time_ms`."""

    def matches(entry: bytes) -> bool:
        stamp = parse_broker_metadata(entry)
        if stamp is not None and stamp.HasField("broker_timestamp"):
            return signed(stamp.broker_timestamp) < time_ms
        try:
            return signed(parse_metadata(entry).publish_time) < time_ms
        except EntryError:  # as in Pulsar
            return False

    return matches


def last_published_before(topic: SubscribedPersistentTopic, time_ms: int) -> Position | None:
    """Return the last entry published before `time_ms`.

    Raise `StorageError` for a damaged entry, unless autoSkipNonRecoverableData allows to skip it.
    """
    skips = topic.stores.config.autoSkipNonRecoverableData
    return topic.ledger.find_last(published_before(time_ms), skips_damaged=skips)


def is_older(ledger: LedgerSequence, position: Position, seconds: int, now_ms: int) -> bool:
    """Return whether an entry is older than `seconds`, or damaged, as in Pulsar. 0 seconds is never."""
    if not seconds or not ledger.is_valid(position):
        return False
    try:
        return published_before(now_ms - seconds * 1000)(ledger.read_now(position))
    except DamagedEntriesError:
        return True


# expiry


def check_ttl(topic: PersistentTopic) -> None:
    """Expire entries older than the topic's TTL on every subscription, even of readers.

    Do nothing without durable cursors.
    """
    seconds = topic.policies.message_ttl_seconds
    marks = [cursor.mark_delete for cursor in topic.log.cursors.values()]
    if seconds <= 0 or not marks:
        return
    try:
        if not is_older(topic.ledger, topic.ledger.next(min(marks)), seconds, topic.now_ms()):
            return
        last = last_published_before(topic, topic.now_ms() - seconds * 1000)
    except StorageError as error:  # as in Pulsar, without autoSkipNonRecoverableData
        log.warning("nothing expires: the entries cannot be read", topic=topic.name, reason=error)
        return
    for subscription in list(topic.subscriptions.values()):
        if last is not None:
            _expire(subscription, last)


def expire_older_than(subscription: PersistentSubscription, seconds: int) -> bool:
    """Expire entries older than `seconds`, for REST. Return False if the subscription has almost caught up."""
    cursor, topic = subscription.cursor, subscription.topic
    backlog = cursor.backlog()
    if not backlog:
        return False
    oldest = topic.ledger.next(cursor.mark_delete)
    close = subscription.consumers and backlog < ALMOST_CAUGHT_UP
    if close and not is_older(topic.ledger, oldest, int(seconds * OLD_INDEED), topic.now_ms()):
        return False
    last = last_published_before(topic, topic.now_ms() - seconds * 1000)
    by_ledger = _last_closed_before(topic, cursor.mark_delete, seconds)
    found = max((each for each in (last, by_ledger) if each is not None), default=None)
    subscription.expired.tried_ms = topic.now_ms()
    if found is not None:
        _expire(subscription, found)
    return True


def _last_closed_before(topic: SubscribedPersistentTopic, mark: Position, seconds: int) -> Position | None:
    """Return the last entry of ledgers closed `seconds` ago, which are old whatever the producers' clocks say."""
    found: Position | None = None
    for ledger in topic.ledger.ledgers.values():
        if seconds <= 0 or not ledger.closed or topic.now_ms() <= ledger.rolled_ms + seconds * 1000:
            break
        if ledger.id >= mark.ledger_id and ledger.confirmed:
            found = Position(ledger.id, ledger.confirmed - 1)
    return found


def expire_through(subscription: PersistentSubscription, position: Position, ack_set: list[int]) -> bool:
    """Expire all entries through `position`, for REST. Return False if it is beyond the end of the topic."""
    subscription.expired.tried_ms = subscription.topic.now_ms()
    ledger = subscription.topic.ledger
    if not ledger.is_valid(position):
        if position > ledger.last_confirmed:
            return False
        position, ack_set = ledger.previous(ledger.clamp(position)), []
    _expire(subscription, position, ack_set)
    return True


def _expire(subscription: PersistentSubscription, position: Position, ack_set: list[int] | None = None) -> None:
    expired = subscription.expired
    expired.tried_ms = subscription.topic.now_ms()
    if position > subscription.cursor.mark_delete:
        expired.total += skip_through(subscription, position, ack_set or (), MovedBy.EXPIRED)


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


EVICTION = "consumer_backlog_eviction"
REDUCED_TO = 0.9  # share of the limit that an eviction leaves
NO_QUOTA = Quota()


def quota_of(topic: PersistentTopic, kind: str) -> Quota:
    return topic.policies.backlog_quotas.get(kind, NO_QUOTA)


# size and age of the backlog


def slowest_cursor(topic: PersistentTopic) -> ManagedCursor | None:
    """Return the durable cursor that is farthest behind."""
    return min(topic.log.cursors.values(), key=lambda cursor: cursor.mark_delete, default=None)


def backlog_size(topic: PersistentTopic) -> int:
    """Return the estimated backlog of the slowest durable subscription in bytes, or 0 without any."""
    slowest = slowest_cursor(topic)
    return size_after(topic, slowest.mark_delete) if slowest is not None else 0


def size_after(topic: SubscribedPersistentTopic, position: Position) -> int:
    """Return the bytes behind a position. As in Pulsar, each entry of its ledger counts as one of average size."""
    ledgers = topic.ledger.ledgers
    size = sum(ledger.size for ledger in ledgers.values() if ledger.id >= position.ledger_id)
    ledger = ledgers.get(position.ledger_id)
    if ledger is None or not ledger.count:
        return size
    passed = position.entry_id + 1
    return size - (ledger.size if passed >= ledger.count else passed * (ledger.size // ledger.count))


def oldest_ms(topic: PersistentTopic) -> int | None:
    """Return when the first ledger of the backlog was closed, or None while it is open."""
    slowest = slowest_cursor(topic)
    ledger = _where_it_goes_on(topic, slowest) if slowest is not None else None
    return ledger.rolled_ms if ledger is not None and ledger.closed else None


def _where_it_goes_on(topic: PersistentTopic, cursor: ManagedCursor) -> Ledger | None:
    following = topic.ledger.next(cursor.mark_delete)
    return topic.ledger.ledgers[following.ledger_id] if topic.ledger.is_valid(following) else None


def is_exceeded(topic: PersistentTopic, kind: str) -> bool:
    """Return whether the backlog has reached its quota's size, or is older than its quota's age."""
    quota = quota_of(topic, kind)
    if kind == STORAGE:
        return 0 <= quota.limit_size <= backlog_size(topic)
    oldest = oldest_ms(topic) if quota.limit_seconds > 0 else None
    return oldest is not None and topic.now_ms() > oldest + quota.limit_seconds * 1000


# enforcement of quotas


def refuse_producers(topic: PersistentTopic) -> None:
    """Raise `BacklogQuotaExceededError` for a new producer while a quota is exceeded."""
    for kind in (STORAGE, AGE):
        policy = quota_of(topic, kind).policy
        if policy != EVICTION and is_exceeded(topic, kind):
            raise BacklogQuotaExceededError(policy)


def check_backlog(topic: PersistentTopic) -> None:
    """Disconnect producers, or skip entries of the slowest subscriptions. A quota by size comes before one by age."""
    kind = next((kind for kind in (STORAGE, AGE) if is_exceeded(topic, kind)), None)
    if kind is None:
        return
    quota = quota_of(topic, kind)
    if quota.policy != EVICTION:
        topic.producers.disconnect_those(lambda producer: True)  # they reconnect, and are refused
    elif kind == STORAGE:
        _evict_by_size(topic, quota.limit_size)
    else:
        _evict_by_age(topic, quota.limit_seconds)


def _evict_by_size(topic: PersistentTopic, limit: int) -> None:
    target, before = int(REDUCED_TO * limit), None
    while (size := backlog_size(topic)) > target:
        slowest = slowest_cursor(topic)
        if slowest is None or slowest is before:  # evicting was not enough, and no other cursor is slower
            return
        position = nth_position(slowest, int((size - target) * slowest.backlog() / size), with_acked=True)
        if position is None:
            return
        _move(topic, slowest, position)
        before = slowest


def _evict_by_age(topic: PersistentTopic, seconds: int) -> None:
    """Skip whole ledgers, while the slowest cursor is in one that was closed `seconds` ago."""
    while (slowest := slowest_cursor(topic)) is not None:
        ledger = _where_it_goes_on(topic, slowest)
        if ledger is None or not ledger.closed or topic.now_ms() - ledger.rolled_ms <= seconds * 1000:
            return
        _move(topic, slowest, Position(ledger.id, ledger.confirmed - 1))


def _move(topic: PersistentTopic, cursor: ManagedCursor, position: Position) -> None:
    subscription = topic.subscriptions.get(cursor.name)
    if subscription is not None:
        skip_through(subscription, position, by=MovedBy.EVICTED)
    elif topic.deduplication is not None:  # deduplication has the only cursor without a subscription
        topic.deduplication.snapshot()
