"""`pulsarium admin tenants`."""

from __future__ import annotations

from pulsarium.cli.admin.api import Api
from pulsarium.cli.admin.command import AdminCommand, CommandGroup, CommandsOf, Values, argument, option
from pulsarium.cli.admin.output import lines
from pulsarium.cli.admin.values import split
from pulsarium.rest.clusters import Clusters
from pulsarium.rest.tenants import Tenants

tenants = CommandsOf(Tenants)

TENANT = argument("tenant")
ADMIN_ROLES = option("--admin-roles", "-r", many=True, metavar="ROLE,...", help="Roles that may administer the tenant.")
ALLOWED_CLUSTERS = option(
    "--allowed-clusters",
    "-c",
    many=True,
    metavar="CLUSTER,...",
    help="Clusters that the tenant may use.  [default: all]",
)


async def _create(api: Api, values: Values) -> None:
    allowed = split(values.allowed_clusters) or await Clusters(api).get_clusters()
    roles = split(values.admin_roles)
    await Tenants(api).create_tenant(values.tenant, allowed_clusters=allowed, admin_roles=roles)


async def _update(api: Api, values: Values) -> None:
    roles, allowed = split(values.admin_roles), split(values.allowed_clusters)
    if not (roles and allowed):
        now = await Tenants(api).get_tenant_info(values.tenant) or {}
        roles, allowed = roles or now.get("adminRoles", []), allowed or now.get("allowedClusters", [])
    await Tenants(api).update_tenant(values.tenant, allowed_clusters=allowed, admin_roles=roles)


_ROWS = (
    tenants.shows("list", Tenants.get_tenants, "List the tenants.", show=lines),
    tenants.shows("get", Tenants.get_tenant_info, "Show the admin roles and allowed clusters of a tenant.", TENANT),
    AdminCommand(
        "create",
        "Create a tenant.",
        _create,
        (TENANT, ADMIN_ROLES, ALLOWED_CLUSTERS),
        example="shop --admin-roles alice,bob",
    ),
    AdminCommand(
        "update",
        "Change the roles or clusters of a tenant.",
        _update,
        (TENANT, ADMIN_ROLES, ALLOWED_CLUSTERS),
        example="shop --admin-roles alice",
    ),
    tenants.does(
        "delete",
        Tenants.delete_tenant,
        "Delete a tenant without namespaces.",
        TENANT,
        option("--force", "-f", flag=True, help="Delete its namespaces and topics too."),
    ),
)

GROUPS = {"tenants": CommandGroup(_ROWS, examples=("tenants list", "tenants create shop --admin-roles alice"))}
