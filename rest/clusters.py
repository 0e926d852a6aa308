"""Calls about clusters, their peers, failure domains and isolation policies."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.rest.data import (
    BrokerIsolation,
    ClusterData,
    ClusterPolicies,
    ClusterUrl,
    FailureDomain,
    NamespaceIsolation,
)
from pulsarium.rest.exchange import RestRequest
from pulsarium.rest.group import CallGroup, segment


class Clusters(CallGroup):
    """Calls of `clusters`."""

    async def get_clusters(self) -> list[str]:
        """Return the names of the clusters."""
        return await self._get(list[str], "clusters")

    async def get_cluster(self, cluster: str) -> ClusterData:
        """Return the addresses of a cluster."""
        return await self._get(ClusterData, _path(cluster))

    async def create_cluster(self, cluster: str, data: ClusterData) -> None:
        """Create the entry of another cluster."""
        await self._put(_path(cluster), data)

    async def update_cluster(self, cluster: str, data: ClusterData) -> None:
        """Replace the addresses of a cluster."""
        await self._post(_path(cluster), data)

    async def delete_cluster(self, cluster: str) -> None:
        """Delete the entry of a cluster. Namespaces can no longer use it."""
        await self._delete(_path(cluster))

    async def get_peer_cluster_names(self, cluster: str) -> list[str] | None:
        """Return the peer clusters, which hold other namespaces of the same tenants."""
        return await self._find(list[str], f"{_path(cluster)}/peers")

    async def update_peer_cluster_names(self, cluster: str, peers: Sequence[str]) -> None:
        """Set the peer clusters."""
        await self._post(f"{_path(cluster)}/peers", list(peers))

    async def get_cluster_migration(self, cluster: str) -> ClusterPolicies | None:
        """Return the migration of a cluster: its target, and whether it has migrated."""
        return await self._find(ClusterPolicies, f"{_path(cluster)}/migrate")

    async def update_cluster_migration(self, cluster: str, to: ClusterUrl, *, migrated: bool) -> None:
        """Set the target of a cluster's migration, and whether the cluster has migrated."""
        await self._post(f"{_path(cluster)}/migrate", to, {"migrated": migrated})

    # ---- failure domains

    async def get_failure_domains(self, cluster: str) -> dict[str, FailureDomain]:
        """Return all failure domains by name. Return none if the broker has no folder for them yet."""
        reply = await self._exchange.send(RestRequest("GET", f"{_path(cluster)}/failureDomains", known=(404,)))
        if reply.status == 404:
            if "FailureDomain" in reply.reason:
                return {}
            raise self._exchange.refused(reply)
        found: dict[str, FailureDomain] = reply.data()
        return found

    async def get_failure_domain(self, cluster: str, domain: str) -> FailureDomain:
        """Return a failure domain."""
        return await self._get(FailureDomain, _domain(cluster, domain))

    async def create_failure_domain(self, cluster: str, domain: str, data: FailureDomain) -> None:
        """Create a failure domain. A broker may be in one at most."""
        await self._post(_domain(cluster, domain), data)

    async def update_failure_domain(self, cluster: str, domain: str, data: FailureDomain) -> None:
        """Replace a failure domain."""
        await self._post(_domain(cluster, domain), data)

    async def delete_failure_domain(self, cluster: str, domain: str) -> None:
        """Delete a failure domain, but not its brokers."""
        await self._delete(_domain(cluster, domain))

    # ---- isolation policies

    async def get_namespace_isolation_policies(self, cluster: str) -> dict[str, NamespaceIsolation]:
        """Return the namespace isolation policies by name."""
        return await self._get(dict[str, NamespaceIsolation], _isolation(cluster))

    async def get_namespace_isolation_policy(self, cluster: str, policy: str) -> NamespaceIsolation:
        """Return a namespace isolation policy."""
        return await self._get(NamespaceIsolation, _isolation(cluster, policy))

    async def create_namespace_isolation_policy(self, cluster: str, policy: str, data: NamespaceIsolation) -> None:
        """Create or replace a namespace isolation policy."""
        await self._post(_isolation(cluster, policy), data)

    async def delete_namespace_isolation_policy(self, cluster: str, policy: str) -> None:
        """Delete a namespace isolation policy. Namespaces stay on their brokers until they are unloaded."""
        await self._delete(_isolation(cluster, policy))

    async def get_brokers_with_namespace_isolation_policy(self, cluster: str) -> list[BrokerIsolation]:
        """Return all brokers with the namespaces that isolation policies give them."""
        return await self._get(list[BrokerIsolation], _isolation(cluster, "brokers"))

    async def get_broker_with_namespace_isolation_policy(self, cluster: str, broker: str) -> BrokerIsolation:
        """Return the namespaces that isolation policies give to one broker (`host:port`)."""
        return await self._get(BrokerIsolation, f"{_isolation(cluster, 'brokers')}/{segment(broker)}")


def _path(cluster: str) -> str:
    return f"clusters/{segment(cluster)}"


def _domain(cluster: str, domain: str) -> str:
    return f"{_path(cluster)}/failureDomains/{segment(domain)}"


def _isolation(cluster: str, policy: str | None = None) -> str:
    end = "" if policy is None else f"/{segment(policy)}"
    return f"{_path(cluster)}/namespaceIsolationPolicies{end}"
