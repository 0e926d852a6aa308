"""The figures of topics in /admin/v2/broker-stats/topics: fewer than in the stats of a topic, some by other names."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.topic.internal_stats import entries_to_read_position
from pulsarium.broker.admin.topic.stats_json import StatsWriter
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.slices import Slice

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
    stats = await writer.topic(topic)
    figures = _some(stats, TOPIC) | {name: stats[kept] for name, kept in RENAMED.items()}
    subscriptions: dict[str, Any] = {}
    slice_ = Slice()
    for name, each in stats["subscriptions"].items():
        subscriptions[name] = _subscription(each, topic.subscriptions.get(name))
        await slice_.pause()
    return figures | {
        "publishers": [_some(each, PUBLISHER) for each in stats["publishers"]],
        "replication": {},
        "subscriptions": subscriptions,
        "producerCount": len(stats["publishers"]),
        "pendingAddEntriesCount": 0,
        "filteredEntriesCount": 0,
    }


def _subscription(stats: dict[str, Any], subscription: Subscription | None) -> dict[str, Any]:
    figures = _some(stats, SUBSCRIPTION) | {"consumers": [_some(each, CONSUMER) for each in stats["consumers"]]}
    if isinstance(subscription, PersistentSubscription):
        cursor = subscription.cursor
        figures["numberOfEntriesSinceFirstNotAckedMessage"] = entries_to_read_position(cursor)
        figures["totalNonContiguousDeletedMessagesRange"] = cursor.holes.count_ranges()
    return figures


def _some(stats: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: stats[name] for name in names if name in stats}
