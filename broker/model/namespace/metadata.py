"""Tenants, namespaces, partitioned topics and what operators tell: what exists besides messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import quote, unquote

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


Changed = Callable[[str, Any], None]  # the path, and what is kept there now; None: nothing


class Keeps(Protocol):
    """The store behind them."""

    def store(self, path: str, value: bytes | None) -> None: ...

    def after_commit(self, done: Done) -> None: ...


class Records:
    """By path. A name is quoted in it, so that what somebody calls a thing never is a path of its own."""

    def __init__(self, keeps: Keeps, changed: Changed = lambda path, value: None) -> None:
        self._keeps = keeps
        self._changed = changed
        self._values: dict[str, Any] = {}

    def clear(self) -> None:
        """Know nothing; what is kept stays so."""
        self._values.clear()

    def recover(self, path: str, value: bytes) -> None:
        """Take over what the store has."""
        if path.startswith(ROOTS):
            self._values[path] = json.loads(value)
            self._changed(path, self._values[path])

    def get(self, folder: str, *names: str) -> Any:
        """What is kept, None for nothing."""
        return self._values.get(_path(folder, names))

    def put(self, folder: str, *names: str, value: Any) -> None:
        """Keep it."""
        path = _path(folder, names)
        self._values[path] = value
        self._changed(path, value)
        self._keeps.store(path, json.dumps(value).encode())

    def forget(self, folder: str, *names: str) -> None:
        """Forget it, and everything in it; all is there again where that is not kept."""
        path = _path(folder, names)
        gone = {kept: value for kept, value in self._values.items() if kept == path or kept.startswith(f"{path}/")}
        for kept in gone:
            del self._values[kept]
            self._changed(kept, None)
            self._keeps.store(kept, None)
        self._keeps.after_commit(lambda error: self._values.update(gone) if error is not None else None)

    def inside(self, folder: str, *names: str) -> dict[str, Any]:
        """Everything right in a folder, by name."""
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
PoliciesChanged = Callable[[str, TopicName | None], None]  # of a namespace, or of one topic in it
TopicPoliciesChanged = Callable[[TopicName, Json, Json | None], None]  # before and after; None: it went with its topic
GLOBAL = "global"  # what is set for a topic in all clusters stands under this name among its policies
STANDALONE_NAMESPACES = (("public", "default"), ("pulsar", "system"))


class Metadata:
    """Kept in memory, and at Pulsar's own metadata paths in the store. All changes go through these methods."""

    def __init__(self, keeps: Keeps, cluster: str) -> None:
        self.cluster = cluster
        self.clusters: dict[str, Json] = {}  # what was said of clusters over REST
        self.tenants: dict[str, Json] = {}
        self.namespaces: dict[str, Json] = {}  # "tenant/namespace" -> policies, as REST shows them
        self.partitioned: dict[str, Json] = {}  # topic name -> {"partitions": n, ...}
        self.topic_policies: dict[str, Json] = {}  # topic name, of a partitioned topic its own -> what was set
        self.on_policies_changed: PoliciesChanged = lambda namespace, topic: None
        self.on_topic_policies_changed: TopicPoliciesChanged = lambda topic, before, after: None
        self.without_effect = Notices(cluster)
        self.records = Records(keeps, self.without_effect.recorded)
        self._keeps = keeps

    # start

    def recover(self, kept: dict[str, bytes]) -> None:
        """Take over what the store has, and nothing else; one that is new gets the namespaces of a standalone."""
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
                self.put_namespace(f"{tenant}/{namespace}", {"replication_clusters": [self.cluster]})

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
        self.on_policies_changed(name, None)

    def delete_namespace(self, name: str) -> None:
        for topic in map(TopicName.parse, list(self.topic_policies)):
            if str(topic.namespace_name) == name:  # one that is not persistent, and not there now
                self.forget_topic_policies(topic)
        self.without_effect.changed(name, {})
        self._delete(self.namespaces, name, f"{TENANTS}/{name}")
        self.on_policies_changed(name, None)
        self.records.forget(LOCAL_POLICIES, name)
        self.records.forget(RESOURCE_QUOTAS, name)

    def looked_up(self, namespace: str) -> None:
        """Note that somebody looked for a topic of a namespace: that has local policies from then on, as in Pulsar."""
        if namespace in self.namespaces and self.records.get(LOCAL_POLICIES, namespace) is None:
            self.records.put(LOCAL_POLICIES, namespace, value={})

    # partitioned topics

    def partitions_of(self, topic: TopicName) -> int:
        """How many partitions a topic has; 0 when it is not partitioned."""
        info = self.partitioned.get(str(topic))
        return int(info["partitions"]) if info is not None else 0

    def put_partitioned(self, topic: TopicName, partitions: int, properties: dict[str, str] | None = None) -> None:
        info: Json = {"partitions": partitions, "deleted": False}
        if properties is not None:
            info["properties"] = properties
        self.partitioned[str(topic)] = info
        self._keep(self._partitioned_path(topic), info)

    def delete_partitioned(self, topic: TopicName) -> None:
        self.forget_topic_policies(topic)  # first: its partitions hear of it
        self._delete(self.partitioned, str(topic), self._partitioned_path(topic))

    def partitioned_of(self, namespace: str, domain: str) -> list[str]:
        prefix = f"{domain}://{namespace}/"
        return [name for name in self.partitioned if name.startswith(prefix)]

    @staticmethod
    def _partitioned_path(topic: TopicName) -> str:
        return f"{PARTITIONED}/{_path_of(topic)}"

    # policies of topics

    def put_topic_policies(self, topic: TopicName, policies: Json) -> None:
        """Keep what is set for one topic; {} forgets it."""
        before = self.topic_policies.get(str(topic), {})
        self.take_topic_policies(topic, policies)
        self.on_topic_policies_changed(topic, before, policies)

    def take_topic_policies(self, topic: TopicName, policies: Json) -> None:
        """The same where everybody has heard of it already."""
        if policies:
            self.topic_policies[str(topic)] = policies
        else:
            self.topic_policies.pop(str(topic), None)
        self.without_effect.changed(str(topic), {**global_of(policies), **policies})
        self._keep(f"{TOPIC_POLICIES}/{_path_of(topic)}", policies or None)
        self.on_policies_changed(str(topic.namespace_name), topic)

    def topic_policies_of(self, topic: TopicName) -> Json:
        """What is set for a topic: for a partition, what is set for all of them."""
        kept = self.topic_policies.get(str(topic.partitioned_name), {})
        return {**global_of(kept), **kept}

    def forget_topic_policies(self, topic: TopicName) -> None:
        """The topic is deleted, or its policies are."""
        before, namespace = self.topic_policies.get(str(topic)), str(topic.namespace_name)
        if before is not None:
            self.without_effect.changed(str(topic), {})
            path = f"{TOPIC_POLICIES}/{_path_of(topic)}"
            self._delete(self.topic_policies, str(topic), path, lambda: self.on_policies_changed(namespace, topic))
            self.on_policies_changed(namespace, topic)
            self.on_topic_policies_changed(topic, before, None)

    def _delete(self, values: dict[str, Json], name: str, path: str, back: Callable[[], None] = lambda: None) -> None:
        """Forget a value. Where that is not kept it is there again, and can be deleted again; `back` hears of it."""
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
    """What is set for a topic in this cluster."""
    return {name: value for name, value in policies.items() if name != GLOBAL}


def global_of(policies: Json) -> Json:
    """What is set for it in all clusters."""
    found: Json = policies.get(GLOBAL, {})
    return found


def with_part(policies: Json, part: Json, *, is_global: bool) -> Json:
    """The same with another one of the two."""
    local, everywhere = (local_of(policies), part) if is_global else (part, global_of(policies))
    return {**local, GLOBAL: everywhere} if everywhere else {**local}


def _path_of(topic: TopicName) -> str:
    return f"{topic.tenant}/{topic.namespace}/{topic.domain}/{topic.local_name}"


def _topic_at(path: str) -> str:
    tenant, namespace, domain, local = path.split("/", 3)
    return f"{domain}://{tenant}/{namespace}/{local}"
