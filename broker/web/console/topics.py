"""The pages about topics: what waits, a part of the list of topics, and one topic with its clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.config.proposals import PROPOSALS
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.model.policy.without_effect import REPLICATED, SETTING, WithoutEffect
from pulsarium.broker.model.scalable.explained import explain_scaling
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.summary import summary_of
from pulsarium.broker.web.console.waiting import WaitingTimes
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.live import shown
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply
from pulsarium.proto.topic_name import SCALABLE, TopicName

PAGE: Final = 50  # topics at once, without ?limit=
MOST: Final = 500
SHOWN_FACTS: Final = 50
SHOWN_LATE: Final = 20
LOOKED_AT: Final = 500  # loaded topics whose subscriptions are searched for settings without effect

Json = dict[str, Any]


@route("GET", "/pulsarium/topics")
async def overview(call: Call) -> HttpReply:
    """Return facts about the broker, late subscriptions, and some topics: ?filter= in names, ?offset=, ?limit=.

    The partitions of a topic are one row. With Accept: text/event-stream, send the answer again when it changes.
    """
    part, offset, limit = call.query.get("filter", ""), _number(call, "offset", 0), _number(call, "limit", PAGE)
    waiting = WaitingTimes()
    return await shown(call, lambda: _overview(call, waiting, part, offset, min(limit, MOST)))


async def _overview(call: Call, waiting: WaitingTimes, part: str, offset: int, limit: int) -> Json:
    broker, slice_ = call.broker, Slice()
    rows = _rows(broker, part)
    names = islice(rows, offset, offset + limit)
    topics = [await _row(broker, name, rows[name], waiting, slice_) for name in names]
    late: list[Json] = []
    for topic in list(broker.topics.loaded.values()):
        for each in list(topic.subscriptions.values()):
            if len(late) < SHOWN_LATE and waiting.is_late(each):
                late.append({"topic": str(topic.name), **_subscription(each, waiting)})
            await slice_.pause()
    return {
        "version": VERSION,
        "profile": broker.profile.name,
        "proposals": [str(PROPOSALS[number]) for number in sorted(broker.profile.proposals)],
        "cluster": broker.config.clusterName,
        "serviceUrl": broker.assigned.service_url,
        "upSinceMs": broker.up_since_ms,
        "connections": len(broker.sessions),
        "namespaces": len(broker.metadata.namespaces),
        "withoutEffect": [
            {"where": where, "what": fact.name, "why": fact.why}
            for where, fact in islice(_without_effect(broker), SHOWN_FACTS)
        ],
        "stalls": [stall._asdict() for stall in broker.turn.stalls.latest],
        "late": late,
        "topicCount": len(rows),
        "topics": topics,
    }


def _number(call: Call, name: str, default: int) -> int:
    text = call.query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise AdminError(400, f"{name} is {text!r}; it must be a number, 0 or more")
    return int(text)


def _rows(broker: Broker, part: str) -> dict[str, int]:
    """Return the topics whose names contain `part`, with the number of their partitions, or 0."""
    partitioned, found = broker.metadata.partitioned, Counter[str]()
    for namespace in sorted(broker.metadata.namespaces):
        for name in (
            *broker.cluster.scalable.names(namespace),
            *broker.topics.names(namespace, non_persistent=True),
            *(name for name in partitioned if f"://{namespace}/" in name),
        ):
            whole, mark, number = name.rpartition("-partition-")
            row = whole if mark and whole in partitioned and number.isdecimal() else name
            if row not in found and part in row:
                found[row] = partitioned[row]["partitions"] if row in partitioned else 0
    return dict(found)


async def _row(broker: Broker, name: str, partitions: int, waiting: WaitingTimes, slice_: Slice) -> Json:
    """Return one row of the list. A topic that is not loaded has no clients, and is not loaded for this."""
    of = TopicName.parse(name)
    names = [str(of.partition(index)) for index in range(partitions)] or [name]
    scalable = broker.cluster.scalable.find(of) if of.domain == SCALABLE else None
    if scalable is not None:
        names = [str(scalable.segment_topic(segment)) for segment in scalable.layout.assignable()]
    loaded = [topic for each in names if (topic := broker.topics.loaded.get(each)) is not None]
    subscriptions = [each for topic in loaded for each in topic.subscriptions.values()]
    late, found, sums = None, set[str](), Counter[str]()
    for each in subscriptions:
        if late is None and waiting.is_late(each):
            late = each
        found.add(each.name)
        sums["messagesOut"] += _delivered(each)
        sums["consumers"] += len(each.consumers)
        sums["backlog"] += 0 if each.cursor is None else each.cursor.backlog()
        await slice_.pause()
    row: Json = {"name": name, "loaded": bool(loaded), "partitions": partitions}
    if scalable is not None:
        row["segments"] = len(names)
    if loaded:
        row |= {
            "producers": sum(len(topic.producers) for topic in loaded),
            "messagesIn": sum(topic.messages_in for topic in loaded),
            "messagesOut": sums["messagesOut"],
            "storageSize": sum(topic.ledger.size for topic in loaded if topic.ledger is not None),
            "subscriptions": len(found),
            "consumers": sums["consumers"],
            "backlog": sums["backlog"],
            "late": None if late is None else _subscription(late, waiting),
        }
    return row


def _delivered(subscription: Subscription) -> int:
    return subscription.messages_out + sum(each.messages_out for each in subscription.consumers)


def _subscription(subscription: Subscription, waiting: WaitingTimes) -> Json:
    """Return why a subscription waits, in a few words."""
    reason = "" if subscription.reason is None else subscription.reason.value
    return {"subscription": subscription.name, "reason": reason, "since": waiting.since(subscription)}


def _without_effect(broker: Broker) -> Iterator[tuple[str, WithoutEffect]]:
    """Yield the settings that have no effect, with their places."""
    yield from broker.metadata.without_effect
    known = documented_keys()
    yield from ((name, SETTING) for name in broker.cluster.dynamic.values if name not in known)
    for topic in islice(broker.topics.loaded.values(), LOOKED_AT):
        replicated = (each.name for each in topic.subscriptions.values() if each.replicated)
        yield from ((f"{topic.name}/{name}", REPLICATED) for name in replicated)


@route(
    "GET", "/pulsarium/topic/{domain}/{tenant}/{namespace}/{topic}", needs=topic_operation("GET_STATS"), anywhere=True
)
async def get_topic(call: Call) -> HttpReply:
    """Return a topic, its producers, subscriptions and consumers, and why each subscription waits.

    With Accept: text/event-stream, send the answer again when it changes. A topic that is not loaded stays so.
    """
    name = call.topic_anywhere
    waiting = WaitingTimes()
    return await shown(call, lambda: _topic(call, name, waiting))


async def _topic(call: Call, name: TopicName, waiting: WaitingTimes) -> Json:
    broker, slice_ = call.broker, Slice()
    answer: Json = {"name": str(name)}
    partitions = broker.metadata.partitions_of(name)
    if partitions:
        parts = [await _row(broker, str(name.partition(index)), 0, waiting, slice_) for index in range(partitions)]
        return {**answer, "partitions": parts}
    scalable = broker.cluster.scalable.find(name) if name.domain == SCALABLE else None
    if scalable is not None:
        segments = []
        for segment in sorted(scalable.layout.segments.values(), key=lambda each: each.id):
            row = await _row(broker, str(scalable.segment_topic(segment)), 0, waiting, slice_)
            span = {"start": segment.start, "end": segment.end, "parents": list(segment.parents)}
            segments.append({**row, "id": segment.id, "active": segment.active, **span})
        explained = explain_scaling(scalable, broker.cluster.controllers.find(scalable)).text
        return {**answer, "epoch": scalable.layout.epoch, "scaling": explained, "segments": segments}
    if not (broker.topics.exists(name) or name.is_segment):
        raise AdminError(404, f"Topic {name} not found")
    topic: Topic | None = broker.topics.loaded.get(str(name))
    if topic is None:
        return {**answer, "loaded": False}
    return {**answer, "loaded": True, **await summary_of(topic, waiting, slice_)}
