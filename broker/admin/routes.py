"""Every route there is: the modules that declare them, gathered."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.admin import (
    lookup,
    pages,
)
from pulsarium.broker.admin.cluster import (
    bookies,
    broker_stats,
    brokers,
    clusters,
    configuration,
    failure_domains,
    isolation,
    metrics,
    migration,
    resource_groups,
    resource_quotas,
    shutdown,
)
from pulsarium.broker.admin.namespace import (
    affinity,
    bundles,
    namespaces,
    permissions,
    tenants,
)
from pulsarium.broker.admin.namespace import backlog as namespace_backlog
from pulsarium.broker.admin.namespace import properties as namespace_properties
from pulsarium.broker.admin.policies import backlog_quotas
from pulsarium.broker.admin.policies import namespaces as namespace_policies
from pulsarium.broker.admin.policies import topics as topic_policies
from pulsarium.broker.admin.topic import (
    backlog,
    backlog_sizes,
    compaction,
    internal_info,
    internal_stats,
    message_ids,
    messages,
    offload,
    partitions,
    producing,
    properties,
    replicated_subscriptions,
    schemas,
    skip_by_message_ids,
    stats,
    subscriptions,
    termination,
    topics,
)
from pulsarium.broker.admin.transactions import buffer as transaction_buffers
from pulsarium.broker.admin.transactions import coordinators, pending_acks
from pulsarium.broker.config.profile import PIP, Profile
from pulsarium.broker.http.registry import Handler, Route, declared
from pulsarium.broker.lab.rest import MODULES as LAB_MODULES

MODULES = (
    affinity,
    backlog,
    backlog_quotas,
    backlog_sizes,
    bookies,
    broker_stats,
    brokers,
    bundles,
    clusters,
    compaction,
    configuration,
    coordinators,
    failure_domains,
    internal_info,
    internal_stats,
    isolation,
    lookup,
    message_ids,
    messages,
    metrics,
    migration,
    namespace_backlog,
    namespace_policies,
    namespace_properties,
    namespaces,
    offload,
    pages,
    partitions,
    pending_acks,
    permissions,
    producing,
    properties,
    replicated_subscriptions,
    resource_groups,
    resource_quotas,
    schemas,
    shutdown,
    skip_by_message_ids,
    stats,
    subscriptions,
    tenants,
    termination,
    topic_policies,
    topics,
    transaction_buffers,
    *LAB_MODULES,
)


def all_routes() -> Iterator[tuple[Route, Handler]]:
    """Routes with their handlers, in no order that means anything."""
    return declared(MODULES)


def by_path(profile: Profile = PIP) -> list[tuple[str, dict[str, tuple[Route, Handler]]]]:
    """What a profile offers: paths, with what answers each method there.

    Of two paths that fit a request, the one with fixed parts comes first.
    """
    found: dict[str, dict[str, tuple[Route, Handler]]] = {}
    for declaration, handler in all_routes():
        if not declaration.offered(profile):
            continue
        handlers = found.setdefault(declaration.path, {})
        if declaration.method in handlers:
            raise TypeError(f"{declaration.method} {declaration.path} has two handlers")
        handlers[declaration.method] = (declaration, handler)
    return sorted(found.items(), key=lambda item: [part.startswith("{") for part in item[0].split("/")])
