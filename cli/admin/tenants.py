"""`pulsarium admin tenants`."""

from typing import Any

from .api import Api
from .command import Command, Group, Values, argument, delete, get, option, path_of
from .output import lines
from .values import split

TENANT = argument("tenant")
ADMIN_ROLES = option("--admin-roles", "-r", many=True, metavar="ROLE,...", help="Roles that may administer it.")
ALLOWED_CLUSTERS = option(
    "--allowed-clusters", "-c", many=True, metavar="CLUSTER,...", help="Clusters it may use.  [default: all]"
)


def _create(api: Api, values: Values) -> None:
    allowed = split(values.allowed_clusters) or api.call("GET", "clusters")
    body = {"adminRoles": split(values.admin_roles), "allowedClusters": allowed}
    api.call("PUT", path_of("tenants/{tenant}", values), body=body)


def _update(api: Api, values: Values) -> None:
    path = path_of("tenants/{tenant}", values)
    roles, allowed = split(values.admin_roles), split(values.allowed_clusters)
    if not (roles and allowed):
        now: dict[str, Any] = api.call("GET", path) or {}
        roles, allowed = roles or now.get("adminRoles", []), allowed or now.get("allowedClusters", [])
    api.call("POST", path, body={"adminRoles": roles, "allowedClusters": allowed})


GROUP = Group(
    "tenants",
    "Tenants: who namespaces belong to.",
    (
        get("list", "tenants", "List the tenants.", show=lines),
        get("get", "tenants/{tenant}", "Show the admin roles and allowed clusters of a tenant.", TENANT),
        Command(
            "create",
            "Create a tenant.",
            _create,
            (TENANT, ADMIN_ROLES, ALLOWED_CLUSTERS),
            example="shop --admin-roles alice,bob",
        ),
        Command(
            "update",
            "Change a tenant; what is not named stays.",
            _update,
            (TENANT, ADMIN_ROLES, ALLOWED_CLUSTERS),
            example="shop --admin-roles alice",
        ),
        delete(
            "delete",
            "tenants/{tenant}",
            "Delete a tenant without namespaces.",
            TENANT,
            option("--force", "-f", flag=True, help="Its namespaces and topics too."),
            query={"force": "force"},
        ),
    ),
    examples=("tenants list", "tenants create shop --admin-roles alice"),
)
