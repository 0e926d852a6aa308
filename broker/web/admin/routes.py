"""The modules that declare the routes of the admin API."""

from __future__ import annotations

from pulsarium.broker.web.admin import lookup
from pulsarium.broker.web.admin.cluster import bookies, broker_stats, brokers, clusters, isolation, kept, metrics
from pulsarium.broker.web.admin.namespace import backlog as namespace_backlog
from pulsarium.broker.web.admin.namespace import bundles, namespaces, permissions, tenants
from pulsarium.broker.web.admin.policies import backlog_quotas
from pulsarium.broker.web.admin.policies import namespaces as namespace_policies
from pulsarium.broker.web.admin.policies import topics as topic_policies
from pulsarium.broker.web.admin.scalable import auto_scale, segments
from pulsarium.broker.web.admin.scalable import stats as scalable_stats
from pulsarium.broker.web.admin.scalable import subscriptions as scalable_subscriptions
from pulsarium.broker.web.admin.scalable import topics as scalable_topics
from pulsarium.broker.web.admin.topic import (
    backlog,
    compaction,
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
)
from pulsarium.broker.web.admin.transactions import coordinators, on_topics

# fmt: off
MODULES = (
    lookup,
    bookies, broker_stats, brokers, clusters, isolation, kept, metrics,
    bundles, namespace_backlog, namespaces, permissions, tenants,
    backlog_quotas, namespace_policies, topic_policies,
    backlog, compaction, internal_stats, message_ids, messages, partitions, producing, properties, schemas,
    skip_by_message_ids, stats, subscriptions, topics,
    coordinators, on_topics,
    auto_scale, scalable_stats, scalable_subscriptions, scalable_topics, segments,
)
# fmt: on
