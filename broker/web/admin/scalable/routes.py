"""Declare routes of scalable topics, which brokers have since 5.0. Find the topic of a path, and its controller."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.auth.needs import SUPERUSER, Needs
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.model.scalable.controller import Controller
from pulsarium.broker.model.scalable.topics import ScalableTopic
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError, Elsewhere, unexpected_body
from pulsarium.broker.web.http.owner import redirect
from pulsarium.broker.web.http.registry import H, Offered, route
from pulsarium.broker.web.http.reply import NAMES

NAMESPACE = "/admin/v2/scalable/{tenant}/{namespace}"
TOPIC = f"{NAMESPACE}/{{topic}}"


def since_5_0(profile: Profile) -> bool:
    """Return whether the profile knows scalable topics."""
    return profile.scalable_topics


def since_5_0_1(profile: Profile) -> bool:
    """Return whether the profile has the routes that 5.0.1 added."""
    return profile.entry_buckets


def scalable_route(
    method: str, *paths: str, needs: Needs = SUPERUSER, offered: Offered = since_5_0
) -> Callable[[H], H]:
    """Make a function the handler of `method` on each of `paths`. Every broker answers.

    With scalableTopicsEnabled=false the routes do not exist, except in 5.0.0-M1.
    """
    return route(method, *paths, needs=needs, anywhere=True, offered=offered, first=_check_enabled)


def _check_enabled(call: Call) -> None:
    if not call.broker.config.scalableTopicsEnabled and since_5_0_1(call.broker.profile):
        raise ContainerError(404, NAMES[404])


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
