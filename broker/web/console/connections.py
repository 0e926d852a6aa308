"""The page of all connections: which clients there are, what they do, and what the lab does to them."""

from __future__ import annotations

from typing import Any, Final

from pulsarium.broker.cluster import Connection
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.live import shown
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply

MOST: Final = 500
NAMED: Final = 5  # topics of a connection

Json = dict[str, Any]


@route("GET", "/pulsarium/connections")
async def get_connections(call: Call) -> HttpReply:
    """Return the connections of all brokers whose address, client, role or topics contain ?filter=.

    With Accept: text/event-stream, send the answer again when it changes.
    """
    part = call.query.get("filter", "")
    return await shown(call, lambda: _connections(call, part))


async def _connections(call: Call, part: str) -> Json:
    slice_, rows, count = Slice(), list[Json](), 0
    sessions = [session for broker in call.broker.cluster.brokers for session in broker.sessions]
    for session in sorted(sessions, key=lambda each: each.number):
        topics = _topics(session)
        about = (session.address, session.client_version, session.role or "", *topics)
        if any(part in text for text in about):
            count += 1
            if len(rows) < MOST:
                rows.append(_row(session, topics))
        await slice_.pause()
    return {"connections": rows, "count": count}


def _topics(session: Connection) -> list[str]:
    """Return the topics of a connection. Partitions are those of their partitioned topic."""
    produced = (each.topic.name for each in session.producers.values())
    consumed = (each.subscription.topic.name for each in session.consumers.values())
    return sorted({str(name.partitioned_name) for names in (produced, consumed) for name in names})


def _row(session: Connection, topics: list[str]) -> Json:
    kind = "websocket" if session.over_websocket else "proxy" if session.through_proxy else "binary"
    return {
        "id": session.number,
        "address": session.address,
        "client": session.client_version,
        "protocolVersion": session.protocol_version,
        "sinceMs": session.since_ms,
        "role": session.role,
        "kind": kind,
        "tls": session.secure,
        "producers": len(session.producers),
        "consumers": len(session.consumers),
        "topics": topics[:NAMED],
        "topicCount": len(topics),
        "inBytes": session.bytes_in,
        "outBytes": session.bytes_out,
        "findings": session.findings,
        "faultHits": session.fault_hits,
        "paused": session.paused_by or None,
    }
