"""Causes of what is stuck: one for each subscription and reason, over all partitions of a topic, with a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pulsarium.broker.model.subscription.base import Subscription, redelivery_loop
from pulsarium.broker.model.subscription.reasons import Reason
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.listing import Late
from pulsarium.broker.web.console.waiting import WaitingTimes
from pulsarium.proto.topic_name import SEGMENT, TopicName

SHOWN: Final = 50

Json = dict[str, Any]

_STARTS: Final = "Start a consumer of this subscription, or delete the subscription."
_ACKNOWLEDGES: Final = "Have the consumers acknowledge what they have, or close them: others get it then."
_ITSELF: Final = "Wait: delivery goes on by itself."
REMEDIES: Final = {
    Reason.NO_CONSUMER: _STARTS,
    Reason.FAILOVER_DELAY: _ITSELF,
    Reason.NO_PERMITS: "Have the client receive: it takes no messages, or its queue is full.",
    Reason.NOT_WRITABLE: "Look at the client: it has stopped reading from its connection.",
    Reason.CONSUMERS_OWE: f"{_ACKNOWLEDGES} Or raise maxUnackedMessagesPerConsumer.",
    Reason.SUBSCRIPTION_OWES: f"{_ACKNOWLEDGES} Or raise maxUnackedMessagesPerSubscription.",
    Reason.LOOK_AHEAD: "Look at the consumers of the first keys: they hold the others back.",
    Reason.RATE_LIMITED: "Raise the dispatch rate, or wait.",
    Reason.RETRYING_LIMIT: "Look at the consumers that return messages: they must acknowledge some of them first.",
    Reason.LOADING: _ITSELF,
    Reason.NEXT_TURN: _ITSELF,
    Reason.UNREADABLE: "Look at the log of the broker, and skip the messages that the disk cannot read.",
    Reason.BEHIND_CHUNK: "Have the consumer of the first chunk receive, or close it.",
    Reason.CAUGHT_UP: _ACKNOWLEDGES,
    Reason.OPEN_TRANSACTION: "Commit or abort the open transaction.",
    Reason.FENCED: _ITSELF,
}

OF_LOOP: Final = "Skip the message, or set a dead letter policy."


def kind_of(reason: Reason) -> str:
    """Return a word for a reason that stays the same when its text changes, such as noConsumer."""
    first, *others = reason.name.lower().split("_")
    return first + "".join(map(str.capitalize, others))


def part_of(topic: str) -> int | str | None:
    """Return the index of a partition, the name of a segment in its scalable topic, or None."""
    name = TopicName.parse(topic)
    if name.domain == SEGMENT:
        return name.local_name.rpartition("/")[2]
    return name.partition_index if name.is_partition else None


def reason_of(subscription: Subscription, waiting: WaitingTimes) -> Json:
    """Return why a subscription waits, in a few words."""
    reason = "" if subscription.reason is None else subscription.reason.value
    return {"subscription": subscription.name, "reason": reason, "since": waiting.since(subscription)}


async def causes(late: Iterable[Late], waiting: WaitingTimes, slice_: Slice) -> list[Json]:
    """Return why late subscriptions are stuck, the oldest first."""
    found: dict[tuple[str, str, Reason], Json] = {}
    for row, topic, subscription in late:
        if subscription.reason is not None:
            key = row, subscription.name, subscription.reason
            _add(found.setdefault(key, _cause(row, subscription, subscription.reason)), topic, subscription, waiting)
        await slice_.pause()
    return sorted(found.values(), key=lambda cause: (cause["loop"] is None, cause["sinceMs"]))


def _cause(row: str, subscription: Subscription, reason: Reason) -> Json:
    return {
        "topic": row,
        "subscription": subscription.name,
        "kind": kind_of(reason),
        "reason": reason.value,
        "partitions": [],
        "backlog": 0,
        "sinceMs": 0,
        "loop": None,
        "remedy": REMEDIES.get(reason, ""),
    }


def _add(cause: Json, topic: str, subscription: Subscription, waiting: WaitingTimes) -> None:
    part, since = part_of(topic), waiting.since(subscription)
    if part is not None and topic != cause["topic"]:
        cause["partitions"].append(part)
    cause["backlog"] += 0 if subscription.cursor is None else subscription.cursor.backlog()
    cause["sinceMs"] = min(cause["sinceMs"] or since, since)
    loop = redelivery_loop(subscription)
    if loop is not None and (cause["loop"] is None or loop.deliveries > cause["loop"]["deliveries"]):
        told = {"messageId": str(loop.position), "deliveries": loop.deliveries, "consumer": loop.consumer}
        cause |= {"loop": told, "remedy": OF_LOOP}
