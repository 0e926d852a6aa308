"""Calls about namespaces: topics, bundles, permissions and properties. Policies have a group of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pulsarium.rest.exchange import NO_BODY
from pulsarium.rest.group import CallGroup, Namespace, segment, text_of
from pulsarium.rest.policies import ABSENT, NAMESPACE_DEFAULTS, SCHEMA_AUTO_UPDATE, BookieAffinity, Bundles

# The defaults of Pulsar's Policies class. A broker stores literally what a client sends.
_NEW_POLICIES: Final[Mapping[str, object]] = {
    name: value
    for name, value in NAMESPACE_DEFAULTS.items()
    if value is not ABSENT and name != SCHEMA_AUTO_UPDATE.kept  # brokers show this policy, and no client sends it
}


class Namespaces(CallGroup):
    """Calls of `namespaces`."""

    async def get_namespaces(self, tenant: str) -> list[str]:
        """Return the namespaces of a tenant, as `tenant/namespace`."""
        return await self._get(list[str], f"namespaces/{segment(tenant)}")

    async def get_namespaces_of_cluster(self, cluster: str, tenant: str) -> list[str]:
        """Return the namespaces of a tenant in a cluster, by the old API."""
        return await self._get(list[str], f"/admin/namespaces/{cluster}/{tenant}")

    async def get_topics(
        self, namespace: Namespace, *, mode: str | None = None, include_system_topic: bool | None = None
    ) -> list[str]:
        """Return the topics of a namespace; of partitioned topics, the partitions.

        `mode`: PERSISTENT, NON_PERSISTENT or ALL.
        """
        query = {"mode": mode, "includeSystemTopic": include_system_topic}
        return await self._get(list[str], self._path(namespace, "topics"), query)

    async def get_policies(self, namespace: Namespace) -> dict[str, Any]:
        """Return all policies of a namespace."""
        return await self._get(dict[str, Any], self._namespace(namespace))

    async def create_namespace(
        self, namespace: Namespace, *, bundles: int = 0, replication_clusters: Sequence[str] = ()
    ) -> None:
        """Create a namespace with `bundles` bundles. 0: the broker's defaultNumberOfNamespaceBundles."""
        split = {"bundles": {"numBundles": bundles}} if bundles else {}
        body = {**_NEW_POLICIES, "replication_clusters": list(replication_clusters), **split}
        await self._put(self._namespace(namespace), body)

    async def delete_namespace(self, namespace: Namespace, *, force: bool = False) -> None:
        """Delete a namespace. With `force`, delete its topics too (needs forceDeleteNamespaceAllowed)."""
        await self._delete(self._namespace(namespace), {"force": force})

    # ---- permissions

    async def get_permissions(self, namespace: Namespace) -> dict[str, list[str]]:
        """Return the granted actions by role."""
        return await self._get(dict[str, list[str]], self._path(namespace, "permissions"))

    async def grant_permission_on_namespace(self, namespace: Namespace, role: str, actions: Sequence[str]) -> None:
        """Grant a role `actions` of produce, consume, functions, sources, sinks and packages."""
        await self._post(self._path(namespace, f"permissions/{segment(role)}"), list(actions))

    async def revoke_permissions_on_namespace(self, namespace: Namespace, role: str) -> None:
        """Revoke all actions that the role was granted."""
        await self._delete(self._path(namespace, f"permissions/{segment(role)}"))

    async def get_permission_on_subscription(self, namespace: Namespace) -> dict[str, list[str]]:
        """Return the roles that may use each subscription. Every role may use a subscription that is not listed."""
        return await self._get(dict[str, list[str]], self._path(namespace, "permissions/subscription"))

    async def grant_permission_on_subscription(
        self, namespace: Namespace, subscription: str, roles: Sequence[str]
    ) -> None:
        """Set the roles that may use a subscription. Other roles may not use it."""
        await self._post(self._path(namespace, f"permissions/subscription/{segment(subscription)}"), list(roles))

    async def revoke_permission_on_subscription(self, namespace: Namespace, subscription: str, role: str) -> None:
        """Revoke a role's permission to use a subscription."""
        await self._delete(self._path(namespace, f"permissions/{segment(subscription)}/{segment(role)}"))

    # ---- bundles

    async def get_bundles(self, namespace: Namespace) -> Bundles:
        """Return the bundles of the namespace."""
        return await self._get(Bundles, self._path(namespace, "bundles"))

    async def unload(
        self, namespace: Namespace, *, bundle: str | None = None, destination_broker: str | None = None
    ) -> None:
        """Close the topics of the namespace or of one bundle.

        Clients look them up again. `destination_broker`: `host:port`.
        """
        query = {"destinationBroker": destination_broker}
        await self._put(self._in_bundle(namespace, bundle, "unload"), query=query)

    async def split_namespace_bundle(
        self,
        namespace: Namespace,
        bundle: str,
        *,
        unload: bool = False,
        algorithm: str | None = None,
        boundaries: Sequence[int] = (),
    ) -> None:
        """Split a bundle: its range, LARGEST or HOT. `algorithm` is one of supportedNamespaceBundleSplitAlgorithms."""
        query = {"unload": unload, "splitAlgorithmName": algorithm}
        body = list(boundaries) if boundaries else NO_BODY
        await self._put(self._in_bundle(namespace, bundle, "split"), body, query)

    async def clear_namespace_backlog(
        self, namespace: Namespace, *, bundle: str | None = None, subscription: str | None = None
    ) -> None:
        """Clear the backlog of all subscriptions, or only those of a bundle, or of one name."""
        end = "" if subscription is None else f"/{segment(subscription)}"
        await self._post(self._in_bundle(namespace, bundle, f"clearBacklog{end}"))

    async def unsubscribe_namespace(
        self, namespace: Namespace, subscription: str, *, bundle: str | None = None
    ) -> None:
        """Delete a subscription from all topics, or from those of a bundle."""
        await self._post(self._in_bundle(namespace, bundle, f"unsubscribe/{segment(subscription)}"))

    # ---- properties

    async def get_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of the namespace."""
        return await self._get(dict[str, str], self._path(namespace, "properties"))

    async def set_properties(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Set these properties. Other properties stay."""
        await self._put(self._path(namespace, "properties"), dict(properties))

    async def clear_properties(self, namespace: Namespace) -> None:
        """Remove all properties."""
        await self._delete(self._path(namespace, "properties"))

    async def get_property(self, namespace: Namespace, key: str) -> str | None:
        """Return the value of a property."""
        return await self._get_text(self._path(namespace, f"property/{segment(key)}"))

    async def set_property(self, namespace: Namespace, key: str, value: str) -> None:
        """Set a property."""
        await self._put(self._path(namespace, f"property/{segment(key)}/{segment(value)}"))

    async def remove_property(self, namespace: Namespace, key: str) -> str | None:
        """Remove a property, and return its value."""
        return text_of(await self._delete(self._path(namespace, f"property/{segment(key)}")))

    # ---- placement and resource groups

    async def get_namespace_anti_affinity_group(self, namespace: Namespace) -> str | None:
        """Return the anti-affinity group. Namespaces of one group go to different brokers."""
        return await self._get_text(self._path(namespace, "antiAffinity"))

    async def set_namespace_anti_affinity_group(self, namespace: Namespace, group: str) -> None:
        """Set the anti-affinity group."""
        await self._post(self._path(namespace, "antiAffinity"), group.encode())

    async def delete_namespace_anti_affinity_group(self, namespace: Namespace) -> None:
        """Leave the anti-affinity group."""
        await self._delete(self._path(namespace, "antiAffinity"))

    async def get_anti_affinity_namespaces(self, tenant: str | None, cluster: str, group: str) -> list[str]:
        """Return the namespaces of an anti-affinity group that belong to a tenant."""
        path = f"namespaces/{segment(cluster)}/antiAffinity/{segment(group)}"
        # Java's client sends `property`, which the broker does not read.
        return await self._get(list[str], path, {"tenant": tenant})

    async def get_bookie_affinity_group(self, namespace: Namespace) -> BookieAffinity | None:
        """Return the groups of bookies that store the namespace."""
        return await self._find(BookieAffinity, self._path(namespace, "persistence/bookieAffinity"))

    async def set_bookie_affinity_group(self, namespace: Namespace, groups: BookieAffinity) -> None:
        """Set the groups of bookies that store the namespace."""
        await self._post(self._path(namespace, "persistence/bookieAffinity"), groups)

    async def delete_bookie_affinity_group(self, namespace: Namespace) -> None:
        """Let all bookies store the namespace."""
        await self._delete(self._path(namespace, "persistence/bookieAffinity"))

    async def get_namespace_resource_group(self, namespace: Namespace) -> str | None:
        """Return the resource group of the namespace."""
        return await self._get_text(self._path(namespace, "resourcegroup"))

    async def set_namespace_resource_group(self, namespace: Namespace, group: str) -> None:
        """Set the resource group of the namespace."""
        await self._post(self._path(namespace, f"resourcegroup/{segment(group)}"))

    async def remove_namespace_resource_group(self, namespace: Namespace) -> None:
        """Remove the namespace from its resource group."""
        await self._delete(self._path(namespace, "resourcegroup"))

    async def get_topic_hash_positions(
        self, namespace: Namespace, bundle: str, topics: Sequence[str] = ()
    ) -> dict[str, object]:
        """Return the hashes of all topics in a bundle, or of `topics`."""
        path = self._path(namespace, f"{segment(bundle)}/topicHashPositions")
        return await self._get(dict[str, object], path, {"topics": list(topics)})

    async def update_migration_state(self, namespace: Namespace, migrated: bool) -> None:
        """Set whether the namespace has migrated to another cluster."""
        await self._post(self._path(namespace, "migration"), migrated)

    def _path(self, namespace: Namespace, route: str) -> str:
        return f"{self._namespace(namespace)}/{route}"

    def _in_bundle(self, namespace: Namespace, bundle: str | None, action: str) -> str:
        return self._path(namespace, action if bundle is None else f"{segment(bundle)}/{action}")
