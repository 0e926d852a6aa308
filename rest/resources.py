"""Calls about resource groups, and resource quotas of bundles."""

from __future__ import annotations

from pulsarium.rest.data import ResourceGroup, ResourceQuota
from pulsarium.rest.group import CallGroup, Namespace, segment


class ResourceGroups(CallGroup):
    """Calls of `resourcegroups`."""

    async def get_resource_groups(self) -> list[str]:
        """Return the names of the resource groups."""
        return await self._get(list[str], "resourcegroups")

    async def get_resource_group(self, name: str) -> ResourceGroup:
        """Return the rates of a resource group."""
        return await self._get(ResourceGroup, _path(name))

    async def create_resource_group(self, name: str, rates: ResourceGroup) -> None:
        """Create a resource group. Rates that are missing are without limit."""
        await self._put(_path(name), rates)

    async def update_resource_group(self, name: str, rates: ResourceGroup) -> None:
        """Set rates of a resource group. Rates that are missing stay."""
        await self._put(_path(name), rates)

    async def delete_resource_group(self, name: str) -> None:
        """Delete a resource group. The broker refuses while namespaces are in it."""
        await self._delete(_path(name))


class ResourceQuotas(CallGroup):
    """Calls of `resource-quotas`."""

    async def get_default_resource_quota(self) -> ResourceQuota:
        """Return the quota of bundles without a quota of their own."""
        return await self._get(ResourceQuota, "resource-quotas")

    async def set_default_resource_quota(self, quota: ResourceQuota) -> None:
        """Set the quota of bundles without a quota of their own."""
        await self._post("resource-quotas", quota)

    async def get_namespace_bundle_resource_quota(self, namespace: Namespace, bundle: str) -> ResourceQuota:
        """Return the quota of a bundle, such as `0x..._0x...`."""
        return await self._get(ResourceQuota, self._bundle(namespace, bundle))

    async def set_namespace_bundle_resource_quota(
        self, namespace: Namespace, bundle: str, quota: ResourceQuota
    ) -> None:
        """Set the quota of a bundle."""
        await self._post(self._bundle(namespace, bundle), quota)

    async def reset_namespace_bundle_resource_quota(self, namespace: Namespace, bundle: str) -> None:
        """Delete the quota of a bundle, so that the default takes effect."""
        await self._delete(self._bundle(namespace, bundle))

    def _bundle(self, namespace: Namespace, bundle: str) -> str:
        return f"resource-quotas/{self._namespace_name(namespace)}/{segment(bundle)}"


def _path(name: str) -> str:
    return f"resourcegroups/{segment(name)}"
