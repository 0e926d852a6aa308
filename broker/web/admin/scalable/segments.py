"""/admin/v2/segments: create, terminate and delete single segments, and move the subscriptions on them."""

from __future__ import annotations

from pulsarium.broker.jackson.kinds import TEXT_LIST
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import skip_all
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.web.admin.scalable.routes import scalable_route, since_5_0_1
from pulsarium.broker.web.admin.topic.stats import writer_of
from pulsarium.broker.web.http.call import Call, number_in
from pulsarium.broker.web.http.errors import AdminError, ContainerError, unexpected_body
from pulsarium.broker.web.http.reply import NAMES, HttpReply, WrittenJson, done, json_reply
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import SegmentName, TopicName

SEGMENT = "/admin/v2/segments/{tenant}/{namespace}/{topic}/{descriptor}"
SUBSCRIPTION = f"{SEGMENT}/subscription/{{subscription}}"


@scalable_route("PUT", SEGMENT)
def create(call: Call) -> HttpReply:
    """Create a segment's topic with the subscriptions of the body, which begin at the first message."""
    name, subscriptions = _name(call), call.read(TEXT_LIST) or []
    topic = call.broker.topics.create(name)
    assert isinstance(topic, PersistentTopic)
    for subscription in subscriptions:
        _subscribe(topic, subscription)
    return done()


@scalable_route("DELETE", SEGMENT)
def delete(call: Call) -> HttpReply:
    """Delete a segment's topic, if it exists. With force=true, disconnect its clients."""
    call.broker.cluster.scalable.delete_segments([_name(call)], force=call.flag("force"))
    return done()


@scalable_route("POST", f"{SEGMENT}/terminate")
def terminate(call: Call) -> HttpReply:
    """Terminate a segment's topic: it accepts no more messages."""
    _topic(call, 404, "found").terminate()
    return done()


@scalable_route("PUT", SUBSCRIPTION)
def create_subscription(call: Call) -> HttpReply:
    """Create a subscription at the first message, if the segment does not have it."""
    name = _name(call)
    if not call.broker.topics.exists(name):
        raise unexpected_body("No value present", AdminError(404, f"Segment topic not found: {name}"))
    _subscribe(call.broker.topics.find_persistent(name), call.encoded_parameter("subscription"))
    return done()


@scalable_route("DELETE", SUBSCRIPTION)
def delete_subscription(call: Call) -> HttpReply:
    """Delete a subscription, if it exists, and disconnect its consumers."""
    name, subscription = _name(call), call.encoded_parameter("subscription")
    if call.broker.topics.exists(name):
        topic = call.broker.topics.find_persistent(name)
        if subscription in topic.subscriptions:
            topic.subscriptions[subscription].disconnect_consumers(None)
            topic.unsubscribe(subscription)
    return done()


@scalable_route("GET", f"{SUBSCRIPTION}/backlog")
def backlog(call: Call) -> HttpReply:
    """Return how many entries a subscription has not acknowledged."""
    return json_reply(_subscription(call, 404).cursor.backlog())


@scalable_route("POST", f"{SUBSCRIPTION}/skip-all")
def skip(call: Call) -> HttpReply:
    """Acknowledge the whole backlog of a subscription."""
    skip_all(_subscription(call, 503))
    return done()


@scalable_route("POST", f"{SUBSCRIPTION}/seek")
def seek(call: Call) -> HttpReply:
    """Reset a subscription to the first message published at or after ?timestamp=, in milliseconds since the epoch."""
    timestamp = number_in(call.query.get("timestamp", "0"), bits=64)
    subscription = _subscription(call, 503)
    if subscription.resetting:
        raise AdminError(412, "Failed for Subscription Busy: Failed to fence subscription")
    position = subscription.topic.position_at(timestamp)
    subscription.reset_now(lambda: subscription.cursor.reset(position, []))
    return done()


@scalable_route("GET", "/admin/v2/scalable/{tenant}/{namespace}/{topic}/segments/{segment}/stats", offered=since_5_0_1)
async def stats(call: Call) -> HttpReply:
    """Return the stats of one segment's topic."""
    parent, number = call.topic_anywhere, call.parameter("segment")
    topic = call.broker.cluster.scalable.get(parent)
    segment = topic.layout.segments.get(int(number)) if number.isdecimal() else None
    if segment is None:
        raise AdminError(404, f"Segment {number} not found in scalable topic {parent}")
    name = topic.segment_topic(segment)
    if not call.broker.topics.exists(name):
        raise AdminError(404, f"Segment topic not found: {name}")
    return json_reply(await writer_of(call).topic(call.broker.topics.find(name), WrittenJson()))


def _name(call: Call) -> TopicName:
    """Return the segment of the path, which need not exist."""
    try:
        return SegmentName.parse(call.topic_anywhere, call.parameter("descriptor")).topic
    except InvalidTopicName:
        raise ContainerError(500, NAMES[500]) from None


def _topic(call: Call, status: int, state: str) -> PersistentTopic:
    name = _name(call)
    if not call.broker.topics.exists(name):
        raise AdminError(status, f"Segment topic not {state}: {name}")
    return call.broker.topics.find_persistent(name)


def _subscription(call: Call, status: int) -> PersistentSubscription:
    """Return the subscription of the path. `status` answers that the segment does not exist."""
    name = call.encoded_parameter("subscription")
    found = _topic(call, status, "loaded").subscriptions.get(name)
    if not isinstance(found, PersistentSubscription):
        raise AdminError(404, f"Subscription not found on segment: {name}")
    return found


def _subscribe(topic: PersistentTopic, subscription: str) -> None:
    if subscription not in topic.subscriptions:
        topic.subscribe(subscription, earliest=True)
