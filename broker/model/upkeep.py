"""Run the periodic checks of topics: expiry, trimming, backlog quotas, and deletion when unused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from pulsarium.broker.clock import Clock, Timeline
from pulsarium.broker.config.keys import Config
from pulsarium.broker.logs import PartLog
from pulsarium.broker.model.cursor.managed_cursor import ManagedCursor
from pulsarium.broker.model.errors import TopicHasClientsError
from pulsarium.broker.model.ledger.ledger import MINUTE_MS
from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.news import Kind
from pulsarium.broker.model.policy.policies import STORAGE
from pulsarium.broker.model.subscription.mark_moves import MovedBy
from pulsarium.broker.model.subscription.skip import nth_position, skip_through
from pulsarium.broker.model.topic.backlog import (
    EVICTION,
    backlog_size,
    exceeded,
    expire,
    last_published_before,
    ledger_to_consume,
    quota_of,
    slowest_cursor,
)
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.net.rounds import Rounds
from pulsarium.proto.topic_name import TopicName

log = PartLog("upkeep")
INACTIVITY = PartLog("inactivity")

CAUGHT_UP = "delete_when_subscriptions_caught_up"


Steps = Callable[[Timeline], Iterator[None]]


def work(config: Config, topics: Topics) -> Iterator[tuple[float, Steps]]:
    """Yield each periodic check: its interval in seconds, and the function that starts it.

    All checks look at loaded topics only, and at those that follow a timeline. Each step of a check looks at one topic.
    """

    def each(check: Callable[[PersistentTopic], None]) -> Steps:
        return partial(check_all, topics, check)

    yield config.messageExpiryCheckIntervalInMinutes * 60, each(PersistentTopic.check_ttl)
    yield config.retentionCheckIntervalInSeconds, each(trim)
    yield config.brokerDeduplicationSnapshotFrequencyInSeconds, each(snapshot_when_old)
    # in seconds: a third of the timeout
    yield config.brokerDeduplicationProducerInactivityTimeoutMinutes * 20, each(forget_inactive)
    yield config.brokerServiceCompactionMonitorIntervalInSeconds, each(compact)
    if config.backlogQuotaCheckEnabled:
        yield config.backlogQuotaCheckIntervalInSeconds, each(check_backlog)
    if config.subscriptionExpiryCheckIntervalInMinutes > 0:
        yield config.subscriptionExpiryCheckIntervalInMinutes * 60, each(delete_unused_subscriptions)
    if config.brokerDeleteInactiveTopicsEnabled:
        yield config.brokerDeleteInactiveTopicsFrequencySeconds, partial(delete_inactive, config, topics)


def trim(topic: PersistentTopic) -> None:
    """Roll over an old ledger, and delete ledgers that need not be kept."""
    topic.ledger.roll_over_when_old()
    topic.trimmer.trim()


def snapshot_when_old(topic: PersistentTopic) -> None:
    """Store what deduplication knows, when the stored state is old."""
    if topic.deduplication is not None:
        topic.deduplication.snapshot_when_old(topic.policies.deduplication_snapshot_seconds)


def forget_inactive(topic: PersistentTopic) -> None:
    """Have deduplication forget producers that left."""
    if topic.deduplication is not None:
        topic.deduplication.forget_inactive(topic.producers.by_name)


def compact(topic: PersistentTopic) -> None:
    """Compact a topic once its new messages exceed the policy's threshold."""
    topic.compaction.trigger_when_due()


def check_all(topics: Topics, check: Callable[[PersistentTopic], None], line: Timeline) -> Iterator[None]:
    """Check each persistent topic, one a step. An error in one topic does not stop the others."""
    for topic in topics.loaded_persistent():
        if not topic.closed and topic.stores.clock.follows(line):
            try:
                check(topic)
            except Exception as error:
                log.error("a periodic check of a topic failed", exception=error, topic=topic.name)
        yield


def start_upkeep(clock: Clock, config: Config, topics: Topics) -> None:
    """Start all periodic checks. They run as long as the clock."""
    for seconds, steps in work(config, topics):
        clock.check_every(seconds, partial(_rounds, steps))
    if config.clusterMigrationCheckDurationSeconds > 0:
        clock.every(config.clusterMigrationCheckDurationSeconds, Rounds(clock, topics.migration.check_all))


def _rounds(steps: Steps, line: Timeline) -> Rounds:
    return Rounds(line, partial(steps, line))


# unused topics and subscriptions


def delete_inactive(config: Config, topics: Topics, line: Timeline) -> Iterator[None]:
    """Delete topics that were unused for long enough, one a step. A partitioned topic may stay, without partitions."""
    for topic in list(topics.loaded.values()):
        if not topic.closed and topic.stores.clock.follows(line) and may_go(topic):
            with suppress(TopicHasClientsError):
                unused = f"nobody used it for {topic.policies.inactivity.max_seconds} s"
                topics.delete(topic.name, force=False, why=unused)
                INACTIVITY.info("unused topic deleted", topic=topic.name)
                if config.brokerDeleteInactivePartitionedTopicMetadataEnabled and topic.name.is_partition:
                    _delete_parent(topics, topic.name)
        yield


