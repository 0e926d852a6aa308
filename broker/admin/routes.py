"""The modules that declare the routes of the admin API."""

from __future__ import annotations

from pulsarium.broker.admin import lookup, pages
from pulsarium.broker.admin.cluster import bookies, broker_stats, brokers, clusters, isolation, kept, metrics
from pulsarium.broker.admin.namespace import backlog as namespace_backlog
from pulsarium.broker.admin.namespace import bundles, namespaces, permissions, tenants
from pulsarium.broker.admin.policies import backlog_quotas
from pulsarium.broker.admin.policies import namespaces as namespace_policies
from pulsarium.broker.admin.policies import topics as topic_policies
from pulsarium.broker.admin.scalable import auto_scale, segments
from pulsarium.broker.admin.scalable import permissions as scalable_permissions
from pulsarium.broker.admin.scalable import stats as scalable_stats
from pulsarium.broker.admin.scalable import subscriptions as scalable_subscriptions
from pulsarium.broker.admin.scalable import topics as scalable_topics
from pulsarium.broker.admin.topic import (
    backlog,
    internal_stats,
    message_ids,
    messages,
    partitions,
    producing,
    properties,
    schemas,
    skip_by_message_ids,
    stats,
    subscriptions,
    topics,
    upkeep,
)
from pulsarium.broker.admin.transactions import coordinators, on_topics

# fmt: off
MODULES = (
    lookup, pages,
    bookies, broker_stats, brokers, clusters, isolation, kept, metrics,
    bundles, namespace_backlog, namespaces, permissions, tenants,
    backlog_quotas, namespace_policies, topic_policies,
    backlog, internal_stats, message_ids, messages, partitions, producing, properties, schemas,
    skip_by_message_ids, stats, subscriptions, topics, upkeep,
    coordinators, on_topics,
    auto_scale, scalable_permissions, scalable_stats, scalable_subscriptions, scalable_topics, segments,
)
# fmt: on
