"""Run the periodic checks of topics (B-41): expiry, trimming, backlog quotas, and deletion when unused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from pulsarium.broker.clock import Clock, Timeline
from pulsarium.broker.config.keys import Config
from pulsarium.broker.logs import Log
from pulsarium.broker.model.errors import TopicHasClientsError
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.deduplication import forget_inactive, snapshot_when_old
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.topics import Topics
from pulsarium.broker.model.topic.upkeep import check_backlog, check_ttl
from pulsarium.broker.slices import Rounds

log = Log("upkeep")
INACTIVITY = Log("inactivity")

CAUGHT_UP = "delete_when_subscriptions_caught_up"


Steps = Callable[[Timeline], Iterator[None]]


def work(config: Config, topics: Topics) -> Iterator[tuple[float, Steps]]:
    """Yield each periodic check: its interval in seconds, and the function that starts it.

    All checks look at loaded topics only, and at those that follow a timeline. Each step of a check looks at one topic.
    """

    def each(check: Callable[[PersistentTopic], None]) -> Steps:
        return partial(check_all, topics, check)

    yield config.messageExpiryCheckIntervalInMinutes * 60, each(check_ttl)
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
        yield config.brokerDeleteInactiveTopicsFrequencySeconds, partial(delete_inactive, topics)


def trim(topic: PersistentTopic) -> None:
    """Roll over an old ledger, and delete ledgers that need not be kept."""
    topic.ledger.roll_over_when_old()
    topic.trimmer.trim()


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


def delete_inactive(topics: Topics, line: Timeline) -> Iterator[None]:
    """Delete topics that were unused for long enough, one a step. A partitioned topic stays, with fewer partitions."""
    for topic in list(topics.loaded.values()):
        if not topic.closed and topic.stores.clock.follows(line) and may_go(topic):
            with suppress(TopicHasClientsError):
                topics.delete(topic.name, force=False)
                INACTIVITY.info("unused topic deleted", topic=topic.name)
        yield


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
    seconds = topic.policies.subscription_expiration_minutes * 60
    if seconds <= 0:
        return
    now = topic.stores.clock.monotonic()
    for subscription in list(topic.subscriptions.values()):
        if not (subscription.consumers or subscription.replicated) and now - subscription.used > seconds:
            topic.unsubscribe(subscription.name)
            INACTIVITY.info("unused subscription deleted", topic=topic.name, subscription=subscription.name)
