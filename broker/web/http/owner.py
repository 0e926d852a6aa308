"""Find the broker that serves a topic, and redirect callers there (307)."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from pulsarium.broker.cluster import Broker
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.reply import HttpReply

HOST = re.compile(r"([-.\w]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?", re.ASCII)


def elsewhere(call: Call) -> HttpReply | None:
    """Return the redirect to the broker that serves the topic of the path, or None if this broker may answer.

    Every broker answers for a partitioned topic, and for a wrong name or namespace.
    """
    broker = call.broker
    try:
        name = call.topic_anywhere
    except AdminError:
        return None
    broker.metadata.looked_up(str(name.namespace_name))
    if len(broker.cluster.brokers) == 1 or broker.metadata.partitions_of(name):
        return None
    found = broker.cluster.ownership.find(broker, name, authoritative=call.flag("authoritative"))
    if found is None or found.broker is broker:
        return None
    return redirect(call, found.broker, authoritative=broker is broker.cluster.ownership.leader)


def redirect(call: Call, to: Broker, *, authoritative: bool) -> HttpReply:
    """Return a 307 to the same path of another broker. `authoritative`: that broker must serve the topic itself."""
    query = urlencode({**call.query, "authoritative": str(authoritative).lower()})
    return HttpReply(307, headers={"Location": f"{web_url(call, to)}{call.path}?{query}"})


def web_url(call: Call, broker: Broker) -> str:
    """Return the web URL of a broker for the caller.

    This broker keeps the caller's own address, through port maps and tunnels.
    """
    scheme, port = ("https", broker.http_port_tls) if call.secure else ("http", broker.http_port)
    host = reached_by(call)
    if host is None:
        return f"{scheme}://{broker.advertised_address}:{port}"
    return f"{scheme}://{host[0]}" if broker is call.broker else f"{scheme}://{host[1]}:{port}"


def reached_by(call: Call) -> re.Match[str] | None:
    """Return the Host that the caller reached this broker by (group 1: without port).

    Return None when addresses are configured.
    """
    if call.broker.config.advertisedAddress or call.broker.config.advertisedListeners:
        return None
    return HOST.fullmatch(call.headers.get("host", ""))
