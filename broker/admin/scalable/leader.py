"""Find the scalable topic of a path, and the controller of the topic."""

from __future__ import annotations

from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import AdminError, Elsewhere, unexpected_body
from pulsarium.broker.http.owner import redirect
from pulsarium.broker.model.scalable.controller import Controller
from pulsarium.broker.model.scalable.topics import ScalableTopic


def topic_of(call: Call) -> ScalableTopic:
    """Return the scalable topic of a path. Raise `AdminError` 404 when it does not exist."""
    name = call.topic_anywhere
    found = call.broker.cluster.scalable.find(name)
    if found is None:
        raise AdminError(404, f"Scalable topic not found: {name}")
    return found


def controller_of(call: Call) -> Controller:
    """Return the controller of the path's topic, which this broker leads if no other broker does.

    Raise `Elsewhere` with the redirect to the broker that leads the topic. Pulsar answers 500 for an absent topic.
    """
    name, cluster = call.topic_anywhere, call.broker.cluster
    topic = cluster.scalable.find(name)
    if topic is None:
        absent = AdminError(404, f"Scalable topic not found: {name}")
        raise unexpected_body(f"Failed to initialize controller for {name}", absent)
    leader = topic.controller
    if leader is not None and leader.alive and leader is not call.broker:
        raise Elsewhere(redirect(call, leader, authoritative=True))
    return cluster.controllers.lead(topic, call.broker)
