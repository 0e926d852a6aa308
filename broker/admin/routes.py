"""The modules that declare the routes of the admin API, gathered."""

from __future__ import annotations

from pulsarium.broker.admin import (
    lookup,
    pages,
)
from pulsarium.broker.admin.cluster import (
    bookies,
    broker_stats,
    brokers,
    clusters,
    isolation,
    kept,
    metrics,
    migration,
)
from pulsarium.broker.admin.namespace import backlog as namespace_backlog
from pulsarium.broker.admin.namespace import (
    bundles,
    namespaces,
    permissions,
    tenants,
)
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

MODULES = (
    backlog,
    backlog_quotas,
    backlog_sizes,
    bookies,
    broker_stats,
    brokers,
    bundles,
    clusters,
    compaction,
    coordinators,
    internal_info,
    internal_stats,
    isolation,
    kept,
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
    schemas,
    skip_by_message_ids,
    stats,
    subscriptions,
    tenants,
    termination,
    topic_policies,
    topics,
    transaction_buffers,
)
