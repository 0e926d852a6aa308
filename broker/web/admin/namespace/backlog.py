"""/admin/v2/namespaces: subscriptions of all topics of a namespace or of a bundle."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.auth.needs import namespace_operation
from pulsarium.broker.model.subscription.skip import skip_all
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.net.slices import Slice
from pulsarium.broker.web.admin.namespace.bundles import BUNDLE, named_bundle, names_in
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done
from pulsarium.proto.special_names import REPLICATORS, is_system_topic
from pulsarium.proto.topic_name import TopicName

CLEAR = namespace_operation("CLEAR_BACKLOG")
UNSUBSCRIBE = namespace_operation("UNSUBSCRIBE")


@route("POST", f"{NAMESPACE}/clearBacklog", f"{BUNDLE}/clearBacklog", needs=CLEAR)
async def clear_backlog(call: Call) -> HttpReply:
    """Clear the backlog of all subscriptions."""
    slice_ = Slice()
    for topic in _topics(call):
        if isinstance(topic, PersistentTopic):
            for name in list(topic.subscriptions):
                _clear(topic, name)
                await slice_.pause()
    return done()


@route("POST", f"{NAMESPACE}/clearBacklog/{{subscription}}", f"{BUNDLE}/clearBacklog/{{subscription}}", needs=CLEAR)
async def clear_backlog_of_subscription(call: Call) -> HttpReply:
    """Clear the backlog of one subscription, which every persistent topic needs."""
    name = call.parameter("subscription")
    slice_, lacking = Slice(), False
    for topic in _topics(call):
        if isinstance(topic, PersistentTopic):
            lacking |= not _clear(topic, name)
            await slice_.pause()
    if lacking:
        raise unexpected_body("Cursor not found", AdminError(404, f"Subscription {name} not found"))
    return done()


@route("POST", f"{NAMESPACE}/unsubscribe/{{subscription}}", f"{BUNDLE}/unsubscribe/{{subscription}}", needs=UNSUBSCRIBE)
async def unsubscribe(call: Call) -> HttpReply:
    """Delete a subscription from all topics. Refuse if a consumer is connected to any of them."""
    name = call.parameter("subscription")
    if name.startswith(REPLICATORS):
        raise AdminError(412, "Cannot unsubscribe a replication cursor")
    slice_, found = Slice(), []
    for topic in _topics(call):
        if name in topic.subscriptions:
            found.append(topic)
        await slice_.pause()
    if any(topic.subscriptions[name].consumers for topic in found if name in topic.subscriptions):
        raise AdminError(412, "Subscription has active connected consumers")
    for topic in found:
        if not topic.closed and name in topic.subscriptions:
            topic.unsubscribe(name)
        await slice_.pause()
    return done()


def _clear(topic: PersistentTopic, name: str) -> bool:
    """Acknowledge the backlog of a subscription. Return whether the topic has that subscription."""
    subscription = topic.subscriptions.get(name)
    if subscription is not None and not topic.closed:
        skip_all(subscription)
    return subscription is not None


def _topics(call: Call) -> Iterator[Topic]:
    """Yield the topics of the namespace, or bundle, of the path, without system topics and topics deleted meanwhile."""
    broker, namespace = call.broker, call.namespace
    if "bundle" in call.parameters:
        names = names_in(broker, namespace, named_bundle(call))
    elif namespace in broker.metadata.namespaces:
        names = broker.topics.names(namespace, non_persistent=True)
    else:
        raise AdminError(404, "Namespace not found")
    parsed = map(TopicName.parse, names)
    return (broker.topics.find(name) for name in parsed if broker.topics.exists(name) and not is_system_topic(name))
