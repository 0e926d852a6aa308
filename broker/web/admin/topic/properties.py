"""/admin/v2/persistent: user-defined properties of topics and subscriptions."""

from __future__ import annotations

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.jackson.kinds import STRINGS
from pulsarium.broker.model.cursor.records import SubscriptionProperties
from pulsarium.broker.model.ledger.interceptors import INDEX_PROPERTY
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.web.admin.topic.topics import find_persistent, no_subscription, where_subscribed
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, unexpected_body
from pulsarium.broker.web.http.registry import of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply
from pulsarium.proto.special_names import INTERNAL_PROPERTIES
from pulsarium.proto.topic_name import TopicName


@route("GET", *of_topic("/properties"), needs=topic_operation("GET_METADATA"))
def get_properties(call: Call) -> HttpReply:
    """Return the properties of a topic."""
    name = _persistent(call)
    info = call.broker.metadata.partitioned.get(str(name))
    if info is not None:
        return json_reply(info.get("properties") or {})
    return json_reply(ledger_properties(find_persistent(call)))


def ledger_properties(topic: PersistentTopic) -> dict[str, str]:
    """Return the properties of a topic's managed ledger, including those of interceptors."""
    index = {INDEX_PROPERTY: "-1"} if topic.stores.config.appends_index else {}
    return {**index, **topic.ledger.properties}


@route("PUT", *of_topic("/properties"), needs=topic_operation("UPDATE_METADATA"))
def put_properties(call: Call) -> HttpReply:
    """Set properties of a topic. Other properties stay."""
    sent = call.read(STRINGS) or {}
    return _change(call, _persistent(call), dict(sent))


@route("DELETE", *of_topic("/properties"), needs=topic_operation("DELETE_METADATA"))
def delete_property(call: Call) -> HttpReply:
    """Remove a property."""
    name, key = _persistent(call), call.query.get("key")
    if key is None:
        raise unexpected_body('Cannot invoke "Object.hashCode()" because "key" is null')
    return _change(call, name, {key: None})


def _persistent(call: Call) -> TopicName:
    name = call.topic
    if not name.is_persistent:
        raise AdminError(406, "Need to provide a persistent topic name")
    return name


def _change(call: Call, name: TopicName, changes: dict[str, str | None]) -> HttpReply:
    metadata = call.broker.metadata
    info = metadata.partitioned.get(str(name))
    if info is None:
        if not call.broker.topics.exists(name):
            return HttpReply(404)
        find_persistent(call).ledger.set_properties(changes)
        return done()
    merged = {**(info.get("properties") or {}), **changes}
    kept = {key: value for key, value in merged.items() if value is not None}
    metadata.put_partitioned(name, info["partitions"], kept)
    return done()


@route("GET", *of_topic("/subscription/{subscription}/properties"), needs=topic_operation("CONSUME"))
def get_subscription_properties(call: Call) -> HttpReply:
    """Return the properties of a subscription, merged over all partitions."""
    subscriptions, everywhere = where_subscribed(call)
    if not everywhere:
        raise no_subscription(call.encoded_parameter("subscription"), call.topic)
    found: dict[str, str] = {}
    for subscription in subscriptions:
        found |= subscription.cursor.cursor_properties
    return json_reply(found)


@route("PUT", *of_topic("/subscription/{subscription}/properties"), needs=topic_operation("SUBSCRIBE"))
def put_subscription_properties(call: Call) -> HttpReply:
    """Replace the properties of a subscription."""
    properties = call.read(STRINGS) or {}
    subscriptions, everywhere = where_subscribed(call)
    if subscriptions and any(key.startswith(INTERNAL_PROPERTIES) for key in properties):
        raise unexpected_body(f"The property key can't start with {INTERNAL_PROPERTIES}")
    for subscription in subscriptions:
        subscription.cursor.cursor_properties = SubscriptionProperties(properties)
        subscription.cursor.save()
    if not everywhere:
        raise no_subscription(call.encoded_parameter("subscription"), call.topic)
    return done()
