"""Settings of namespaces that are not got, set and removed alike."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.rest.group import Namespace, segment
from pulsarium.rest.of_names import OfNamespace
from pulsarium.rest.policies import BookieAffinity, OffloadPolicies


class NamespaceSettings(OfNamespace):
    """Where a namespace is and where its data goes, and what schemas there may be."""

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

    async def get_offload_threshold(self, namespace: Namespace) -> int | None:
        """Bytes of a topic from which on it is offloaded; -1 is never."""
        return await self._find(int, self._path(namespace, "offloadThreshold"))

    async def set_offload_threshold(self, namespace: Namespace, size: int) -> None:
        """Set it."""
        await self._put(self._path(namespace, "offloadThreshold"), size)

    async def get_offload_threshold_in_seconds(self, namespace: Namespace) -> int | None:
        """Age from which on data is offloaded; -1 is never."""
        return await self._find(int, self._path(namespace, "offloadThresholdInSeconds"))

    async def set_offload_threshold_in_seconds(self, namespace: Namespace, seconds: int) -> None:
        """Set it."""
        await self._put(self._path(namespace, "offloadThresholdInSeconds"), seconds)

    async def get_offload_delete_lag_ms(self, namespace: Namespace) -> int | None:
        """Milliseconds that offloaded ledgers stay in BookKeeper."""
        return await self._find(int, self._path(namespace, "offloadDeletionLagMs"))

    async def set_offload_delete_lag(self, namespace: Namespace, milliseconds: int) -> None:
        """Set that."""
        await self._put(self._path(namespace, "offloadDeletionLagMs"), milliseconds)

    async def clear_offload_delete_lag(self, namespace: Namespace) -> None:
        """Leave it to the broker."""
        await self._delete(self._path(namespace, "offloadDeletionLagMs"))

    async def get_offload_policies(self, namespace: Namespace) -> OffloadPolicies | None:
        """Where old ledgers are offloaded to."""
        return await self._find(OffloadPolicies, self._path(namespace, "offloadPolicies"))

    async def set_offload_policies(self, namespace: Namespace, policies: OffloadPolicies) -> None:
        """Set them."""
        await self._post(self._path(namespace, "offloadPolicies"), policies)

    async def remove_offload_policies(self, namespace: Namespace) -> None:
        """The broker's hold again."""
        await self._delete(self._path(namespace, "removeOffloadPolicies"))

    async def get_schema_auto_update_compatibility_strategy(self, namespace: Namespace) -> str | None:
        """How producers may change schemas, by its old name: like Backward, AutoUpdateDisabled."""
        return await self._find(str, self._path(namespace, "schemaAutoUpdateCompatibilityStrategy"))

    async def set_schema_auto_update_compatibility_strategy(self, namespace: Namespace, strategy: str) -> None:
        """Set that."""
        await self._put(self._path(namespace, "schemaAutoUpdateCompatibilityStrategy"), strategy)

    async def get_schema_compatibility_strategy(self, namespace: Namespace) -> str | None:
        """Which new schemas are accepted, like BACKWARD or FULL_TRANSITIVE."""
        return await self._find(str, self._path(namespace, "schemaCompatibilityStrategy"))

    async def set_schema_compatibility_strategy(self, namespace: Namespace, strategy: str) -> None:
        """Set it."""
        await self._put(self._path(namespace, "schemaCompatibilityStrategy"), strategy)

    async def get_deduplication_snapshot_interval(self, namespace: Namespace) -> int | None:
        """Entries after which sequence ids are saved for deduplication."""
        return await self._find(int, self._path(namespace, "deduplicationSnapshotInterval"))

    async def set_deduplication_snapshot_interval(self, namespace: Namespace, interval: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "deduplicationSnapshotInterval"), interval)

    async def remove_deduplication_snapshot_interval(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._post(self._path(namespace, "deduplicationSnapshotInterval"))

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
