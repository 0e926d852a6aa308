"""/admin/v2/namespaces: the subscriptions of all topics of a namespace, or of one of its bundles, at once."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.admin.http.call import Call
from pulsarium.broker.admin.http.errors import AdminError, unexpected_body
from pulsarium.broker.admin.http.registry import route
from pulsarium.broker.admin.http.reply import Reply, done
from pulsarium.broker.admin.namespace.owned import named_bundle, names_in
from pulsarium.broker.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.auth.needs import namespace_operation
from pulsarium.broker.model.subscription.skipping import skip_all
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.proto.system_topics import is_system_topic
from pulsarium.proto.topic_name import TopicName

BUNDLE = f"{NAMESPACE}/{{bundle}}"
CLEAR = namespace_operation("CLEAR_BACKLOG")
UNSUBSCRIBE = namespace_operation("UNSUBSCRIBE")
REPLICATOR_PREFIX = "pulsar.repl"


@route("POST", f"{NAMESPACE}/clearBacklog", f"{BUNDLE}/clearBacklog", needs=CLEAR)
def clear_backlog(call: Call) -> Reply:
    """Acknowledge everything that there is, for everybody."""
    for topic in _topics(call):
        for subscription in topic.subscriptions.values() if isinstance(topic, PersistentTopic) else ():
            skip_all(subscription)
    return done()


@route("POST", f"{NAMESPACE}/clearBacklog/{{subscription}}", f"{BUNDLE}/clearBacklog/{{subscription}}", needs=CLEAR)
def clear_backlog_of_subscription(call: Call) -> Reply:
    """The same for one subscription, which each topic must have; a system topic only in Pulsar."""
    name, strict = call.parameter("subscription"), call.broker.profile.own_faults_are_shown
    topics = [topic for topic in _topics(call) if strict or not is_system_topic(topic.name)]
    found = [topic.subscriptions.get(name) for topic in topics if isinstance(topic, PersistentTopic)]
    for subscription in found:
        if subscription is not None:
            skip_all(subscription)
    if None in found:
        raise unexpected_body("Cursor not found", AdminError(404, f"Subscription {name} not found"))
    return done()


@route("POST", f"{NAMESPACE}/unsubscribe/{{subscription}}", f"{BUNDLE}/unsubscribe/{{subscription}}", needs=UNSUBSCRIBE)
def unsubscribe(call: Call) -> Reply:
    """Delete a subscription wherever it is; nowhere if somebody uses it."""
    name = call.parameter("subscription")
    if name.startswith(REPLICATOR_PREFIX):
        raise AdminError(412, "Cannot unsubscribe a replication cursor")
    found = [topic for topic in _topics(call) if name in topic.subscriptions]
    if any(topic.subscriptions[name].consumers for topic in found):
        raise AdminError(412, "Subscription has active connected consumers")
    for topic in found:
        topic.unsubscribe(name)
    return done()


def _topics(call: Call) -> Iterator[Topic]:
    """The topics of the namespace, or bundle, of the path."""
    broker, namespace = call.broker, call.namespace
    if "bundle" in call.parameters:
        names = names_in(broker, namespace, named_bundle(call))
    elif namespace in broker.metadata.namespaces:
        names = broker.topics.names(namespace, non_persistent=True)
    else:
        raise AdminError(404, "Namespace not found")
    return (broker.topics.find(TopicName.parse(name)) for name in names)
