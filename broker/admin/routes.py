"""Every route there is: the modules that declare them, gathered."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.broker.admin import (
    backlog,
    brokers,
    clusters,
    compaction,
    internal_stats,
    lookup,
    metrics,
    namespaces,
    pages,
    partitions,
    properties,
    replicated_subscriptions,
    stats,
    subscriptions,
    tenants,
    termination,
    topics,
)
from pulsarium.broker.admin.policies import backlog_quotas
from pulsarium.broker.admin.policies import namespaces as namespace_policies
from pulsarium.broker.admin.policies import topics as topic_policies
from pulsarium.broker.admin.registry import Handler, Route, declared

MODULES = (
    backlog,
    backlog_quotas,
    brokers,
    clusters,
    compaction,
    internal_stats,
    lookup,
    metrics,
    namespace_policies,
    namespaces,
    pages,
    partitions,
    properties,
    replicated_subscriptions,
    stats,
    subscriptions,
    tenants,
    termination,
    topic_policies,
    topics,
)


def all_routes() -> Iterator[tuple[Route, Handler]]:
    """Routes with their handlers, in no order that means anything."""
    return declared(MODULES)


def by_path() -> list[tuple[str, dict[str, Handler]]]:
    """Paths with their handlers by method; of two that fit a request, the one with fixed parts comes first."""
    found: dict[str, dict[str, Handler]] = {}
    for declaration, handler in all_routes():
        handlers = found.setdefault(declaration.path, {})
        if declaration.method in handlers:
            raise TypeError(f"{declaration.method} {declaration.path} has two handlers")
        handlers[declaration.method] = handler
    return sorted(found.items(), key=lambda item: [part.startswith("{") for part in item[0].split("/")])
