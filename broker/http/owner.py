"""Who answers for a topic: this broker, or another, to which the caller is sent on (307)."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from pulsarium.broker.broker import Broker
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.reply import Reply

HOST = re.compile(r"([-.\w]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?", re.ASCII)


def elsewhere(call: Call) -> Reply | None:
    """The way to the broker that serves the topic of the path; None when that is this one, or nobody has to be asked:
    any broker answers for a partitioned topic, and for one whose name or namespace is wrong."""
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


def redirect(call: Call, to: Broker, *, authoritative: bool) -> Reply:
    """307 to the same path of another broker; `authoritative`: it is to serve the topic, without asking further."""
    query = urlencode({**call.query, "authoritative": str(authoritative).lower()})
    return Reply(307, headers={"Location": f"{web_url(call, to)}{call.path}?{query}"})


def web_url(call: Call, broker: Broker) -> str:
    """Where the caller reaches a broker's HTTP: this one where it did, through port maps and tunnels too."""
    scheme, port = ("https", broker.http_port_tls) if call.secure else ("http", broker.http_port)
    host = reached_by(call)
    if host is None:
        return f"{scheme}://{broker.advertised_address}:{port}"
    return f"{scheme}://{host[0]}" if broker is call.broker else f"{scheme}://{host[1]}:{port}"


def reached_by(call: Call) -> re.Match[str] | None:
    """The Host that the caller reached this broker by (group 1: without port); None when addresses are configured."""
    if call.broker.config.advertisedAddress or call.broker.config.advertisedListeners:
        return None
    return HOST.fullmatch(call.headers.get("host", ""))
