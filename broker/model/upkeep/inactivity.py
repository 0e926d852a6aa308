"""Topics (B-41) and subscriptions that nobody uses any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pulsarium.broker.logs import Log
from pulsarium.broker.model.errors import TopicHasClientsError
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.model.topic.topics import Topics

log = Log("inactivity")

CAUGHT_UP = "delete_when_subscriptions_caught_up"


def delete_inactive(topics: Topics) -> Iterator[None]:
    """Delete topics that were unused for long enough, one by one; partitioned ones stay, with fewer partitions."""
    for topic in list(topics.loaded.values()):
        if not topic.closed and may_go(topic):
            with suppress(TopicHasClientsError):
                topics.delete(topic.name, force=False)
                log.info("topic deleted: nobody used it", topic=topic.name)
        yield


def may_go(topic: Topic) -> bool:
    """Whether a topic was unused for long enough to be deleted; notes that it is in use where it is.

    Retention by time keeps one that has messages. Consumers do not count here: where subscriptions need only be caught
    up, just the deletion itself is refused because of them, as in Pulsar.
    """
    inactivity = topic.policies.inactivity
    if not inactivity.delete:
        return False
    if topic.producers or _is_subscribed(topic, inactivity.mode):
        topic.touch()
        return False
    idle = topic.stores.clock.monotonic() - topic.used
    return idle >= inactivity.max_seconds and not _is_retained(topic, idle)


def _is_subscribed(topic: Topic, mode: str) -> bool:
    """Compaction counts as a subscription in Pulsar; and one that runs is in nobody's interest to lose."""
    if not isinstance(topic, PersistentTopic):
        return bool(topic.subscriptions)
    if topic.compaction.status == "RUNNING":
        return True
    if mode == CAUGHT_UP:
        return any(subscription.cursor.backlog() for subscription in topic.subscriptions.values())
    return bool(topic.subscriptions) or topic.log.compaction.cursor is not None


def _is_retained(topic: Topic, idle: float) -> bool:
    if not isinstance(topic, PersistentTopic) or not topic.ledger.count:
        return False
    minutes = topic.policies.retention.minutes
    return minutes < 0 or idle < minutes * 60


def delete_unused_subscriptions(topic: PersistentTopic) -> None:
    """Delete subscriptions unused for subscriptionExpirationTimeMinutes. Replicated ones stay, as in Pulsar."""
    seconds = topic.policies.subscription_expiration_minutes * 60
    if seconds <= 0:
        return
    now = topic.stores.clock.monotonic()
    for subscription in list(topic.subscriptions.values()):
        if not (subscription.consumers or subscription.replicated) and now - subscription.used > seconds:
            topic.unsubscribe(subscription.name)
            log.info("subscription deleted: nobody used it", topic=topic.name, subscription=subscription.name)
