"""/lookup/v2: which broker serves a topic."""

from __future__ import annotations

import re

from pulsarium.broker.admin.call import Call
from pulsarium.broker.admin.errors import AdminError, ContainerError
from pulsarium.broker.admin.registry import route
from pulsarium.broker.admin.reply import Reply, json_reply, text_reply
from pulsarium.broker.model.namespace.bundles import bundle_of, even_boundaries
from pulsarium.broker.model.namespace.policies import whole_policies
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import TopicName

LOOKUP = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
HOST = re.compile(r"([-.\w]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?", re.ASCII)
LISTENER_HEADER = "x-pulsar-listenername"


@route("GET", LOOKUP)
def lookup(call: Call) -> Reply:
    """The URLs of a topic's broker. Nothing is created; topics that do not exist are looked up all the same."""
    name, broker = _topic(call), call.broker
    if str(name.namespace_name) not in broker.metadata.namespaces:
        raise AdminError(404, "Namespace not found")
    listener = call.query.get("listenerName") or call.headers.get(LISTENER_HEADER, "")
    url = broker.listener_url(listener)
    if url is None:
        raise AdminError(500, f"the broker do not have {listener} listener")
    http = f"http://{broker.web_address}"
    host = HOST.fullmatch(call.headers.get("host", ""))
    if host and not broker.config.advertisedAddress and not broker.config.advertisedListeners:
        # what the client came by is what it can reach, through port maps and tunnels too
        http = f"http://{host[0]}"
        url = f"pulsar://{host[1]}:{broker.port}"
    return json_reply({"brokerUrl": url, "httpUrl": http, "nativeUrl": url, "brokerUrlSsl": ""})


@route("GET", f"{LOOKUP}/bundle")
def get_bundle(call: Call) -> Reply:
    """The range of its namespace that a topic falls into."""
    name, broker = _topic(call), call.broker
    kept = broker.metadata.namespaces.get(str(name.namespace_name))
    boundaries = even_boundaries(1) if kept is None else whole_policies(kept, broker.config)["bundles"]["boundaries"]
    return text_reply(bundle_of(boundaries, name))


def _topic(call: Call) -> TopicName:
    path = "/".join(call.parameter(part) for part in ("tenant", "namespace"))
    try:
        return TopicName.parse(f"{call.parameter('domain')}://{path}/{call.encoded_parameter('topic')}")
    except InvalidTopicName:
        raise ContainerError(500, "Request failed.") from None
