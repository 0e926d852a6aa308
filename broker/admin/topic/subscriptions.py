"""/admin/v2: the subscriptions of topics, and whether they should be replicated: kept; nothing is replicated."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.admin.topic.positions import read_start
from pulsarium.broker.admin.topic.topics import each, parts
from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError
from pulsarium.broker.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.http.reply import Reply, done, json_reply
from pulsarium.broker.http.values import BOOL
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST
from pulsarium.broker.model.subscription.persistent import PersistentSubscription


@route("GET", *of_topic("/subscriptions"), needs=topic_operation("GET_SUBSCRIPTIONS"))
def get_subscriptions(call: Call) -> Reply:
    """The names of a topic's subscriptions; of all partitions together."""
    return json_reply(list(dict.fromkeys(name for topic in each(call) for name in topic.cursor_names)))


@route("PUT", *of_topic(SUBSCRIPTION), needs=topic_operation("SUBSCRIBE"))
def create_subscription(call: Call) -> Reply:
    """Make a subscription, without a consumer, at a position or at the end; on those partitions that lack it."""
    position, properties = read_start(call)
    if call.domain != "persistent":
        raise AdminError(400, "Create subscription on non-persistent topic can only be done through client")
    name, broker, subscription = call.topic, call.broker, call.encoded_parameter("subscription")
    if broker.metadata.partitions_of(name):
        topics = [broker.topics.find_persistent(part) for part in parts(broker, name)]
    else:
        if not broker.topics.exists(name):
            if not broker.topics.may_auto_create(name):
                raise AdminError(404, f"Topic {name} not found")
            broker.topics.check_partition(name)
            broker.topics.check_room(name)
        broker.topics.create(name)
        topics = [broker.topics.find_persistent(name)]
    lacking = [topic for topic in topics if subscription not in topic.subscriptions]
    if not lacking:
        raise AdminError(409, "Subscription already exists for topic")
    for topic in lacking:
        made = topic.subscribe(
            subscription,
            earliest=position == EARLIEST,
            properties=properties,
            replicated=call.flag("replicated"),
        )
        if position not in (EARLIEST, LATEST):
            made.move(position)
    return done()


@route("DELETE", *of_topic(SUBSCRIPTION), needs=topic_operation("UNSUBSCRIBE"))
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


STATUS = "/subscription/{subscription}/replicatedSubscriptionStatus"


@route("GET", *of_topic(STATUS), needs=topic_operation("GET_REPLICATED_SUBSCRIPTION_STATUS"))
def get_replicated(call: Call) -> Reply:
    """For the topic, or each partition of it, by name."""
    found = _subscriptions(call, "Cannot get replicated subscriptions on non-persistent topics")
    return json_reply({str(subscription.topic.name): subscription.replicated for subscription in found})


@route("POST", *of_topic(STATUS), needs=topic_operation("SET_REPLICATED_SUBSCRIPTION_STATUS"))
def set_replicated(call: Call) -> Reply:
    """Wish it, or not."""
    replicated = BOOL.read(call)
    for subscription in _subscriptions(call, "Cannot enable/disable replicated subscriptions on non-persistent topics"):
        subscription.set_replicated(replicated)
    return done()


def _subscriptions(call: Call, only_persistent: str) -> Iterator[PersistentSubscription]:
    if call.domain != "persistent":
        raise AdminError(405, only_persistent)
    name = call.encoded_parameter("subscription")
    for topic in each(call):
        subscription = topic.subscriptions.get(name)
        if not isinstance(subscription, PersistentSubscription):
            raise AdminError(404, f"Subscription {name} not found for topic {topic.name}")
        yield subscription
