"""/admin/v2/proxy-stats: the WebSockets of this broker, by topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import DOMAINS, route
from pulsarium.broker.web.http.reply import HttpReply, json_reply
from pulsarium.broker.web.websocket.consumer import Consumer
from pulsarium.broker.web.websocket.producer import Producer
from pulsarium.broker.web.websocket.socket import open_sockets
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

ALL = "/admin/v2/proxy-stats/stats"
TOPIC = tuple(f"/admin/v2/proxy-stats/{domain}/{{tenant}}/{{namespace}}/{{topic}}/stats" for domain in DOMAINS)


@route("GET", ALL)
def stats(call: Call) -> HttpReply:
    """Return all WebSockets by topic."""
    found: dict[str, dict[str, Any]] = {}
    for topic, kind, entry in _entries(call.broker):
        found.setdefault(topic, {"producerStats": [], "consumerStats": []})[kind].append(entry)
    return json_reply(found)


@route("GET", *TOPIC, needs=topic_operation("GET_STATS"), anywhere=True)
def stats_of_topic(call: Call) -> HttpReply:
    """Return the WebSockets of one topic."""
    domain = call.path.split("/")[4]
    try:
        text = f"{domain}://{call.parameter('tenant')}/{call.parameter('namespace')}/{call.encoded_parameter('topic')}"
        name = str(TopicName.parse(text))
    except InvalidTopicName:
        raise AdminError(412, "Topic name is not valid") from None
    found: dict[str, list[dict[str, Any]]] = {"producerStats": [], "consumerStats": []}
    for topic, kind, entry in _entries(call.broker):
        if topic == name:
            found[kind].append(entry)
    if not any(found.values()):
        raise AdminError(404, "Topic does not exist")
    return json_reply(found)


def _entries(broker: Broker) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each WebSocket: its topic, the list that the WebSocket belongs to, and its stats."""
    for socket in open_sockets(broker):
        handler = socket.handler
        if isinstance(handler, Producer):
            entry = {"remoteConnection": socket.address, "numberOfMsgPublished": handler.published}
            yield str(handler.place.topics[0]), "producerStats", entry
        elif isinstance(handler, Consumer):
            options, place = handler.options, handler.place
            entry = {
                "remoteConnection": socket.address,
                "subscriptionName": place.subscription,
                "subscriptionType": options.type,
                "subscriptionMode": "Durable" if options.durable else "NonDurable",
                "numberOfMsgDelivered": handler.delivered,
            }
            yield place.pattern or str(place.topics[0]), "consumerStats", entry
