"""The pages about topics: the list of topics, and one topic with its clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

from pulsarium.broker.auth.authorization import of_topic
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.model.scalable.explained import explain_scaling
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.console.facts import facts_of
from pulsarium.broker.web.console.listing import SORTS, Found, Query, Row, near_names
from pulsarium.broker.web.console.paces import Paces
from pulsarium.broker.web.console.stuck import reason_of
from pulsarium.broker.web.console.summary import page_of
from pulsarium.broker.web.console.watch import Watch, watch_of
from pulsarium.broker.web.http.call import Call, whole
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.live import shown
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.proto.topic_name import SCALABLE, SegmentName, TopicName

PAGE: Final = 50  # topics at once, without ?limit=
MOST: Final = 500
SHOWN_LATE: Final = 20
SHOWN_NAMESPACES: Final = 200
GET_STATS: Final = topic_operation("GET_STATS")

Json = dict[str, Any]


@route("GET", "/pulsarium/topics")
async def get_topics(call: Call) -> HttpReply:
    """Return some topics: ?filter= in names, ?namespace=, ?sort=, ?idle=false, ?system=true, ?offset=, ?limit=.

    The partitions of a topic are one row. `sort` is name, backlog, in, out, age or stuck. Idle topics have no clients,
    no backlog, and no new message for ten minutes. With Accept: text/event-stream, send the answer again when it
    changes.
    """
    sort = call.query.get("sort", "name")
    if sort not in SORTS:
        raise AdminError(400, f"sort is {sort!r}; it must be one of {', '.join(SORTS)}")
    query = Query(
        call.query.get("filter", ""),
        call.query.get("namespace", ""),
        sort,
        call.flag("idle", default=True),
        call.flag("system"),
    )
    offset, limit = number(call, "offset", 0), min(number(call, "limit", PAGE), MOST)
    return await shown(call, lambda: _topics(call, query, offset, limit))


async def _topics(call: Call, query: Query, offset: int, limit: int) -> Json:
    broker, slice_ = call.broker, Slice()
    watch = watch_of(broker)
    await watch.samples.catch_up(slice_)
    found = await watch.listing.find(query, slice_)
    late = await watch.listing.late(slice_)
    topics = await rows_of(broker, found.rows[offset : offset + limit], watch, slice_)
    return {
        **await facts_of(broker, slice_),
        "late": [{"topic": each.topic, **reason_of(each.subscription, watch.waiting)} for each in late[:SHOWN_LATE]],
        "topicCount": len(found.rows),
        **counts_of(found),
        "namespaceCounts": [
            {"name": name, "topics": topics} for name, topics in islice(found.namespaces.items(), SHOWN_NAMESPACES)
        ],
        "topics": topics,
    }


def counts_of(found: Found) -> Json:
    """Return how many topics there are of each kind."""
    return {"userTopics": found.users, "systemTopics": found.systems, "idleTopics": found.idle}


def number(call: Call, name: str, default: int) -> int:
    """Return a number of the query. Raise `AdminError` 400 for another text."""
    return whole(name, call.query.get(name, str(default)), 15)


async def rows_of(broker: Broker, rows: Iterable[Row], watch: Watch, slice_: Slice) -> list[Json]:
    """Return rows of the list."""
    at_work = await watch.listing.at_work(slice_)
    stuck = Counter(each.row for each in await watch.listing.late(slice_))
    found = []
    for row in rows:
        state = {"system": row.system, "idle": row.name not in at_work, "stuck": stuck[row.name]}
        found.append({**await row_of(broker, row.name, row.partitions, watch, slice_), **state})
    return found


async def row_of(broker: Broker, topic: str, partitions: int, watch: Watch, slice_: Slice) -> Json:
    """Return the numbers of a topic. A topic that is not loaded has no clients, and is not loaded for this."""
    samples, waiting, name = watch.samples, watch.waiting, TopicName.parse(topic)
    names = parts_of(broker, name) or [topic]
    loaded = [found_topic for each in names if (found_topic := broker.topics.loaded.get(each)) is not None]
    late, age, found, sums = None, 0, set[str](), Counter[str]()
    for each in [subscription for part in loaded for subscription in part.subscriptions.values()]:
        if late is None and waiting.is_late(each):
            late = each
        found.add(each.name)
        age = max(age, waiting.age(each))
        sums["messagesOut"] += each.messages_out + sum(consumer.messages_out for consumer in each.consumers)
        sums["consumers"] += len(each.consumers)
        sums["backlog"] += 0 if each.cursor is None else each.cursor.backlog()
        await slice_.pause()
    rates = samples.rates_of(names)
    schema = broker.schemas.latest(name)
    shown_row: Json = {
        "name": topic,
        "loaded": bool(loaded),
        "partitions": partitions,
        "schema": None if schema is None else schema.schema.type,
        "in": rates.messages_in,
        "out": rates.messages_out,
        "trend": await samples.trend(names, slice_),
        "ageMs": age,
    }
    if name.domain == SCALABLE:
        shown_row["segments"] = len(names)
    if loaded:
        shown_row |= {
            "producers": sum(len(each.producers) for each in loaded),
            "messagesIn": sum(each.messages_in for each in loaded),
            "messagesOut": sums["messagesOut"],
            "storageSize": sum(each.ledger.size for each in loaded if each.ledger is not None),
            "subscriptions": len(found),
            "consumers": sums["consumers"],
            "backlog": sums["backlog"],
            "late": None if late is None else reason_of(late, waiting),
        }
    return shown_row


def parts_of(broker: Broker, name: TopicName) -> Sequence[str]:
    """Return the topics of which a partitioned topic, or the active part of a scalable topic, consists. Others: []."""
    scalable = broker.cluster.scalable.find(name) if name.domain == SCALABLE else None
    if scalable is not None:
        return [str(scalable.segment_topic(segment)) for segment in scalable.layout.assignable()]
    return [str(name.partition(index)) for index in range(broker.metadata.partitions_of(name))]


@route("GET", "/pulsarium/topic/{domain}/{tenant}/{namespace}/{topic}", needs=GET_STATS, anywhere=True)
async def get_topic(call: Call) -> HttpReply:
    """Return a topic, its producers, subscriptions and consumers, and why each subscription waits.

    Those of a partitioned or scalable topic are sums over its parts. With Accept: text/event-stream, send the answer
    again when it changes. A topic that is not loaded stays so.
    """
    broker, name = call.broker, call.topic_anywhere
    if kind_of(broker, name) is None:
        return json_reply({"reason": f"Topic {name} not found", "near": await _near(call, name)}, 404)
    paces = Paces(call.rates, broker.clock.machine)
    return await shown(call, lambda: _topic(call, name, paces))


async def _topic(call: Call, name: TopicName, paces: Paces) -> Json:
    broker, slice_ = call.broker, Slice()
    watch = watch_of(broker)
    await watch.samples.catch_up(slice_)
    answer: Json = {"name": str(name), "kind": kind_of(broker, name)}
    partitions = broker.metadata.partitions_of(name)
    if partitions:
        names = [str(name.partition(index)) for index in range(partitions)]
        rows = [await row_of(broker, each, 0, watch, slice_) for each in names]
        parts = dict(zip(names, range(partitions), strict=True))
        return {**answer, **await page_of(broker, parts, watch, paces, slice_), "partitions": rows}
    scalable = broker.cluster.scalable.find(name) if name.domain == SCALABLE else None
    if scalable is not None:
        segments, of_segments = [], dict[str, int | str]()
        for segment in sorted(scalable.layout.segments.values(), key=lambda each: each.id):
            topic = scalable.segment_topic(segment)
            of_segments[str(topic)] = SegmentName(name, segment.start, segment.end, segment.id).descriptor
            row = await row_of(broker, str(topic), 0, watch, slice_)
            span = {"start": segment.start, "end": segment.end, "parents": list(segment.parents)}
            segments.append({**row, "id": segment.id, "active": segment.active, **span})
        explained = explain_scaling(scalable, broker.cluster.controllers.find(scalable)).text
        layout = {"epoch": scalable.layout.epoch, "scaling": explained, "segments": segments}
        return {**answer, **await page_of(broker, of_segments, watch, paces, slice_), **layout}
    if answer["kind"] is None:
        raise AdminError(404, f"Topic {name} not found")
    if name.is_partition and broker.metadata.partitions_of(name.partitioned_name):
        answer["partitionOf"] = str(name.partitioned_name)
    return {**answer, **await page_of(broker, {str(name): None}, watch, paces, slice_)}


async def _near(call: Call, name: TopicName) -> list[str]:
    """Return topics with a name close to a missing one that the caller may look at."""
    slice_, authorization = Slice(), call.broker.cluster.authorization
    near = await near_names(str(name), await watch_of(call.broker).listing.rows(slice_), slice_)
    if authorization is None:
        return near
    return [each for each in near if authorization.allows(call.principal, GET_STATS, of_topic(TopicName.parse(each)))]


def kind_of(broker: Broker, name: TopicName) -> str | None:
    """Return the kind of a topic in a word, or None for a topic that does not exist."""
    if broker.metadata.partitions_of(name):
        return "partitioned"
    if name.is_segment:
        return "segment"
    if name.is_scalable and broker.cluster.scalable.find(name) is not None:
        return "scalable"
    if not broker.topics.exists(name):
        return None
    if not name.is_persistent:
        return "nonPersistent"
    return "partition" if name.is_partition else "topic"
