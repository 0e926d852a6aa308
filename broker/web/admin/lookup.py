"""/lookup/v2: look up the broker of a topic."""

from __future__ import annotations

from pulsarium.broker.auth.needs import namespace_operation, topic_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.model.namespace.policies import bundle_of
from pulsarium.broker.web.admin.namespace.bundles import boundaries_of
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError
from pulsarium.broker.web.http.owner import reached_by, redirect, web_url
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, json_reply, text_reply
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import PERSISTENT, TopicName

LOOKUP = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"
LISTENER_HEADER = "x-pulsar-listenername"


@route("GET", LOOKUP, needs=topic_operation("LOOKUP"), anywhere=True)
def lookup(call: Call) -> HttpReply:
    """Return the URLs of a topic's broker. The topic exists or clients may create it, and nothing is created."""
    name, asked = _topic(call), call.broker
    found = asked.cluster.ownership.find(asked, name, authoritative=call.flag("authoritative"))
    if found is None:
        raise AdminError(404, "Namespace not found")
    if not _may_be_used(asked, name):
        raise AdminError(404, f"Topic not found {name}")
    if found.redirect:
        return redirect(call, found.broker, authoritative=found.authoritative)
    listener = call.query.get("listenerName") or call.headers.get(LISTENER_HEADER, "")
    urls = found.broker.listener(listener)
    if urls is None:
        raise AdminError(500, f"the broker do not have {listener} listener")
    host = reached_by(call)
    if host:
        urls = found.broker.listener_at(host[1])
    web = urls._replace(**{"https" if call.secure else "http": web_url(call, found.broker)})
    tls = {"brokerUrlTls": urls.pulsar_ssl, "httpUrlTls": web.https}
    plain = {"brokerUrl": urls.pulsar, "httpUrl": web.http, "nativeUrl": urls.pulsar}
    answer = {**{name: url for name, url in {**plain, **tls}.items() if url}, "brokerUrlSsl": ""}
    return json_reply({**answer, "brokerId": found.broker.web_address} if asked.profile.lookup_names_broker else answer)


@route("GET", f"{LOOKUP}/bundle", needs=namespace_operation("GET_BUNDLE"), anywhere=True)
def get_bundle(call: Call) -> HttpReply:
    """Return the bundle that a topic falls into."""
    name, broker = _topic(call), call.broker
    return text_reply(bundle_of(boundaries_of(broker, str(name.namespace_name)), name))


def _may_be_used(broker: Broker, name: TopicName) -> bool:
    """Return whether a topic exists or clients may create it. Only a persistent topic is known to be absent."""
    if name.domain != PERSISTENT or broker.topics.exists(name):
        return True
    try:
        partitions = broker.metadata.partitions_of(name.partitioned_name)
    except InvalidTopicName:  # such as "-partition-1"
        return False
    # clients may create each partition of a topic
    return name.partition_index < partitions > 0 or broker.topics.may_auto_create(name)


def _topic(call: Call) -> TopicName:
    path = "/".join(call.parameter(part) for part in ("tenant", "namespace"))
    try:
        return TopicName.parse(f"{call.parameter('domain')}://{path}/{call.encoded_parameter('topic')}")
    except InvalidTopicName:
        raise ContainerError(500, "Request failed.") from None
