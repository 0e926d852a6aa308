"""Handle the commands of clients, each in a plain function and atomically."""

from __future__ import annotations

from collections.abc import Mapping

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.commands import (
    connection,
    consumer,
    coordinator_watch,
    lookup,
    producer,
    scalable,
    scalable_consumers,
    scalable_watch,
    schema,
    seek,
    subscribe,
    transaction,
    watch,
)
from pulsarium.broker.commands.authorized import authorized
from pulsarium.broker.commands.registry import collect, without
from pulsarium.broker.config.profile import PIP, Profile
from pulsarium.broker.session.gate import Handler
from pulsarium.broker.session.session import Sessions

MODULES = (
    connection,
    consumer,
    coordinator_watch,
    lookup,
    producer,
    scalable,
    scalable_consumers,
    scalable_watch,
    schema,
    seek,
    subscribe,
    transaction,
    watch,
)


def handlers(*, connected: bool, authorize: bool = False, profile: Profile = PIP) -> Mapping[int, Handler]:
    """Return the handlers of a connection, before or after its CONNECT. With `authorize`, they check the role first."""
    found = collect(MODULES, connected=connected, guard=authorized if authorize else None)
    return without(found, profile.unknown, profile.unknown_error) if profile.unknown else found


def attach_to(cluster: Cluster) -> None:
    """Have the sessions of a cluster handle commands by the modules of this package."""
    authorize = cluster.authorization is not None
    cluster.attach(
        Sessions(
            handlers(connected=False),
            lambda profile: handlers(connected=True, authorize=authorize, profile=profile),
        )
    )
