"""Create and delete namespaces for tests."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain, count

from pulsarium.broker.cluster import Cluster
from pulsarium.broker.model.namespace.policies import is_readable, read_bundles, read_policies
from pulsarium.proto.topic_name import NamespaceName, TopicName
from pulsarium.rest.policies import NAMESPACE_DEFAULTS

TENANT = "public"
LONGEST_NAME = 80
TRIED_AT_ONCE = 4


def create_namespace(cluster: Cluster, name: str, policies: Mapping[str, object]) -> str:
    """Create `tenant/namespace`, and a missing tenant, with policies by their names in the REST API. Return the name.

    A name without a tenant belongs to `public`, with a number when the name is taken, so that a test may run again.
    Raise `ValueError` for an invalid policy, or a namespace that exists.
    """
    metadata = cluster.metadata
    for policy, value in policies.items():
        if policy not in NAMESPACE_DEFAULTS or not is_readable(policy, value):
            raise ValueError(f"{policy}={value!r} is not a valid policy of a namespace")
    if "/" not in name:
        name = _unused(f"{TENANT}/{_entity(name)}", metadata.namespaces)
    namespace = NamespaceName.parse(name)
    if name in metadata.namespaces:
        raise ValueError(f"the namespace {name} exists already")
    if namespace.tenant not in metadata.tenants:
        metadata.put_tenant(namespace.tenant, {"adminRoles": [], "allowedClusters": [metadata.cluster]})
    bundles = read_bundles(policies.get("bundles"), cluster.config.defaultNumberOfNamespaceBundles)
    clusters = {"replication_clusters": [metadata.cluster]}
    metadata.put_namespace(name, read_policies({**clusters, **policies, "bundles": bundles}))
    return name


class Leaving:
    """Delete namespaces after their last client has left. A client that was cut off would reconnect again and again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: deque[str] = deque()

    def add(self, name: str) -> None:
        """Delete a namespace with its topics, now or during a later call. A missing namespace is ignored."""
        self._waiting.appendleft(name)
        for _ in range(min(len(self._waiting), TRIED_AT_ONCE)):
            name = self._waiting.popleft()
            if self._is_used(name):
                self._waiting.append(name)
            elif name in self._cluster.metadata.namespaces:
                self._cluster.delete_namespace(name)

    def _is_used(self, name: str) -> bool:
        loaded = self._cluster.topics.loaded
        found = (loaded.get(topic) for topic in self._cluster.topics.names(name, non_persistent=True))
        return any(
            topic.producers or any(subscription.consumers for subscription in topic.subscriptions.values())
            for topic in found
            if topic is not None
        )


def create_topic(cluster: Cluster, topic: str, partitions: int) -> str:
    """Create a topic, and return its full name. Raise `ValueError` when it exists, or its namespace does not."""
    name = TopicName.parse(topic)
    if str(name.namespace_name) not in cluster.metadata.namespaces:
        raise ValueError(f"the namespace {name.namespace_name} does not exist: create it first")
    if cluster.metadata.partitions_of(name) or cluster.topics.exists(name):
        raise ValueError(f"the topic {name} exists already")
    if partitions:
        cluster.topics.create_partitions(name, partitions)
    else:
        cluster.topics.create(name)
    return str(name)


def _entity(text: str) -> str:
    """Return a text as a name that Pulsar allows."""
    return re.sub(r"[^-=:.\w]+", "-", text, flags=re.ASCII).strip("-")[:LONGEST_NAME] or "test"


def _unused(name: str, taken: Iterable[str]) -> str:
    numbered = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each not in taken)
