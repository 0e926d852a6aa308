"""/admin/v2/scalable: the subscriptions of a scalable topic."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.model.ledger.position import Position
from pulsarium.broker.model.scalable.registrations import QUEUE, STREAM
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.broker.model.subscription.persistent import PersistentSubscription
from pulsarium.broker.model.subscription.skip import skip_all
from pulsarium.broker.model.topic.persistent import PersistentTopic
from pulsarium.broker.web.admin.scalable.routes import TOPIC, controller_of, scalable_route
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError
from pulsarium.broker.web.http.reply import NAMES, HttpReply, done

SUBSCRIPTION = f"{TOPIC}/subscriptions/{{subscription}}"


@scalable_route("PUT", SUBSCRIPTION)
def create(call: Call) -> HttpReply:
    """Create a subscription, with a cursor at the earliest message of each active segment."""
    kind = call.query.get("type", STREAM)
    if kind not in (STREAM, QUEUE):  # as Jersey refuses the value of an enum
        return HttpReply(404)
    controller = controller_of(call)
    subscription = call.parameter("subscription")
    controller.registrations.create(subscription, kind)
    for segment in controller.topic.layout.active():
        topic = controller.topic.opened_segment(segment)
        if topic is not None and subscription not in topic.subscriptions:
            topic.subscribe(subscription, earliest=True)
    return done()


@scalable_route("DELETE", SUBSCRIPTION)
def delete(call: Call) -> HttpReply:
    """Delete a subscription with its registrations and cursors. Clients are told nothing, and keep cursors in use."""
    controller = controller_of(call)
    name = call.parameter("subscription")
    controller.registrations.delete(name)
    for topic, subscription in _on_segments(controller.topic, name):
        if not subscription.consumers:
            topic.unsubscribe(name)
    return done()


@scalable_route("POST", f"{SUBSCRIPTION}/seek")
def seek(call: Call) -> HttpReply:
    """Move a subscription to the first message that was published at a time or later, on each segment."""
    text = call.query.get("timestamp", "0")
    try:
        time_ms = int(text)
    except ValueError:
        raise ContainerError(404, NAMES[404]) from None
    controller = controller_of(call)
    for topic, subscription in _on_segments(controller.topic, call.parameter("subscription")):
        position = topic.position_at(time_ms)
        _reset(subscription, position)
    return done()


@scalable_route("POST", f"{SUBSCRIPTION}/skip-all")
def skip(call: Call) -> HttpReply:
    """Skip the whole backlog of a subscription on each segment."""
    controller = controller_of(call)
    for _, subscription in _on_segments(controller.topic, call.parameter("subscription")):
        skip_all(subscription)
    return done()


def _on_segments(topic: ScalableTopic, name: str) -> Iterator[tuple[PersistentTopic, PersistentSubscription]]:
    """Yield a subscription on each segment that has it, sealed ones too."""
    for segment in topic.layout.assignable():
        found = topic.opened_segment(segment)
        subscription = None if found is None else found.subscriptions.get(name)
        if found is not None and subscription is not None:
            yield found, subscription


def _reset(subscription: PersistentSubscription, position: Position) -> None:
    if subscription.resetting:
        raise AdminError(412, "Failed to fence subscription")
    subscription.reset_now(lambda: subscription.cursor.reset(position))
