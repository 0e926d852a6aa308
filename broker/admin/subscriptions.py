"""/admin/v2/persistent and non-persistent: the subscriptions of topics."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.admin.call import Call, place, texts_of
from pulsarium.broker.admin.errors import AdminError, UnreadableBody
from pulsarium.broker.admin.registry import of_topic, route
from pulsarium.broker.admin.reply import Reply, done, json_reply
from pulsarium.broker.admin.topics import each, parts
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST, Position
from pulsarium.broker.model.topic.persistent import PersistentTopic

SUBSCRIPTION = "/subscription/{subscription}"
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


@route("GET", *of_topic("/subscriptions"))
def get_subscriptions(call: Call) -> Reply:
    """The names of a topic's subscriptions; of all partitions together."""
    return json_reply(list(dict.fromkeys(name for topic in each(call) for name in topic.subscriptions)))


@route("PUT", *of_topic(SUBSCRIPTION))
def create_subscription(call: Call) -> Reply:
    """Make a subscription, without a consumer, at a position or at the end."""
    position, properties = _read_position(call)
    if call.domain != "persistent":
        raise AdminError(400, "Create subscription on non-persistent topic can only be done through client")
    name, broker, subscription = call.topic, call.broker, call.encoded_parameter("subscription")
    if broker.metadata.partitions_of(name):
        topics = [broker.topics.find(part) for part in parts(broker, name)]
    else:
        if not broker.topics.exists(name) and not broker.topics.may_auto_create(name):
            raise AdminError(404, f"Topic {name} not found")
        topics = [broker.topics.create(name)]
    if any(subscription in topic.subscriptions for topic in topics):
        raise AdminError(409, "Subscription already exists for topic")
    for topic in topics:
        assert isinstance(topic, PersistentTopic)
        made = topic.subscribe(
            subscription,
            earliest=position == EARLIEST,
            properties=properties,
            replicated=call.flag("replicated"),
        )
        if position not in (EARLIEST, LATEST):
            made.cursor.reset(position)
    return done()


@route("DELETE", *of_topic(SUBSCRIPTION))
def delete_subscription(call: Call) -> Reply:
    """Delete a subscription; with connected consumers only with force=true."""
    subscription, force = call.encoded_parameter("subscription"), call.flag("force")
    topics = [topic for topic in each(call) if subscription in topic.subscriptions]
    if not topics:
        if call.domain != "persistent" and call.broker.metadata.partitions_of(call.topic):
            raise AdminError(404, "Subscription not found")
        raise AdminError(404, f"Subscription {subscription} not found for topic {call.topic}")
    if call.domain == "persistent" and not force and any(t.subscriptions[subscription].consumers for t in topics):
        raise AdminError(412, "Subscription has active connected consumers")
    for topic in topics:
        topic.unsubscribe(subscription)
    return done()


def _read_position(call: Call) -> tuple[Position, dict[str, str]]:
    """Where to begin: a message id, "earliest" or "latest"; and the properties of the subscription."""
    value: Any = call.json()
    if value is None or value == "latest":
        return LATEST, {}
    if value == "earliest":
        return EARLIEST, {}
    if not isinstance(value, dict):
        text = f"problem: Invalid value {value} for the position. Allowed values are [latest, earliest]"
        whole = f"Cannot construct instance of `org.apache.pulsar.client.impl.ResetCursorData`, {text}"
        raise UnreadableBody(whole + place(1, 1))
    position = Position(_long(value, "ledgerId"), _long(value, "entryId"))
    if position != EARLIEST and position.ledger_id != LATEST.ledger_id and value.get("isExcluded"):
        position = Position(position.ledger_id, position.entry_id + 1)
    return position, texts_of(value.get("properties")) or {}


def _long(value: dict[str, Any], field: str) -> int:
    number = value.get(field, 0)
    if isinstance(number, bool) or not isinstance(number, int) or not LONG_MIN <= number <= LONG_MAX:
        raise UnreadableBody(f"Cannot deserialize value of type `long` from {number!r}: {field}")
    return number
