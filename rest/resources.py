"""Resource groups, and resource quotas of bundles."""

from __future__ import annotations

from pulsarium.rest.data import ResourceGroup, ResourceQuota
from pulsarium.rest.group import Group, Namespace, segment


class ResourceGroups(Group):
    """`resourcegroups`."""

    async def get_resource_groups(self) -> list[str]:
        """Their names."""
        return await self._get(list[str], "resourcegroups")

    async def get_resource_group(self, name: str) -> ResourceGroup:
        """Its rates."""
        return await self._get(ResourceGroup, _path(name))

    async def create_resource_group(self, name: str, rates: ResourceGroup) -> None:
        """What is left out is without limit."""
        await self._put(_path(name), rates)

    async def update_resource_group(self, name: str, rates: ResourceGroup) -> None:
        """What is left out stays."""
        await self._put(_path(name), rates)

    async def delete_resource_group(self, name: str) -> None:
        """No namespace may be in it."""
        await self._delete(_path(name))


class ResourceQuotas(Group):
    """`resource-quotas`."""

    async def get_default_resource_quota(self) -> ResourceQuota:
        """Of bundles without one."""
        return await self._get(ResourceQuota, "resource-quotas")

    async def set_default_resource_quota(self, quota: ResourceQuota) -> None:
        """Set it."""
        await self._post("resource-quotas", quota)

    async def get_namespace_bundle_resource_quota(self, namespace: Namespace, bundle: str) -> ResourceQuota:
        """Of a bundle, `0x..._0x...`."""
        return await self._get(ResourceQuota, self._bundle(namespace, bundle))

    async def set_namespace_bundle_resource_quota(
        self, namespace: Namespace, bundle: str, quota: ResourceQuota
    ) -> None:
        """Set it."""
        await self._post(self._bundle(namespace, bundle), quota)

    async def reset_namespace_bundle_resource_quota(self, namespace: Namespace, bundle: str) -> None:
        """The default holds again."""
        await self._delete(self._bundle(namespace, bundle))

    def _bundle(self, namespace: Namespace, bundle: str) -> str:
        return f"resource-quotas/{self._namespace_name(namespace)}/{segment(bundle)}"


def _path(name: str) -> str:
    return f"resourcegroups/{segment(name)}"
