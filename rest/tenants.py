"""Tenants: who namespaces belong to."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.rest.data import TenantInfo
from pulsarium.rest.group import Group, segment


class Tenants(Group):
    """`tenants`."""

    async def get_tenants(self) -> list[str]:
        """Their names."""
        return await self._get(list[str], "tenants")

    async def get_tenant_info(self, tenant: str) -> TenantInfo:
        """Who may administer it, and which clusters it may use."""
        return await self._get(TenantInfo, _path(tenant))

    async def create_tenant(
        self, tenant: str, *, allowed_clusters: Sequence[str], admin_roles: Sequence[str] = ()
    ) -> None:
        """A new one, in at least one cluster."""
        await self._put(_path(tenant), _info(allowed_clusters, admin_roles))

    async def update_tenant(
        self, tenant: str, *, allowed_clusters: Sequence[str], admin_roles: Sequence[str] = ()
    ) -> None:
        """Replace all that is known of it."""
        await self._post(_path(tenant), _info(allowed_clusters, admin_roles))

    async def delete_tenant(self, tenant: str, *, force: bool = False) -> None:
        """`force`: its namespaces and topics too (forceDeleteTenantAllowed)."""
        await self._delete(_path(tenant), {"force": force})


def _path(tenant: str) -> str:
    return f"tenants/{segment(tenant)}"


def _info(allowed_clusters: Sequence[str], admin_roles: Sequence[str]) -> TenantInfo:
    return {"adminRoles": list(admin_roles), "allowedClusters": list(allowed_clusters)}
