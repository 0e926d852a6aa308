"""Pages for browsers and probes: the page at /, its data, and /status.html."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from pulsarium.broker.admin.page import PAGE
from pulsarium.broker.auth.needs import ANYBODY
from pulsarium.broker.config.keys import documented_keys
from pulsarium.broker.config.version import VERSION
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.registry import route
from pulsarium.broker.http.reply import Reply, json_reply, text_reply
from pulsarium.broker.model.policy.without_effect import REPLICATED, SETTING, WithoutEffect
from pulsarium.broker.model.scalable.explained import explain_scaling
from pulsarium.broker.model.subscription.base import Subscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.slices import Slice
from pulsarium.proto.topic_name import SCALABLE, TopicName

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker

SHOWN_FACTS = 50
SHOWN = 500  # topics at once; a longer page would be hard to read
NOTHING_FROM_ELSEWHERE = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"
)


@route("GET", "/status.html", needs=ANYBODY)
def status(call: Call) -> Reply:
    """Return OK, for load balancers (statusFilePath in Pulsar)."""
    return text_reply("OK", content_type="text/html")


@route("GET", "/", needs=ANYBODY)
def page(call: Call) -> Reply:
    """Return the page about this broker."""
    headers = {"Content-Security-Policy": NOTHING_FROM_ELSEWHERE, "Cache-Control": "no-cache"}
    return Reply(200, PAGE.encode(), "text/html; charset=utf-8", headers)


@route("GET", "/pulsarium/topics")
async def overview(call: Call) -> Reply:
    """Return a summary of topics and subscriptions for the page at /. ?filter= is a part of topic names."""
    broker = call.broker
    wanted = call.query.get("filter", "")
    names = {
        name: None
        for namespace in sorted(broker.metadata.namespaces)
        for name in (*broker.cluster.scalable.names(namespace), *broker.topics.names(namespace, non_persistent=True))
        if wanted in name
    }
    slice_ = Slice()
    topics = [await _shown(broker, TopicName.parse(name), slice_) for name in list(names)[:SHOWN]]
    value = {
        "version": VERSION,
        "profile": broker.profile.name,
        "cluster": broker.config.clusterName,
        "serviceUrl": broker.assigned.service_url,
        "uptimeSeconds": (broker.clock.now_ms() - broker.started_ms) // 1000,
        "connections": len(broker.sessions),
        "withoutEffect": [
            {"where": where, "what": fact.name, "why": fact.why}
            for where, fact in islice(_without_effect(broker), SHOWN_FACTS)
        ],
        "topicCount": len(names),
        "topics": topics,
    }
    return json_reply(value)


def _without_effect(broker: Broker) -> Iterator[tuple[str, WithoutEffect]]:
    """Yield the settings that have no effect, with their places."""
    yield from broker.metadata.without_effect
    known = documented_keys()
    yield from ((name, SETTING) for name in broker.cluster.dynamic.values if name not in known)
    for topic in islice(broker.topics.loaded.values(), SHOWN):
        replicated = (each.name for each in topic.subscriptions.values() if each.replicated)
        yield from ((f"{topic.name}/{name}", REPLICATED) for name in replicated)


async def _shown(broker: Broker, name: TopicName, slice_: Slice) -> dict[str, Any]:
    """Return one topic. A scalable topic has its segments, and the state of its scaling."""
    topic = broker.cluster.scalable.find(name) if name.domain == SCALABLE else None
    if topic is None:
        return await _topic(str(name), broker.topics.loaded.get(str(name)), slice_)
    segments = []
    for segment in topic.layout.assignable()[:SHOWN]:
        of = await _topic(str(topic.segment_topic(segment)), topic.loaded_segment(segment), slice_)
        segments.append({**of, "id": segment.id, "active": segment.active, "start": segment.start, "end": segment.end})
    scaling = explain_scaling(topic, broker.cluster.controllers.find(topic)).text
    return {"name": str(name), "epoch": topic.layout.epoch, "scaling": scaling, "segments": segments}


async def _topic(name: str, topic: Topic | None, slice_: Slice) -> dict[str, Any]:
    """Return one topic, and let other tasks run between two subscriptions.

    A topic that is not loaded has no clients, and is not loaded for this.
    """
    if topic is None:
        return {"name": name, "loaded": False, "producers": [], "subscriptions": []}
    subscriptions = []
    for each in list(topic.subscriptions.values()):
        subscriptions.append(_subscription(each))
        await slice_.pause()
    return {
        "name": name,
        "loaded": True,
        "messagesIn": topic.messages_in,
        "storageSize": None if topic.ledger is None else topic.ledger.size,
        "entries": None if topic.ledger is None else topic.ledger.count,
        "producers": [
            {"name": each.name, "address": each.client.address, "client": each.client.client_version}
            for each in topic.producers.by_name.values()
        ],
        "subscriptions": subscriptions,
    }


def _subscription(subscription: Subscription) -> dict[str, Any]:
    """Return one subscription. `reason` says why no more messages are delivered."""
    backlog = reason = None
    if subscription.cursor is not None and subscription.reason is not None:
        backlog, reason = subscription.cursor.backlog(), subscription.reason.value
    consumers = list(subscription.consumers)
    return {
        "name": subscription.name,
        "type": subscription.type_name,
        "durable": subscription.durable,
        "backlog": backlog,
        "unacked": sum(each.unacked for each in consumers),
        "messagesOut": subscription.messages_out + sum(each.messages_out for each in consumers),
        "reason": reason,
        "consumers": [
            {
                "name": each.name,
                "address": each.client.address,
                "client": each.client.client_version,
                "permits": each.permits,
                "unacked": each.unacked,
            }
            for each in consumers
        ],
    }
