"""The backlog of a topic: its size and age, their quotas, and entries that expire.

Entries expire by the broker's timestamp, or else by publish_time. The age of a backlog is the time since its first
ledger was closed, and the open ledger has no age. With preciseTimeBasedBacklogQuotaCheck the age is that of the oldest
entry.
"""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.config.keys import Config
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import BacklogQuotaExceededError
from pulsarium.broker.model.ledger.ledger import Ledger
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.ledger.sequence import LedgerSequence
from pulsarium.broker.model.policy.policies import AGE, STORAGE, Policies, Quota
from pulsarium.broker.model.subscription.mark_moves import MovedBy
from pulsarium.broker.model.subscription.persistent import PersistentSubscription, SubscribedPersistentTopic
from pulsarium.broker.model.subscription.skip import skip_through
from pulsarium.broker.model.topic.log import TopicLog
from pulsarium.broker.storage.interface import DamagedEntriesError, StorageError
from pulsarium.proto.entry import parse_broker_metadata, parse_metadata
from pulsarium.proto.errors import EntryError
from pulsarium.proto.numbers import signed
from pulsarium.proto.topic_name import TopicName

LOG = PartLog("upkeep")

ALMOST_CAUGHT_UP = 1000  # entries; below that, connected consumers are spared until their oldest entry is far too old
OLDER_FOR_CONSUMERS = 1.5  # factor for the requested age
EVICTION = "consumer_backlog_eviction"
NO_QUOTA = Quota()


# age of entries


def published_before(time_ms: int) -> Callable[[bytes], bool]:
    """Return a function that tells whether an entry was published before `time_ms`."""

    def matches(entry: bytes) -> bool:
        published = published_ms(entry)
        return published is not None and published < time_ms

    return matches


def published_ms(entry: bytes) -> int | None:
    """Return the time of the broker that an entry has, or else of its producer. Return None without metadata."""
    stamp = parse_broker_metadata(entry)
    if stamp is not None and stamp.HasField("broker_timestamp"):
        return signed(stamp.broker_timestamp)
    try:
        return signed(parse_metadata(entry).publish_time)
    except EntryError:  # as in Pulsar
        return None


def last_published_before(ledger: LedgerSequence, config: Config, time_ms: int) -> Position | None:
    """Return the last entry published before `time_ms`.

    Raise `StorageError` for a damaged entry, unless autoSkipNonRecoverableData allows to skip it.
    """
    return ledger.find_last(published_before(time_ms), skips_damaged=config.autoSkipNonRecoverableData)


def is_older(ledger: LedgerSequence, position: Position, seconds: int, now_ms: int) -> bool:
    """Return whether an entry is older than `seconds`, or damaged, as in Pulsar. 0 seconds is never."""
    if not seconds or not ledger.is_valid(position):
        return False
    try:
        return published_before(now_ms - seconds * 1000)(ledger.read_now(position))
    except DamagedEntriesError:
        return True


# expiry


def expired_before(log: TopicLog, seconds: int, now_ms: int) -> Position | None:
    """Return the last entry that is older than a TTL of `seconds`, or None.

    Without durable cursors, nothing expires. Raise `StorageError` for an entry that cannot be read.
    """
    marks = [cursor.mark_delete for cursor in log.cursors.values()]
    if seconds <= 0 or not marks:
        return None
    if not is_older(log.ledger, log.ledger.next(min(marks)), seconds, now_ms):
        return None
    return last_published_before(log.ledger, log.config, now_ms - seconds * 1000)


def expire_older_than(subscription: PersistentSubscription, seconds: int) -> bool:
    """Expire entries older than `seconds`, for REST. Return False if the subscription has almost caught up."""
    if not may_expire(subscription, seconds):
        return False
    found = last_older_than(subscription, seconds)
    subscription.expired.tried_ms = subscription.topic.now_ms()
    if found is not None:
        expire(subscription, found)
    return True


def may_expire(subscription: PersistentSubscription, seconds: int) -> bool:
    """Return whether entries older than `seconds` expire on request.

    They do not while connected consumers have almost caught up, unless the oldest entry is far too old.
    """
    cursor, topic = subscription.cursor, subscription.topic
    backlog = cursor.backlog()
    if not (subscription.consumers and backlog < ALMOST_CAUGHT_UP):
        return backlog > 0
    oldest = topic.ledger.next(cursor.mark_delete)
    return backlog > 0 and is_older(topic.ledger, oldest, int(seconds * OLDER_FOR_CONSUMERS), topic.now_ms())


def last_older_than(subscription: PersistentSubscription, seconds: int) -> Position | None:
    """Return the last entry that is older than `seconds`, or None."""
    topic = subscription.topic
    last = last_published_before(topic.ledger, topic.stores.config, topic.now_ms() - seconds * 1000)
    by_ledger = _last_closed_before(topic, subscription.cursor.mark_delete, seconds)
    return max((each for each in (last, by_ledger) if each is not None), default=None)


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
    expire(subscription, position, ack_set)
    return True


