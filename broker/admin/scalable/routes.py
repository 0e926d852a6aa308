"""Declare routes of scalable topics, which brokers have since 5.0."""

from __future__ import annotations

from collections.abc import Callable

from pulsarium.broker.auth.needs import SUPERUSER, Needs
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.http.call import Call
from pulsarium.broker.http.errors import ContainerError
from pulsarium.broker.http.registry import H, Offered, route
from pulsarium.broker.http.reply import NAMES

NAMESPACE = "/admin/v2/scalable/{tenant}/{namespace}"
TOPIC = f"{NAMESPACE}/{{topic}}"


def since_5_0(profile: Profile) -> bool:
    """Return whether the profile knows scalable topics."""
    return profile.scalable_topics


def since_5_0_1(profile: Profile) -> bool:
    """Return whether the profile has the routes that 5.0.1 added."""
    return profile.scalable_topics and profile.entry_buckets


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
