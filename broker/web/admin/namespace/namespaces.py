"""/admin/v2/namespaces: namespaces, all policies of one as an object, and properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulsarium.broker.auth.needs import TENANT_ADMIN, namespace_operation, namespace_policy, tenant_operation
from pulsarium.broker.cluster import Broker
from pulsarium.broker.jackson.kinds import STRINGS
from pulsarium.broker.model.namespace.policies import (
    REPLICATORS_UPDATE_SCHEMAS,
    read_bundles,
    read_policies,
    whole_policies,
)
from pulsarium.broker.model.namespace.values import POLICIES_TYPE, read_policy
from pulsarium.broker.model.policy.policies import AGE, STORAGE
from pulsarium.broker.web.admin.namespace import bundles
from pulsarium.broker.web.admin.policies.namespaces import NAMESPACE
from pulsarium.broker.web.admin.policies.policy import with_value
from pulsarium.broker.web.admin.policies.retention import validate_retention
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError, ContainerError, unexpected_body
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply, nothing, text_reply
from pulsarium.proto.special_names import is_system_topic
from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT, TopicName
from pulsarium.rest.policies import BACKLOG_QUOTAS


@route("GET", "/admin/v2/namespaces/{tenant}", needs=tenant_operation("LIST_NAMESPACES"))
def get_namespaces(call: Call) -> HttpReply:
    """Return the namespaces of a tenant."""
    tenant = call.parameter("tenant")
    if tenant not in call.broker.metadata.tenants:
        raise AdminError(404, "Tenant not found")
    return json_reply(sorted(call.broker.metadata.namespaces_of(tenant)))


@route("GET", NAMESPACE, needs=namespace_policy("ALL", write=False))
def get_policies(call: Call) -> HttpReply:
    """Return all policies of a namespace, including defaults."""
    return json_reply(policies_of(call))


def policies_of(call: Call) -> dict[str, Any]:
    """Return all policies of the namespace in the path."""
    found = {REPLICATORS_UPDATE_SCHEMAS: True, **call.broker.metadata.namespaces[call.existing_namespace]}
    if not call.broker.profile.newer_rest:
        del found[REPLICATORS_UPDATE_SCHEMAS]
    return whole_policies(found, call.broker.config)


@route("PUT", NAMESPACE, needs=tenant_operation("CREATE_NAMESPACE"))
def create_namespace(call: Call) -> HttpReply:
    """Create a namespace with the policies of the body, if any."""
    metadata = call.broker.metadata
    sent = call.json_object(POLICIES_TYPE) or {}
    policies = {field: read_policy(field, value) for field, value in sent.items() if value is not None}
    validate_retention(policies.get("retention_policies"))
    name = call.namespace
    tenant = metadata.tenants.get(call.parameter("tenant"))
    if tenant is None:
        raise AdminError(404, "Tenant does not exist")
    clusters = policies.get("replication_clusters") or [metadata.cluster]
    for cluster in clusters:
        if cluster not in tenant.get("allowedClusters", ()):
            text = f"Cluster [{cluster}] is not in the list of allowed clusters list for tenant [{name.split('/')[0]}]"
            raise AdminError(403, text)
    try:
        bundles = read_bundles(policies.get("bundles"), call.broker.config.defaultNumberOfNamespaceBundles)
    except ValueError as error:
        raise AdminError(400, str(error)) from None
    most, tenant_name = call.broker.config.maxNamespacesPerTenant, call.parameter("tenant")
    if 0 < most < sum(each.startswith(f"{tenant_name}/") for each in metadata.namespaces):
        raise AdminError(412, f"Exceed the maximum number of namespace in tenant :{tenant_name}")
    if name in metadata.namespaces:
        raise AdminError(409, "Namespace already exists")
    check_kinds_of_quotas(sent.get(BACKLOG_QUOTAS.kept) or {})
    metadata.put_namespace(name, read_policies({**policies, "replication_clusters": clusters, "bundles": bundles}))
    return done()


def check_kinds_of_quotas(quotas: Mapping[str, Any]) -> None:
    """Refuse backlog quotas of a type that Pulsar does not know."""
    for kind, quota in quotas.items():
        if kind not in (STORAGE, AGE) and quota is not None:
            text = f"The type of backlog quota {kind} does not exist; the types are {STORAGE} and {AGE}"
            null = "Null key for a Map not allowed in JSON (use a converting NullKeySerializer?)"
            raise unexpected_body(null, AdminError(400, text))


@route("DELETE", NAMESPACE, needs=tenant_operation("DELETE_NAMESPACE"))
def delete_namespace(call: Call) -> HttpReply:
    """Delete a namespace. With force=true, delete its topics too, where the broker allows it."""
    force = call.flag("force")
    if force and not call.broker.config.forceDeleteNamespaceAllowed:
        raise AdminError(405, "Broker doesn't allow forced deletion of namespaces")
    name = call.namespace
    if name not in call.broker.metadata.namespaces:
        raise AdminError(404, f"Namespace {name} does not exist.")
    remove_namespace(call.broker, name, force=force)
    return done()


def check_clusters(broker: Broker, namespace: str) -> None:
    """Refuse to delete a namespace of several clusters."""
    if len(broker.metadata.namespaces[namespace].get("replication_clusters", ())) > 1:
        text = f"Cannot delete the global namespace {namespace}. There are still more than one replication clusters"
        raise AdminError(412, f"{text} configured or replication clusters is empty.")


def remove_namespace(broker: Broker, namespace: str, *, force: bool) -> None:
    """Delete a namespace. Raise `AdminError` if it has several clusters, or topics and not `force`."""
    check_clusters(broker, namespace)
    names = broker.topics.names(namespace, non_persistent=True, hidden=is_system_topic)
    for domain in (PERSISTENT, NON_PERSISTENT):
        partitioned = map(TopicName.parse, broker.metadata.partitioned_of(namespace, domain))
        names += [str(name) for name in partitioned if not is_system_topic(name)]
    if (names or broker.cluster.scalable.names(namespace)) and not force:
        raise AdminError(409, "Cannot delete non empty namespace")
    broker.cluster.delete_namespace(namespace)


@route("PUT", f"{NAMESPACE}/unload")
async def unload_namespace(call: Call) -> HttpReply:
    """Disconnect the clients of all topics. They look the topics up again."""
    if call.namespace not in call.broker.metadata.namespaces:
        raise AdminError(404, "Namespace not found")
    await bundles.unload_namespace(call.broker, call.namespace)
    return done()


@route("GET", f"{NAMESPACE}/topics", needs=namespace_operation("GET_TOPICS"))
def get_topics(call: Call) -> HttpReply:
    """Return the topics of a namespace; of partitioned topics, the partitions."""
    mode = call.query.get("mode", "PERSISTENT")
    if mode not in ("PERSISTENT", "NON_PERSISTENT", "ALL"):
        raise ContainerError(404, "Not Found")
    found = call.broker.topics.names(
        call.existing_namespace,
        persistent=mode != "NON_PERSISTENT",
        non_persistent=mode != "PERSISTENT",
        hidden=None if call.flag("includeSystemTopic") else is_system_topic,
    )
    return json_reply(found)


@route("GET", f"{NAMESPACE}/bundles", needs=namespace_operation("GET_BUNDLE"))
def get_bundles(call: Call) -> HttpReply:
    """Return the bundles of the namespace."""
    return json_reply(policies_of(call)["bundles"])


FIELD = "properties"
ONE = f"{NAMESPACE}/property/{{key}}"


@route("GET", f"{NAMESPACE}/properties", needs=TENANT_ADMIN)
def get_properties(call: Call) -> HttpReply:
    """Return all properties."""
    if call.parameter("tenant") not in call.broker.metadata.tenants:
        raise AdminError(404, "Tenant does not exist")
    return json_reply(_kept(call))


@route("PUT", f"{NAMESPACE}/properties", needs=TENANT_ADMIN)
def put_properties(call: Call) -> HttpReply:
    """Set these properties, and keep others. Without a body, change nothing; Pulsar never answers then."""
    sent = call.read(STRINGS) or {}
    return _keep(call, {**_kept(call), **sent})


@route("DELETE", f"{NAMESPACE}/properties", needs=TENANT_ADMIN)
def delete_properties(call: Call) -> HttpReply:
    """Remove all properties."""
    _kept(call)
    return _keep(call, {})


@route("GET", ONE, needs=TENANT_ADMIN)
def get_property(call: Call) -> HttpReply:
    """Return a property."""
    return _shown(_kept(call).get(call.parameter("key")))


@route("PUT", f"{ONE}/{{value}}", needs=TENANT_ADMIN)
def put_property(call: Call) -> HttpReply:
    """Set a property."""
    return _keep(call, {**_kept(call), call.parameter("key"): call.parameter("value")})


@route("DELETE", ONE, needs=TENANT_ADMIN)
def delete_property(call: Call) -> HttpReply:
    """Remove a property, and return its value."""
    kept, key = _kept(call), call.parameter("key")
    _keep(call, with_value(kept, key, None))
    return _shown(kept.get(key))


def _shown(value: str | None) -> HttpReply:
    return nothing() if value is None else text_reply(value)


def _kept(call: Call) -> dict[str, Any]:
    kept: dict[str, Any] = call.broker.metadata.namespaces[call.existing_namespace].get(FIELD) or {}
    return kept


def _keep(call: Call, properties: dict[str, Any]) -> HttpReply:
    metadata, name = call.broker.metadata, call.namespace
    metadata.put_namespace(name, with_value(metadata.namespaces[name], FIELD, properties or None))
    return done()
