"""/admin/v2/tenants: tenants with their admin roles and allowed clusters."""

from __future__ import annotations

from typing import Any

from pulsarium.broker.auth.needs import tenant_operation
from pulsarium.broker.jackson.kinds import SPACE, TEXTS, record
from pulsarium.broker.model.namespace.values import DATA, NAME
from pulsarium.broker.web.admin.cluster import clusters
from pulsarium.broker.web.admin.namespace.namespaces import check_clusters, remove_namespace
from pulsarium.broker.web.http.call import Call
from pulsarium.broker.web.http.errors import AdminError
from pulsarium.broker.web.http.registry import route
from pulsarium.broker.web.http.reply import HttpReply, done, json_reply

INFO = record(f"{DATA}.TenantInfoImpl", {"adminRoles": TEXTS, "allowedClusters": TEXTS})


@route("GET", "/admin/v2/tenants", needs=tenant_operation("LIST_TENANTS"))
def get_tenants(call: Call) -> HttpReply:
    """Return the names of all tenants."""
    return json_reply(sorted(call.broker.metadata.tenants))


@route("GET", "/admin/v2/tenants/{tenant}", needs=tenant_operation("GET_TENANT"))
def get_tenant(call: Call) -> HttpReply:
    """Return the admin roles and the allowed clusters of a tenant."""
    info = call.broker.metadata.tenants.get(call.parameter("tenant"))
    if info is None:
        raise AdminError(404, "Tenant does not exist")
    return json_reply(info)


@route("PUT", "/admin/v2/tenants/{tenant}", needs=tenant_operation("CREATE_TENANT"))
def create_tenant(call: Call) -> HttpReply:
    """Create a tenant."""
    name = call.parameter("tenant")
    info = _read(call)
    if not NAME.fullmatch(name):
        raise AdminError(412, "Tenant name is not valid")
    _check(call, info)
    if name in call.broker.metadata.tenants:
        raise AdminError(409, "Tenant already exist")
    if 0 < call.broker.config.maxTenants <= len(call.broker.metadata.tenants):
        raise AdminError(412, "Exceed the maximum number of tenants")
    call.broker.metadata.put_tenant(name, info)
    return done()


@route("POST", "/admin/v2/tenants/{tenant}", needs=tenant_operation("UPDATE_TENANT"))
def update_tenant(call: Call) -> HttpReply:
    """Replace the data of a tenant."""
    name = call.parameter("tenant")
    info = _read(call)
    _check(call, info)
    if name not in call.broker.metadata.tenants:
        raise AdminError(404, f"Tenant {name} not found")
    call.broker.metadata.put_tenant(name, info)
    return done()


@route("DELETE", "/admin/v2/tenants/{tenant}", needs=tenant_operation("DELETE_TENANT"))
def delete_tenant(call: Call) -> HttpReply:
    """Delete a tenant. With force=true, delete its namespaces too, where the broker allows it."""
    broker, name, force = call.broker, call.parameter("tenant"), call.flag("force")
    if force and not broker.config.forceDeleteTenantAllowed:
        raise AdminError(405, "Broker doesn't allow forced deletion of tenants")
    if name not in broker.metadata.tenants:
        raise AdminError(404, "Tenant doesn't exist")
    namespaces = broker.metadata.namespaces_of(name)
    if namespaces and not force:
        raise AdminError(409, "The tenant still has active namespaces")
    for namespace in namespaces:
        check_clusters(broker, namespace)  # before anything is deleted
    for namespace in namespaces:
        remove_namespace(broker, namespace, force=True)
    broker.metadata.delete_tenant(name)
    return done()


def _read(call: Call) -> dict[str, Any]:
    info: dict[str, Any] | None = call.read(INFO)
    if info is None:
        raise AdminError(412, "TenantInfo is null")
    return info


def _check(call: Call, info: dict[str, Any]) -> None:
    allowed = info.get("allowedClusters")
    if allowed is None:
        raise AdminError(412, "Clusters cannot be null")
    if not any(name.strip() for name in allowed):
        raise AdminError(412, "Clusters cannot be empty or blank")
    if any(role != role.strip(SPACE) for role in info.get("adminRoles", [])):
        raise AdminError(412, "AdminRoles contains whitespace in the beginning or end.")
    if not set(allowed) <= set(clusters.names(call.broker)):
        raise AdminError(412, "Clusters do not exist")
