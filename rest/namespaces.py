"""Namespaces: their life, topics, bundles, permissions and properties; policies are in a group of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pulsarium.rest.exchange import NO_BODY
from pulsarium.rest.group import Group, Namespace, segment, text_of
from pulsarium.rest.policies import ABSENT, NAMESPACE_DEFAULTS, SCHEMA_AUTO_UPDATE, BookieAffinity, Bundles

# What Pulsar's Policies class says where nothing was; a broker takes what is there literally.
_NEW_POLICIES: Final[Mapping[str, object]] = {
    name: value
    for name, value in NAMESPACE_DEFAULTS.items()
    if value is not ABSENT and name != SCHEMA_AUTO_UPDATE.kept  # which brokers show, and no client sends
}


class Namespaces(Group):
    """`namespaces`."""

    async def get_namespaces(self, tenant: str) -> list[str]:
        """Those of a tenant, as `tenant/namespace`."""
        return await self._get(list[str], f"namespaces/{segment(tenant)}")

    async def get_namespaces_of_cluster(self, cluster: str, tenant: str) -> list[str]:
        """The same by cluster, as of old."""
        return await self._get(list[str], f"/admin/namespaces/{cluster}/{tenant}")

    async def get_topics(
        self, namespace: Namespace, *, mode: str | None = None, include_system_topic: bool | None = None
    ) -> list[str]:
        """Its topics, of partitioned ones the partitions. `mode`: PERSISTENT, NON_PERSISTENT or ALL."""
        query = {"mode": mode, "includeSystemTopic": include_system_topic}
        return await self._get(list[str], self._path(namespace, "topics"), query)

    async def get_policies(self, namespace: Namespace) -> dict[str, Any]:
        """All that is set for it."""
        return await self._get(dict[str, Any], self._namespace(namespace))

    async def create_namespace(
        self, namespace: Namespace, *, bundles: int = 0, replication_clusters: Sequence[str] = ()
    ) -> None:
        """`bundles`: into how many it is split; 0: as the broker has it (defaultNumberOfNamespaceBundles)."""
        split = {"bundles": {"numBundles": bundles}} if bundles else {}
        body = {**_NEW_POLICIES, "replication_clusters": list(replication_clusters), **split}
        await self._put(self._namespace(namespace), body)

    async def delete_namespace(self, namespace: Namespace, *, force: bool = False) -> None:
        """`force`: its topics too (forceDeleteNamespaceAllowed)."""
        await self._delete(self._namespace(namespace), {"force": force})

    # ---- who may do what

    async def get_permissions(self, namespace: Namespace) -> dict[str, list[str]]:
        """What roles may do."""
        return await self._get(dict[str, list[str]], self._path(namespace, "permissions"))

    async def grant_permission_on_namespace(self, namespace: Namespace, role: str, actions: Sequence[str]) -> None:
        """`actions`: of produce, consume, functions, sources, sinks, packages."""
        await self._post(self._path(namespace, f"permissions/{segment(role)}"), list(actions))

    async def revoke_permissions_on_namespace(self, namespace: Namespace, role: str) -> None:
        """All that the role was granted."""
        await self._delete(self._path(namespace, f"permissions/{segment(role)}"))

    async def get_permission_on_subscription(self, namespace: Namespace) -> dict[str, list[str]]:
        """The roles that may use a subscription, by its name; others may all."""
        return await self._get(dict[str, list[str]], self._path(namespace, "permissions/subscription"))

    async def grant_permission_on_subscription(
        self, namespace: Namespace, subscription: str, roles: Sequence[str]
    ) -> None:
        """Allow roles to use it."""
        await self._post(self._path(namespace, f"permissions/subscription/{segment(subscription)}"), list(roles))

    async def revoke_permission_on_subscription(self, namespace: Namespace, subscription: str, role: str) -> None:
        """Take that back."""
        await self._delete(self._path(namespace, f"permissions/{segment(subscription)}/{segment(role)}"))

    # ---- bundles

    async def get_bundles(self, namespace: Namespace) -> Bundles:
        """Into which it is split."""
        return await self._get(Bundles, self._path(namespace, "bundles"))

    async def unload(
        self, namespace: Namespace, *, bundle: str | None = None, destination_broker: str | None = None
    ) -> None:
        """Close its topics, or those of a bundle; clients look them up again. `destination_broker`: `host:port`."""
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
        """`bundle`: one, or LARGEST or HOT. `algorithm`: of supportedNamespaceBundleSplitAlgorithms."""
        query = {"unload": unload, "splitAlgorithmName": algorithm}
        body = list(boundaries) if boundaries else NO_BODY
        await self._put(self._in_bundle(namespace, bundle, "split"), body, query)

    async def clear_namespace_backlog(
        self, namespace: Namespace, *, bundle: str | None = None, subscription: str | None = None
    ) -> None:
        """Drop what subscriptions have not read; of a bundle, of one subscription."""
        end = "" if subscription is None else f"/{segment(subscription)}"
        await self._post(self._in_bundle(namespace, bundle, f"clearBacklog{end}"))

    async def unsubscribe_namespace(
        self, namespace: Namespace, subscription: str, *, bundle: str | None = None
    ) -> None:
        """Delete a subscription from all topics, or from those of a bundle."""
        await self._post(self._in_bundle(namespace, bundle, f"unsubscribe/{segment(subscription)}"))

    # ---- properties

    async def get_properties(self, namespace: Namespace) -> dict[str, str]:
        """Its own."""
        return await self._get(dict[str, str], self._path(namespace, "properties"))

    async def set_properties(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Set these; others stay."""
        await self._put(self._path(namespace, "properties"), dict(properties))

    async def clear_properties(self, namespace: Namespace) -> None:
        """Remove them all."""
        await self._delete(self._path(namespace, "properties"))

    async def get_property(self, namespace: Namespace, key: str) -> str | None:
        """One."""
        return await self._get_text(self._path(namespace, f"property/{segment(key)}"))

    async def set_property(self, namespace: Namespace, key: str, value: str) -> None:
        """Set one."""
        await self._put(self._path(namespace, f"property/{segment(key)}/{segment(value)}"))

    async def remove_property(self, namespace: Namespace, key: str) -> str | None:
        """Remove one; gives what it was."""
        return text_of(await self._delete(self._path(namespace, f"property/{segment(key)}")))

    # ---- where it is, and where its data goes

    async def get_namespace_anti_affinity_group(self, namespace: Namespace) -> str | None:
        """Namespaces of one group go to several brokers."""
        return await self._get_text(self._path(namespace, "antiAffinity"))

    async def set_namespace_anti_affinity_group(self, namespace: Namespace, group: str) -> None:
        """Join a group."""
        await self._post(self._path(namespace, "antiAffinity"), group.encode())

    async def delete_namespace_anti_affinity_group(self, namespace: Namespace) -> None:
        """Leave it."""
        await self._delete(self._path(namespace, "antiAffinity"))

    async def get_anti_affinity_namespaces(self, tenant: str | None, cluster: str, group: str) -> list[str]:
        """The namespaces of a group that belong to a tenant."""
        path = f"namespaces/{segment(cluster)}/antiAffinity/{segment(group)}"
        # Java's client says `property`, which the broker does not read.
        return await self._get(list[str], path, {"tenant": tenant})

    async def get_bookie_affinity_group(self, namespace: Namespace) -> BookieAffinity | None:
        """Which bookies keep it."""
        return await self._find(BookieAffinity, self._path(namespace, "persistence/bookieAffinity"))

    async def set_bookie_affinity_group(self, namespace: Namespace, groups: BookieAffinity) -> None:
        """Set them."""
        await self._post(self._path(namespace, "persistence/bookieAffinity"), groups)

    async def delete_bookie_affinity_group(self, namespace: Namespace) -> None:
        """Any bookie may."""
        await self._delete(self._path(namespace, "persistence/bookieAffinity"))

    async def get_namespace_resource_group(self, namespace: Namespace) -> str | None:
        """The resource group it is in."""
        return await self._get_text(self._path(namespace, "resourcegroup"))

    async def set_namespace_resource_group(self, namespace: Namespace, group: str) -> None:
        """Put it into one."""
        await self._post(self._path(namespace, f"resourcegroup/{segment(group)}"))

    async def remove_namespace_resource_group(self, namespace: Namespace) -> None:
        """Take it out."""
        await self._delete(self._path(namespace, "resourcegroup"))

    async def get_topic_hash_positions(
        self, namespace: Namespace, bundle: str, topics: Sequence[str] = ()
    ) -> dict[str, object]:
        """Hashes of the topics in a bundle, of all or of these."""
        path = self._path(namespace, f"{segment(bundle)}/topicHashPositions")
        return await self._get(dict[str, object], path, {"topics": list(topics)})

    async def update_migration_state(self, namespace: Namespace, migrated: bool) -> None:
        """Whether it has migrated to another cluster."""
        await self._post(self._path(namespace, "migration"), migrated)

    def _path(self, namespace: Namespace, route: str) -> str:
        return f"{self._namespace(namespace)}/{route}"

    def _in_bundle(self, namespace: Namespace, bundle: str | None, action: str) -> str:
        return self._path(namespace, action if bundle is None else f"{segment(bundle)}/{action}")
