"""Calls about tenants, which namespaces belong to."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.rest.data import TenantInfo
from pulsarium.rest.group import CallGroup, segment


class Tenants(CallGroup):
    """Calls of `tenants`."""

    async def get_tenants(self) -> list[str]:
        """Return the names of the tenants."""
        return await self._get(list[str], "tenants")

    async def get_tenant_info(self, tenant: str) -> TenantInfo:
        """Return the admin roles and the allowed clusters of a tenant."""
        return await self._get(TenantInfo, _path(tenant))

    async def create_tenant(
        self, tenant: str, *, allowed_clusters: Sequence[str], admin_roles: Sequence[str] = ()
    ) -> None:
        """Create a tenant with at least one allowed cluster."""
        await self._put(_path(tenant), _info(allowed_clusters, admin_roles))

    async def update_tenant(
        self, tenant: str, *, allowed_clusters: Sequence[str], admin_roles: Sequence[str] = ()
    ) -> None:
        """Replace the admin roles and the allowed clusters of a tenant."""
        await self._post(_path(tenant), _info(allowed_clusters, admin_roles))

    async def delete_tenant(self, tenant: str, *, force: bool = False) -> None:
        """Delete a tenant. With `force`, delete its namespaces and topics too (needs forceDeleteTenantAllowed)."""
        await self._delete(_path(tenant), {"force": force})


def _path(tenant: str) -> str:
    return f"tenants/{segment(tenant)}"


def _info(allowed_clusters: Sequence[str], admin_roles: Sequence[str]) -> TenantInfo:
    return {"adminRoles": list(admin_roles), "allowedClusters": list(allowed_clusters)}
