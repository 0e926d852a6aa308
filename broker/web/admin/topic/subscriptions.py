"""/admin/v2: subscriptions of topics, and their replication status, which is stored only."""

from __future__ import annotations

from pulsarium.broker.auth.needs import topic_operation
from pulsarium.broker.jackson.kinds import BOOL
from pulsarium.broker.model.cursor.records import SubscriptionProperties
from pulsarium.broker.model.ledger.position import EARLIEST, LATEST
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.topic.base import Topic
from pulsarium.broker.web.admin.topic.positions import read_start
from pulsarium.broker.web.admin.topic.topics import each, no_subscription, parts, where_subscribed
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import SUBSCRIPTION, of_topic, route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply


@route("GET", *of_topic("/subscriptions"), needs=topic_operation("GET_SUBSCRIPTIONS"))
def get_subscriptions(call: Call) -> HttpReply:
    """Return the names of a topic's subscriptions, on any partition."""
    return json_reply(list(dict.fromkeys(name for topic in each(call) for name in topic.cursor_names)))


@route("PUT", *of_topic(SUBSCRIPTION), needs=topic_operation("SUBSCRIBE"))
def create_subscription(call: Call) -> HttpReply:
    """Create a subscription without a consumer, at a position or at the end, on partitions that lack it."""
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
            broker.metadata.check_partition(name)
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
            properties=SubscriptionProperties(properties),
            replicated=call.flag("replicated"),
        )
        if position not in (EARLIEST, LATEST):
            made.move(position)
    return done()


@route("DELETE", *of_topic(SUBSCRIPTION), needs=topic_operation("UNSUBSCRIBE"))
def delete_subscription(call: Call) -> HttpReply:
    """Delete a subscription. Refuse while consumers are connected, unless force=true."""
    name, force = call.encoded_parameter("subscription"), call.flag("force")
    unless_busy = call.domain == "persistent" and not force
    refusals = [refusal for topic in each(call) if (refusal := _delete(call, topic, name, unless_busy=unless_busy))]
    if refusals:
        raise refusals[0]
    return done()


def _delete(call: Call, topic: Topic, name: str, *, unless_busy: bool) -> AdminError | None:
    """Delete the subscription of one topic or partition, or return why it stays.

    As in Pulsar, each partition deletes its own, whatever the others answer.
    """
    subscription = topic.subscriptions.get(name)
    if subscription is None:
        is_partitioned = bool(call.broker.metadata.partitions_of(call.topic))
        return AdminError(404, "Subscription not found") if is_partitioned else no_subscription(name, call.topic)
    if unless_busy and subscription.consumers:
        return AdminError(412, "Subscription has active connected consumers")
    topic.unsubscribe(name)
    return None


STATUS = "/subscription/{subscription}/replicatedSubscriptionStatus"


@route("GET", *of_topic(STATUS), needs=topic_operation("GET_REPLICATED_SUBSCRIPTION_STATUS"))
def get_replicated(call: Call) -> HttpReply:
    """Return whether the subscription is replicated, by topic or partition."""
    if call.domain != "persistent":
        raise AdminError(405, "Cannot get replicated subscriptions on non-persistent topics")
    name, found = call.encoded_parameter("subscription"), {}
    for topic in each(call):
        subscription = topic.subscriptions.get(name)
        if not isinstance(subscription, PersistentSubscription):
            raise no_subscription(name, topic.name)
        found[str(topic.name)] = subscription.replicated
    return json_reply(found)


@route("POST", *of_topic(STATUS), needs=topic_operation("SET_REPLICATED_SUBSCRIPTION_STATUS"))
def set_replicated(call: Call) -> HttpReply:
    """Set whether the subscription is replicated."""
    replicated = call.read(BOOL)
    if call.domain != "persistent":
        raise AdminError(405, "Cannot enable/disable replicated subscriptions on non-persistent topics")
    found, everywhere = where_subscribed(call)
    for subscription in found:
        subscription.set_replicated(replicated)
    if everywhere:
        return done()
    if call.broker.metadata.partitions_of(call.topic):
        raise AdminError(404, "Topic or subscription not found")
    raise no_subscription(call.encoded_parameter("subscription"), call.topic)
