"""Brokers: health, version, settings; what they measure; bookies."""

from __future__ import annotations

from typing import Any

from pulsarium.rest.data import BookieInfo, BookiesClusterInfo, BrokerInfo
from pulsarium.rest.group import Group, segment


class Brokers(Group):
    """`brokers`."""

    async def get_active_brokers(self, cluster: str) -> list[str]:
        """Those that run, as `host:port`."""
        return await self._get(list[str], f"brokers/{segment(cluster)}")

    async def get_leader_broker(self) -> BrokerInfo:
        """The one that leads."""
        return await self._get(BrokerInfo, "brokers/leaderBroker")

    async def get_owned_namespaces(self, cluster: str, broker: str) -> dict[str, dict[str, Any]]:
        """The bundles that a broker owns, with their state."""
        path = f"brokers/{segment(cluster)}/{segment(broker)}/ownedNamespaces"
        return await self._get(dict[str, dict[str, Any]], path)

    async def update_dynamic_configuration(self, name: str, value: str) -> None:
        """Change a setting of all brokers while they run."""
        await self._post(f"brokers/configuration/{segment(name)}/{segment(value)}")

    async def delete_dynamic_configuration(self, name: str) -> None:
        """broker.conf holds again."""
        await self._delete(f"brokers/configuration/{segment(name)}")

    async def get_dynamic_configuration_names(self) -> list[str]:
        """The settings that can be changed."""
        return await self._get(list[str], "brokers/configuration")

    async def get_all_dynamic_configurations(self) -> dict[str, str]:
        """The settings that were."""
        return await self._get(dict[str, str], "brokers/configuration/values")

    async def get_runtime_configurations(self) -> dict[str, str]:
        """Every setting."""
        return await self._get(dict[str, str], "brokers/configuration/runtime")

    async def get_internal_configuration_data(self) -> dict[str, Any]:
        """Where metadata and ledgers are kept."""
        return await self._get(dict[str, Any], "brokers/internal-configuration")

    async def healthcheck(self, *, topic_version: str | None = None) -> str | None:
        """Lets the broker send itself a message; "ok". `topic_version`: V1 or V2, through which health topic."""
        return await self._get_text("brokers/health", {"topicVersion": topic_version})

    async def backlog_quota_check(self) -> None:
        """Look at all backlog quotas now."""
        await self._get(str, "brokers/backlog-quota-check")

    async def get_version(self) -> str:
        """The broker's."""
        return await self._get_text("brokers/version") or ""

    async def shut_down_broker_gracefully(
        self, *, max_concurrent_unload_per_sec: int = 0, forced_terminate_topic: bool = False
    ) -> None:
        """Stop it, topics first; 0 is without limit. `forced_terminate_topic`: without waiting for them."""
        query = {
            "maxConcurrentUnloadPerSec": max_concurrent_unload_per_sec,
            "forcedTerminateTopic": forced_terminate_topic,
        }
        await self._post("brokers/shutdown", query=query)


class BrokerStats(Group):
    """`broker-stats`."""

    async def get_metrics(self) -> list[dict[str, Any]]:
        """As monitoring takes them."""
        return await self._get(list[dict[str, Any]], "broker-stats/metrics")

    async def get_mbeans(self) -> list[dict[str, Any]]:
        """JVM's."""
        return await self._get(list[dict[str, Any]], "broker-stats/mbeans")

    async def get_topics(self) -> dict[str, Any]:
        """Stats of all topics: by namespace, bundle and domain."""
        return await self._get(dict[str, Any], "broker-stats/topics")

    async def get_load_report(self) -> dict[str, Any] | None:
        """What load balancing goes by, if it does."""
        return await self._find(dict[str, Any], "broker-stats/load-report")

    async def get_allocator_stats(self, allocator: str) -> dict[str, Any]:
        """Of a memory allocator."""
        return await self._get(dict[str, Any], f"broker-stats/allocator-stats/{segment(allocator)}")


class Bookies(Group):
    """`bookies`."""

    async def get_bookies_rack_info(self) -> dict[str, dict[str, BookieInfo]]:
        """Which bookie is in which rack, by group."""
        return await self._get(dict[str, dict[str, BookieInfo]], "bookies/racks-info")

    async def get_bookies(self) -> BookiesClusterInfo:
        """All of them."""
        return await self._get(BookiesClusterInfo, "bookies/all")

    async def get_bookie_rack_info(self, bookie: str) -> BookieInfo:
        """Of one, `host:port`."""
        return await self._get(BookieInfo, f"bookies/racks-info/{segment(bookie)}")

    async def update_bookie_rack_info(self, bookie: str, info: BookieInfo, *, group: str = "default") -> None:
        """Say in which rack one is."""
        await self._post(f"bookies/racks-info/{segment(bookie)}", info, {"group": group})

    async def delete_bookie_rack_info(self, bookie: str) -> None:
        """Forget it."""
        await self._delete(f"bookies/racks-info/{segment(bookie)}")
