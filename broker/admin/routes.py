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
from pulsarium.broker.admin.policies import backlog_quotas, subscription_rates
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
    subscription_rates,
    subscriptions,
    tenants,
    termination,
    topic_policies,
    topics,
    transaction_buffers,
)