def _delete_parent(topics: Topics, partition: TopicName) -> None:
    """Delete the partitioned topic of a deleted partition, unless it is persistent and has other partitions."""
    name = partition.partitioned_name
    count = topics.partitions_for_client(name, create=False) or 0
    left = name.is_persistent and any(topics.exists(name.partition(index)) for index in range(count))
    if count and not left:
        topics.delete_partitioned(name)
        INACTIVITY.info("unused partitioned topic deleted", topic=name)


def may_go(topic: Topic) -> bool:
    """Return whether a topic was unused for long enough to be deleted. Touch a topic that is in use.

    Retention by time keeps a topic with messages. Consumers do not count in the mode
    "delete_when_subscriptions_caught_up": there only the deletion itself is refused because of them, as in Pulsar.
    """
    inactivity = topic.policies.inactivity
    if not inactivity.delete or topic.name.is_segment:
        return False
    if topic.producers or topic.is_subscribed(caught_up_is_enough=inactivity.mode == CAUGHT_UP):
        topic.touch()
        return False
    idle = topic.stores.clock.monotonic() - topic.used
    return idle >= inactivity.max_seconds and not topic.is_retained(idle)


def delete_unused_subscriptions(topic: PersistentTopic) -> None:
    """Delete subscriptions unused for subscriptionExpirationTimeMinutes. Replicated ones stay, as in Pulsar."""
    expiration_ms = topic.policies.subscription_expiration_minutes * MINUTE_MS
    if expiration_ms <= 0:
        return
    now_ms = topic.now_ms()
    for subscription in list(topic.subscriptions.values()):
        subscription.used_ms = min(subscription.used_ms, now_ms)  # the clock may have been set back
        if not (subscription.consumers or subscription.replicated) and now_ms - subscription.used_ms > expiration_ms:
            unused = f"nobody used it for {topic.policies.subscription_expiration_minutes} minutes"
            topic.unsubscribe(subscription.name, why=unused)
            INACTIVITY.info("unused subscription deleted", topic=topic.name, subscription=subscription.name)


REDUCED_TO = 0.9  # share of the limit that an eviction leaves


def check_backlog(topic: PersistentTopic) -> None:
    """Disconnect producers, or skip entries of the slowest subscriptions. A quota by size comes before one by age."""
    kind = exceeded(topic.log, topic.policies, topic.now_ms())
    if kind is None:
        return
    quota = quota_of(topic.policies, kind)
    topic.stores.news.tell(Kind.QUOTA_EXCEEDED, topic=topic.name, quota=kind, policy=quota.policy)
    if quota.policy != EVICTION:
        topic.producers.disconnect_those(lambda producer: True)  # they reconnect, and are refused
    elif kind == STORAGE:
        _evict_by_size(topic, quota.limit_size)
    else:
        _evict_by_age(topic, quota.limit_seconds)


def _evict_by_size(topic: PersistentTopic, limit: int) -> None:
    target, before = int(REDUCED_TO * limit), None
    while (size := backlog_size(topic.log)) > target:
        slowest = slowest_cursor(topic.log)
        if slowest is None or slowest is before:  # evicting was not enough, and no other cursor is slower
            return
        position = nth_position(slowest, int((size - target) * slowest.backlog() / size), with_acked=True)
        if position is None:
            return
        _move(topic, slowest, position)
        before = slowest


def _evict_by_age(topic: PersistentTopic, seconds: int) -> None:
    """Skip whole ledgers, while the slowest cursor is in one that was closed `seconds` ago.

    With preciseTimeBasedBacklogQuotaCheck, expire messages that have almost that age, on every subscription.
    """
    if topic.stores.config.preciseTimeBasedBacklogQuotaCheck:
        last = last_published_before(
            topic.ledger, topic.stores.config, topic.now_ms() - int(REDUCED_TO * seconds) * 1000
        )
        for subscription in list(topic.subscriptions.values()):
            if last is not None:
                expire(subscription, last)
        return
    while (slowest := slowest_cursor(topic.log)) is not None:
        ledger = ledger_to_consume(slowest)
        if ledger is None or not ledger.closed or topic.now_ms() - ledger.rolled_ms <= seconds * 1000:
            return
        _move(topic, slowest, Position(ledger.id, ledger.confirmed - 1))


def _move(topic: PersistentTopic, cursor: ManagedCursor, position: Position) -> None:
    subscription = topic.subscriptions.get(cursor.name)
    if subscription is not None:
        skip_through(subscription, position, by=MovedBy.EVICTED)
    elif topic.deduplication is not None:  # deduplication has the only cursor without a subscription
        topic.deduplication.snapshot()