def expire(subscription: PersistentSubscription, position: Position, ack_set: list[int] | None = None) -> None:
    """Acknowledge all entries through `position`, because they have expired."""
    expired = subscription.expired
    expired.tried_ms = subscription.topic.now_ms()
    if position > subscription.cursor.mark_delete:
        expired.total += skip_through(subscription, position, ack_set or (), MovedBy.EXPIRED)


# size and age of the backlog


def slowest_cursor(log: TopicLog) -> ManagedCursor | None:
    """Return the durable cursor that is farthest behind."""
    return min(log.cursors.values(), key=lambda cursor: cursor.mark_delete, default=None)


def backlog_size(log: TopicLog) -> int:
    """Return the estimated backlog of the slowest durable subscription in bytes, or 0 without any."""
    slowest = slowest_cursor(log)
    return size_after(log.ledger, slowest.mark_delete) if slowest is not None else 0


def size_after(ledger_of_topic: LedgerSequence, position: Position) -> int:
    """Return the bytes behind a position. As in Pulsar, each entry of its ledger counts as one of average size."""
    ledgers = ledger_of_topic.ledgers
    size = sum(ledger.size for ledger in ledgers.values() if ledger.id >= position.ledger_id)
    ledger = ledgers.get(position.ledger_id)
    if ledger is None or not ledger.count:
        return size
    passed = position.entry_id + 1
    return size - (ledger.size if passed >= ledger.count else passed * (ledger.size // ledger.count))


def oldest_ms(log: TopicLog) -> int | None:
    """Return when the first ledger of the backlog was closed, or None while it is open.

    With preciseTimeBasedBacklogQuotaCheck, return when the oldest entry was published. None is for an entry that
    cannot be read too.
    """
    slowest = slowest_cursor(log)
    if slowest is None:
        return None
    if log.config.preciseTimeBasedBacklogQuotaCheck and not any(cursor.backlog() for cursor in log.cursors.values()):
        return None
    return oldest_of(slowest, log.config)


def oldest_of(cursor: ManagedCursor, config: Config) -> int | None:
    """Return the time from which the backlog of one cursor has its age, as `oldest_ms` does for the topic."""
    if config.preciseTimeBasedBacklogQuotaCheck:
        return _oldest_published_ms(cursor)
    ledger = ledger_to_consume(cursor)
    return ledger.rolled_ms if ledger is not None and ledger.closed else None


def _oldest_published_ms(cursor: ManagedCursor) -> int | None:
    ledger = cursor.ledger
    position = ledger.next(cursor.mark_delete)
    try:
        return published_ms(ledger.read_now(position)) if ledger.is_valid(position) else None
    except StorageError as error:
        name = TopicName.from_managed_ledger(ledger.name)
        LOG.warning("the age of a backlog is unknown: an entry cannot be read", topic=name, reason=error)
        return None


def ledger_to_consume(cursor: ManagedCursor) -> Ledger | None:
    """Return the ledger of the first entry that a cursor has not acknowledged."""
    following = cursor.ledger.next(cursor.mark_delete)
    return cursor.ledger.ledgers[following.ledger_id] if cursor.ledger.is_valid(following) else None


# quotas


def quota_of(policies: Policies, kind: str) -> Quota:
    """Return the backlog quota by size or by age."""
    return policies.backlog_quotas.get(kind, NO_QUOTA)


def is_exceeded(log: TopicLog, policies: Policies, kind: str, now_ms: int) -> bool:
    """Return whether the backlog has reached its quota's size, or is older than its quota's age."""
    quota = quota_of(policies, kind)
    if kind == STORAGE:
        return 0 <= quota.limit_size <= backlog_size(log)
    oldest = oldest_ms(log) if quota.limit_seconds > 0 else None
    return oldest is not None and now_ms > oldest + quota.limit_seconds * 1000


def exceeded(log: TopicLog, policies: Policies, now_ms: int) -> str | None:
    """Return the kind of the quota that the backlog exceeds, by size before by age, or None."""
    return next((kind for kind in (STORAGE, AGE) if is_exceeded(log, policies, kind, now_ms)), None)


def refuse_producers(log: TopicLog, policies: Policies, now_ms: int) -> None:
    """Raise `BacklogQuotaExceededError` for a new producer while a quota is exceeded."""
    for kind in (STORAGE, AGE):
        policy = quota_of(policies, kind).policy
        if policy != EVICTION and is_exceeded(log, policies, kind, now_ms):
            quota, slowest = quota_of(policies, kind), slowest_cursor(log)
            raise BacklogQuotaExceededError(
                policy,
                limit=kind,
                allowed=quota.limit_size if kind == STORAGE else quota.limit_seconds,
                backlog=backlog_size(log),
                held_by=None if slowest is None else f"subscription {slowest.name}",
            )
