"""What a broker does for its topics every so often."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pulsarium.broker.clock import Clock
from pulsarium.broker.config.keys import Config
from pulsarium.broker.logs import Log
from pulsarium.broker.model.topic.deduplication import forget_inactive, snapshot_when_old
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.upkeep.backlog_quota import check_backlog
from pulsarium.broker.model.upkeep.expiry import check_ttl
from pulsarium.broker.model.upkeep.inactivity import delete_inactive, delete_unused_subscriptions
from pulsarium.broker.slices import Rounds

log = Log("upkeep")


def work(config: Config, topics: Topics) -> Iterator[tuple[float, Callable[[], Iterator[None]]]]:
    """(interval in seconds, what is done topic by topic) for each periodic check. All look at loaded topics only."""

    def each(check: Callable[[PersistentTopic], None]) -> Callable[[], Iterator[None]]:
        return partial(check_all, topics, check)

    yield config.messageExpiryCheckIntervalInMinutes * 60, each(check_ttl)
    yield config.retentionCheckIntervalInSeconds, each(trim)
    yield config.brokerDeduplicationSnapshotFrequencyInSeconds, each(snapshot_when_old)
    yield config.brokerDeduplicationProducerInactivityTimeoutMinutes * 20, each(forget_inactive)  # a third of it
    yield config.brokerServiceCompactionMonitorIntervalInSeconds, each(compact)
    if config.backlogQuotaCheckEnabled:
        yield config.backlogQuotaCheckIntervalInSeconds, each(check_backlog)
    if config.subscriptionExpiryCheckIntervalInMinutes > 0:
        yield config.subscriptionExpiryCheckIntervalInMinutes * 60, each(delete_unused_subscriptions)
    if config.brokerDeleteInactiveTopicsEnabled:
        yield config.brokerDeleteInactiveTopicsFrequencySeconds, partial(delete_inactive, topics)
    if config.clusterMigrationCheckDurationSeconds > 0:
        yield config.clusterMigrationCheckDurationSeconds, topics.migration.check_all


def trim(topic: PersistentTopic) -> None:
    """Close a ledger that is old, delete those that need not be kept."""
    topic.ledger.roll_over_when_old()
    topic.trimmer.trim()


def compact(topic: PersistentTopic) -> None:
    """Compact a topic that has as much new as its policy says."""
    topic.compaction.trigger_when_due()


def check_all(topics: Topics, check: Callable[[PersistentTopic], None]) -> Iterator[None]:
    """Check each persistent topic, step by step; the fault of one does not spare the others."""
    for topic in list(topics.loaded.values()):
        if isinstance(topic, PersistentTopic) and not topic.closed:
            try:
                check(topic)
            except Exception as error:
                log.error("a periodic check failed", exception=error, topic=topic.name)
        yield


def start_upkeep(clock: Clock, config: Config, topics: Topics) -> None:
    """Begin; it goes on as long as the clock runs."""
    for seconds, what in work(config, topics):
        clock.every(seconds, Rounds(clock, what))
