"""Clusters, tenants, namespaces, partitioned topics, topic policies and other records that operators write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote, unquote

from pulsarium.broker.model.errors import NotAllowedError
from pulsarium.broker.model.namespace.policies import bundles_data, even_boundaries
from pulsarium.broker.model.policy.without_effect import Notices
from pulsarium.broker.storage.interface import Done
from pulsarium.proto.topic_name import TopicName

ROOTS = (
    "/admin/clusters/",
    "/admin/configuration/",
    "/admin/local-policies/",
    "/admin/resourcegroups/",
    "/bookies/",
    "/loadbalance/resource-quota/",
)


Changed = Callable[[str, Any], None]  # called with a path and its new value, or None after deletion


class Keeps(Protocol):
    """The store behind the metadata."""

    def store(self, path: str, value: bytes | None) -> None: ...

    def after_commit(self, done: Done) -> None: ...


class Records:
    """Records by path. Names in a path are quoted, so that no name can contain a path of its own."""

    def __init__(self, keeps: Keeps, changed: Changed = lambda path, value: None) -> None:
        self._keeps = keeps
        self._changed = changed
        self._values: dict[str, Any] = {}

    def clear(self) -> None:
        """Forget all records in memory. The store keeps them."""
        self._values.clear()

    def recover(self, path: str, value: bytes) -> None:
        """Load a record from the store."""
        if path.startswith(ROOTS):
            self._values[path] = json.loads(value)
            self._changed(path, self._values[path])

    def get(self, folder: str, *names: str) -> Any:
        """Return a record, or None."""
        return self._values.get(_path(folder, names))

    def put(self, folder: str, *names: str, value: Any) -> None:
        """Store a record."""
        path = _path(folder, names)
        self._values[path] = value
        self._changed(path, value)
        self._keeps.store(path, json.dumps(value).encode())

    def forget(self, folder: str, *names: str) -> None:
        """Delete a record and everything below it. If the commit of the deletion fails, all of them are restored."""
        path = _path(folder, names)
        gone = {kept: value for kept, value in self._values.items() if kept == path or kept.startswith(f"{path}/")}
        for kept in gone:
            del self._values[kept]
            self._changed(kept, None)
            self._keeps.store(kept, None)
        self._keeps.after_commit(lambda error: self._values.update(gone) if error is not None else None)

    def inside(self, folder: str, *names: str) -> dict[str, Any]:
        """Return the records directly in a folder, by name."""
        start = f"{_path(folder, names)}/"
        found = {path[len(start) :]: value for path, value in self._values.items() if path.startswith(start)}
        return {unquote(name): value for name, value in found.items() if "/" not in name}


def _path(folder: str, names: tuple[str, ...]) -> str:
    return "/".join((folder, *(quote(name, safe="") for name in names)))


Json = dict[str, Any]

CLUSTERS = "/admin/clusters"
TENANTS = "/admin/policies"
PARTITIONED = "/admin/partitioned-topics"
TOPIC_POLICIES = "/admin/topic-policies"
LOCAL_POLICIES = "/admin/local-policies"
RESOURCE_QUOTAS = "/loadbalance/resource-quota"
PoliciesChanged = Callable[[str, TopicName | None], None]  # called with a namespace, and one topic in it or None
# with the policies before and after; None after the topic was deleted
TopicPoliciesChanged = Callable[[TopicName, Json, Json | None], None]
GLOBAL = "global"  # key of the policies that a topic has in all clusters
STANDALONE_NAMESPACES = (("public", "default"), ("pulsar", "system"))


class Metadata:
    """The metadata of a cluster, in memory and at Pulsar's paths in the store. All changes use these methods."""

    def __init__(self, keeps: Keeps, cluster: str, system_bundles: int = 0) -> None:
        self.cluster = cluster
        self._system_bundles = system_bundles  # defaultNumberOfSystemNamespaceBundles
        self.clusters: dict[str, Json] = {}  # data of clusters that was set over REST
        self.tenants: dict[str, Json] = {}
        self.namespaces: dict[str, Json] = {}  # policies by "tenant/namespace", as REST shows them
        self.partitioned: dict[str, Json] = {}  # {"partitions": n, ...} by topic name
        self.topic_policies: dict[str, Json] = {}  # policies that were set, by topic name without partition
        self.policies_listeners: list[PoliciesChanged] = []
        self.topic_policies_listeners: list[TopicPoliciesChanged] = []
        self.without_effect = Notices(cluster)
        self.records = Records(keeps, self.without_effect.recorded)
        self._keeps = keeps

    def _policies_changed(self, namespace: str, topic: TopicName | None) -> None:
        for told in self.policies_listeners:
            told(namespace, topic)

    def _topic_policies_changed(self, topic: TopicName, before: Json, after: Json | None) -> None:
        for told in self.topic_policies_listeners:
            told(topic, before, after)

    # start

    def recover(self, kept: dict[str, bytes]) -> None:
        """Load the metadata from the store, and forget the old.

        A new store gets the namespaces of a standalone broker.
        """
        for each in (self.clusters, self.tenants, self.namespaces, self.partitioned, self.topic_policies):
            each.clear()
        self.records.clear()
        self.without_effect.clear()
        for path, value in kept.items():
            root, _, rest = path.lstrip("/").partition("/")
            kind, _, name = rest.partition("/") if root == "admin" else ("", "", "")
            if kind == "policies":
                (self.namespaces if "/" in name else self.tenants)[name] = json.loads(value)
                if "/" in name:
                    self.without_effect.changed(name, self.namespaces[name])
            elif kind == "clusters" and "/" not in name:
                self.clusters[name] = json.loads(value)
            elif kind == "partitioned-topics":
                self.partitioned[_topic_at(name)] = json.loads(value)
            elif kind == "topic-policies":
                topic, policies = _topic_at(name), json.loads(value)
                self.topic_policies[topic] = policies
                self.without_effect.changed(topic, {**global_of(policies), **policies})
            else:
                self.records.recover(path, value)
        if not self.tenants:
            for tenant, namespace in STANDALONE_NAMESPACES:
                self.put_tenant(tenant, {"adminRoles": [], "allowedClusters": [self.cluster]})
                first: Json = {"replication_clusters": [self.cluster]}
                if tenant == "pulsar" and self._system_bundles:
                    first["bundles"] = bundles_data(even_boundaries(self._system_bundles))
                self.put_namespace(f"{tenant}/{namespace}", first)

    # clusters

    def put_cluster(self, name: str, data: Json) -> None:
        self.clusters[name] = data
        self._keep(f"{CLUSTERS}/{name}", data)

    def delete_cluster(self, name: str) -> None:
        if name in self.clusters:
            self._delete(self.clusters, name, f"{CLUSTERS}/{name}")

    # tenants

    def put_tenant(self, name: str, info: Json) -> None:
        self.tenants[name] = info
        self._keep(f"{TENANTS}/{name}", info)

    def delete_tenant(self, name: str) -> None:
        self._delete(self.tenants, name, f"{TENANTS}/{name}")

    def namespaces_of(self, tenant: str) -> list[str]:
        return [name for name in self.namespaces if name.partition("/")[0] == tenant]

    # namespaces

    def put_namespace(self, name: str, policies: Json) -> None:
        self.namespaces[name] = policies
        self.without_effect.changed(name, policies)
        self._keep(f"{TENANTS}/{name}", policies)
        self._policies_changed(name, None)

    def delete_namespace(self, name: str) -> None:
        for topic in map(TopicName.parse, list(self.topic_policies)):
            if str(topic.namespace_name) == name:  # such as one of an unloaded non-persistent topic
                self.forget_topic_policies(topic)
        self.without_effect.changed(name, {})
        self._delete(self.namespaces, name, f"{TENANTS}/{name}")
        self._policies_changed(name, None)
        self.records.forget(LOCAL_POLICIES, name)
        self.records.forget(RESOURCE_QUOTAS, name)

    def looked_up(self, namespace: str) -> None:
        """Note a lookup in a namespace. From the first one on, the namespace has local policies, as in Pulsar."""
        if namespace in self.namespaces and self.records.get(LOCAL_POLICIES, namespace) is None:
            self.records.put(LOCAL_POLICIES, namespace, value={})

    # partitioned topics

    def partitions_of(self, topic: TopicName) -> int:
        """Return the number of partitions, or 0 for a topic without partitions."""
        info = self.partitioned.get(str(topic))
        return int(info["partitions"]) if info is not None else 0

    def put_partitioned(self, topic: TopicName, partitions: int, properties: dict[str, str] | None = None) -> None:
        info: Json = {"partitions": partitions, "deleted": False}
        if properties is not None:
            info["properties"] = properties
        self.partitioned[str(topic)] = info
        self._keep(self._partitioned_path(topic), info)

    def delete_partitioned(self, topic: TopicName) -> None:
        self.forget_topic_policies(topic)  # before the partitions are forgotten, because they must hear of it
        self._delete(self.partitioned, str(topic), self._partitioned_path(topic))

    def partitioned_of(self, namespace: str, domain: str) -> list[str]:
        prefix = f"{domain}://{namespace}/"
        return [name for name in self.partitioned if name.startswith(prefix)]

    def check_partition(self, name: TopicName) -> None:
        """Raise `NotAllowedError` for a partition of a topic that is not partitioned, or has fewer partitions."""
        if name.partition_index < 0:
            return
        partitions = self.partitions_of(name.partitioned_name)
        if not partitions:
            raise NotAllowedError(f"Partition metadata not found for the partitioned topic: {name}")
        if name.partition_index >= partitions:
            text = f"Illegal topic partition name {name} with max allowed {partitions} partitions"
            raise NotAllowedError(text)

    @staticmethod
    def _partitioned_path(topic: TopicName) -> str:
        return f"{PARTITIONED}/{_path_of(topic)}"

    # policies of topics

    def put_topic_policies(self, topic: TopicName, policies: Json) -> None:
        """Store the policies of a topic, and publish the change. {} deletes them."""
        before = self.topic_policies.get(str(topic), {})
        self.take_topic_policies(topic, policies)
        self._topic_policies_changed(topic, before, policies)

    def take_topic_policies(self, topic: TopicName, policies: Json) -> None:
        """Store the policies of a topic without publishing the change."""
        if policies:
            self.topic_policies[str(topic)] = policies
        else:
            self.topic_policies.pop(str(topic), None)
        self.without_effect.changed(str(topic), {**global_of(policies), **policies})
        self._keep(f"{TOPIC_POLICIES}/{_path_of(topic)}", policies or None)
        self._policies_changed(str(topic.namespace_name), topic)

    def topic_policies_of(self, topic: TopicName) -> Json:
        """Return the policies that are set for a topic. Partitions have those of their partitioned topic."""
        kept = self.topic_policies.get(str(topic.partitioned_name), {})
        return {**global_of(kept), **kept}

    def forget_topic_policies(self, topic: TopicName) -> None:
        """Delete the policies of a topic, perhaps with the topic."""
        before, namespace = self.topic_policies.get(str(topic)), str(topic.namespace_name)
        if before is not None:
            self.without_effect.changed(str(topic), {})
            path = f"{TOPIC_POLICIES}/{_path_of(topic)}"
            self._delete(self.topic_policies, str(topic), path, lambda: self._policies_changed(namespace, topic))
            self._policies_changed(namespace, topic)
            self._topic_policies_changed(topic, before, None)

    def _delete(self, values: dict[str, Json], name: str, path: str, back: Callable[[], None] = lambda: None) -> None:
        """Delete a value. If that is not committed, restore the value and call `back`."""
        before = values.pop(name, None)

        def deleted(error: Exception | None) -> None:
            if error is not None and before is not None:
                values[name] = before
                back()

        self._keep(path, None)
        self._keeps.after_commit(deleted)

    def _keep(self, path: str, value: Json | None) -> None:
        self._keeps.store(path, None if value is None else json.dumps(value).encode())


def local_of(policies: Json) -> Json:
    """Return the part of a topic's policies for this cluster."""
    return {name: value for name, value in policies.items() if name != GLOBAL}


def global_of(policies: Json) -> Json:
    """Return the part of a topic's policies for all clusters."""
    found: Json = policies.get(GLOBAL, {})
    return found


def with_part(policies: Json, part: Json, *, is_global: bool) -> Json:
    """Return `policies` with one of the two parts replaced."""
    local, everywhere = (local_of(policies), part) if is_global else (part, global_of(policies))
    return {**local, GLOBAL: everywhere} if everywhere else {**local}


def _path_of(topic: TopicName) -> str:
    return f"{topic.tenant}/{topic.namespace}/{topic.domain}/{topic.local_name}"


def _topic_at(path: str) -> str:
    tenant, namespace, domain, local = path.split("/", 3)
    return f"{domain}://{tenant}/{namespace}/{local}"
