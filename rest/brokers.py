"""Calls about brokers, their metrics and bookies."""

from __future__ import annotations

from typing import Any

from pulsarium.rest.data import BookieInfo, BookiesClusterInfo, BrokerInfo
from pulsarium.rest.group import CallGroup, segment


class Brokers(CallGroup):
    """Calls of `brokers`: health, version and settings."""

    async def get_active_brokers(self, cluster: str) -> list[str]:
        """Return the active brokers, as `host:port`."""
        return await self._get(list[str], f"brokers/{segment(cluster)}")

    async def get_leader_broker(self) -> BrokerInfo:
        """Return the leader broker."""
        return await self._get(BrokerInfo, "brokers/leaderBroker")

    async def get_owned_namespaces(self, cluster: str, broker: str) -> dict[str, dict[str, Any]]:
        """Return the namespace bundles that a broker owns, with their state."""
        path = f"brokers/{segment(cluster)}/{segment(broker)}/ownedNamespaces"
        return await self._get(dict[str, dict[str, Any]], path)

    async def update_dynamic_configuration(self, name: str, value: str) -> None:
        """Change a dynamic setting on all brokers."""
        await self._post(f"brokers/configuration/{segment(name)}/{segment(value)}")

    async def delete_dynamic_configuration(self, name: str) -> None:
        """Delete a dynamic setting, so that broker.conf takes effect again."""
        await self._delete(f"brokers/configuration/{segment(name)}")

    async def get_dynamic_configuration_names(self) -> list[str]:
        """Return the names of all dynamic settings."""
        return await self._get(list[str], "brokers/configuration")

    async def get_all_dynamic_configurations(self) -> dict[str, str]:
        """Return the dynamic settings that are set."""
        return await self._get(dict[str, str], "brokers/configuration/values")

    async def get_runtime_configurations(self) -> dict[str, str]:
        """Return all settings of the broker."""
        return await self._get(dict[str, str], "brokers/configuration/runtime")

    async def get_internal_configuration_data(self) -> dict[str, Any]:
        """Return the addresses of the metadata store and the ledgers."""
        return await self._get(dict[str, Any], "brokers/internal-configuration")

    async def healthcheck(self, *, topic_version: str | None = None) -> str | None:
        """Let the broker send itself a message, and return "ok". `topic_version` selects the health topic: V1 or V2."""
        return await self._get_text("brokers/health", {"topicVersion": topic_version})

    async def backlog_quota_check(self) -> None:
        """Check all backlog quotas now."""
        await self._get(str, "brokers/backlog-quota-check")

    async def get_version(self) -> str:
        """Return the broker's version."""
        return await self._get_text("brokers/version") or ""

    async def shut_down_broker_gracefully(
        self, *, max_concurrent_unload_per_sec: int = 0, forced_terminate_topic: bool = False
    ) -> None:
        """Unload the broker's topics, and stop the broker.

        `max_concurrent_unload_per_sec` is a rate; 0 is without limit. With `forced_terminate_topic`, do not wait for
        the topics.
        """
        query = {
            "maxConcurrentUnloadPerSec": max_concurrent_unload_per_sec,
            "forcedTerminateTopic": forced_terminate_topic,
        }
        await self._post("brokers/shutdown", query=query)


class BrokerStats(CallGroup):
    """Calls of `broker-stats`: metrics and load."""

    async def get_metrics(self) -> list[dict[str, Any]]:
        """Return the broker's metrics, for monitoring."""
        return await self._get(list[dict[str, Any]], "broker-stats/metrics")

    async def get_mbeans(self) -> list[dict[str, Any]]:
        """Return the JVM's MBeans."""
        return await self._get(list[dict[str, Any]], "broker-stats/mbeans")

    async def get_topics(self) -> dict[str, Any]:
        """Return the stats of all topics, by namespace, bundle and domain."""
        return await self._get(dict[str, Any], "broker-stats/topics")

    async def get_load_report(self) -> dict[str, Any] | None:
        """Return the load report for load balancing, or None without load balancing."""
        return await self._find(dict[str, Any], "broker-stats/load-report")

    async def get_allocator_stats(self, allocator: str) -> dict[str, Any]:
        """Return the stats of a memory allocator."""
        return await self._get(dict[str, Any], f"broker-stats/allocator-stats/{segment(allocator)}")


class Bookies(CallGroup):
    """Calls of `bookies`: racks."""

    async def get_bookies_rack_info(self) -> dict[str, dict[str, BookieInfo]]:
        """Return the racks of bookies, by group and bookie."""
        return await self._get(dict[str, dict[str, BookieInfo]], "bookies/racks-info")

    async def get_bookies(self) -> BookiesClusterInfo:
        """Return all bookies."""
        return await self._get(BookiesClusterInfo, "bookies/all")

    async def get_bookie_rack_info(self, bookie: str) -> BookieInfo:
        """Return the rack of a bookie (`host:port`)."""
        return await self._get(BookieInfo, f"bookies/racks-info/{segment(bookie)}")

    async def update_bookie_rack_info(self, bookie: str, info: BookieInfo, *, group: str = "default") -> None:
        """Set the rack of a bookie."""
        await self._post(f"bookies/racks-info/{segment(bookie)}", info, {"group": group})

    async def delete_bookie_rack_info(self, bookie: str) -> None:
        """Delete the rack of a bookie."""
        await self._delete(f"bookies/racks-info/{segment(bookie)}")
