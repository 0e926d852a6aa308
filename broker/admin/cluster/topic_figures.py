"""The figures of topics in /admin/v2/broker-stats/topics: fewer than in the stats of a topic, some by other names."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.topic.internal_stats import entries_to_read_position
from pulsarium.broker.admin.topic.stats_json import StatsWriter
from pulsarium.broker.http.reply import Written
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.base import Topic

CLIENT = ("address", "connectedSince", "clientVersion", "metadata")
PUBLISHER = (*CLIENT, "msgRateIn", "msgThroughputIn", "averageMsgSize", "producerId", "producerName")
CONSUMER = (
    *CLIENT,
    "consumerName",
    "availablePermits",
    "msgRateOut",
    "msgThroughputOut",
    "msgRateRedeliver",
    "avgMessagesPerEntry",
    "messageAckRate",
)
SUBSCRIPTION = (
    "msgBacklog",
    "msgRateExpired",
    "msgRateOut",
    "messageAckRate",
    "msgThroughputOut",
    "msgRateRedeliver",
    "type",
    "filterProcessedMsgCount",
    "filterAcceptedMsgCount",
    "filterRejectedMsgCount",
    "filterRescheduledMsgCount",
    "msgDropRate",
)
TOPIC = (
    "averageMsgSize",
    "msgRateIn",
    "msgRateOut",
    "msgThroughputIn",
    "msgThroughputOut",
    "storageSize",
    "backlogSize",
)
RENAMED = {
    "msgInCount": "msgInCounter",
    "bytesInCount": "bytesInCounter",
    "msgOutCount": "msgOutCounter",
    "bytesOutCount": "bytesOutCounter",
}


async def topic_figures(writer: StatsWriter, topic: Topic) -> dict[str, Any]:
    """Return the figures of one topic."""
    subscriptions = Subscriptions(topic)
    stats = await writer.topic(topic, subscriptions)
    figures = _some(stats, TOPIC) | {name: stats[kept] for name, kept in RENAMED.items()}
    return figures | {
        "publishers": [_some(each, PUBLISHER) for each in stats["publishers"]],
        "replication": {},
        "subscriptions": subscriptions.written,
        "producerCount": len(stats["publishers"]),
        "pendingAddEntriesCount": 0,
        "filteredEntriesCount": 0,
    }


class Subscriptions:
    """Writes the figures of a topic's subscriptions, from their stats."""

    def __init__(self, topic: Topic) -> None:
        self.written = Written()
        self._topic = topic

    def __setitem__(self, name: str, stats: dict[str, Any]) -> None:
        self.written[name] = _subscription(stats, self._topic.subscriptions.get(name))


def _subscription(stats: dict[str, Any], subscription: Subscription | None) -> dict[str, Any]:
    figures = _some(stats, SUBSCRIPTION) | {"consumers": [_some(each, CONSUMER) for each in stats["consumers"]]}
    if isinstance(subscription, PersistentSubscription):
        cursor = subscription.cursor
        figures["numberOfEntriesSinceFirstNotAckedMessage"] = entries_to_read_position(cursor)
        figures["totalNonContiguousDeletedMessagesRange"] = cursor.individual_acks.count_ranges()
    return figures


def _some(stats: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: stats[name] for name in names if name in stats}
