"""Topics: their life, and what there is of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT
from pulsarium.rest.group import Group, Namespace, Topic, segment
from pulsarium.rest.messages import Messages
from pulsarium.rest.partitions import Partitions
from pulsarium.rest.stats import (
    PartitionedTopicInternalStats,
    PartitionedTopicStats,
    TopicInternalStats,
    TopicStats,
)
from pulsarium.rest.subscriptions import Subscriptions
from pulsarium.rest.upkeep import Upkeep

DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)


class Life(Group):
    """To be, to have properties, and who may use it."""

    async def get_list(
        self,
        namespace: Namespace,
        *,
        domain: str | None = None,
        bundle: str | None = None,
        include_system_topic: bool = False,
    ) -> list[str]:
        """The topics of a namespace by full names, in order; of partitioned ones the partitions.

        `domain`: persistent or non-persistent alone. `bundle`: `0x..._0x...`.
        """
        query = {"bundle": bundle, "includeSystemTopic": include_system_topic}
        return await self._listed(namespace, "", query, DOMAINS if domain is None else (domain,))

    async def get_partitioned_topic_list(
        self, namespace: Namespace, *, include_system_topic: bool = False
    ) -> list[str]:
        """The partitioned topics of a namespace by full names, in order."""
        return await self._listed(namespace, "/partitioned", {"includeSystemTopic": include_system_topic}, DOMAINS)

    async def _listed(
        self, namespace: Namespace, end: str, query: Mapping[str, object], domains: Sequence[str]
    ) -> list[str]:
        where = self._namespace_name(namespace)
        found: set[str] = set()
        for domain in domains:
            found.update(await self._find(list[str], f"{domain}/{where}{end}", query) or ())
        return sorted(found)

    async def create_non_partitioned_topic(self, topic: Topic, properties: Mapping[str, str] | None = None) -> None:
        """A topic without partitions."""
        await self._put(self._topic(topic), dict(properties or {}))

    async def delete(self, topic: Topic, *, force: bool = False) -> None:
        """With its schemas. `force`: also while clients are connected; they are closed."""
        await self._delete(self._topic(topic), {"force": force, "deleteSchema": True})

    async def get_properties(self, topic: Topic) -> dict[str, str] | None:
        """Its own; of a partitioned topic ask that."""
        return await self._find(dict[str, str], f"{self._topic(topic)}/properties")

    async def update_properties(self, topic: Topic, properties: Mapping[str, str]) -> None:
        """Set these; others stay."""
        await self._put(f"{self._topic(topic)}/properties", dict(properties))

    async def remove_properties(self, topic: Topic, key: str | None) -> None:
        """Remove one."""
        await self._delete(f"{self._topic(topic)}/properties", {"key": key})

    async def get_permissions(self, topic: Topic) -> dict[str, list[str]]:
        """What roles may do, from its namespace too."""
        return await self._get(dict[str, list[str]], f"{self._topic(topic)}/permissions")

    async def grant_permission(self, topic: Topic, role: str, actions: Sequence[str]) -> None:
        """`actions`: of produce, consume, functions, sources, sinks, packages."""
        await self._post(f"{self._topic(topic)}/permissions/{segment(role)}", list(actions))

    async def revoke_permissions(self, topic: Topic, role: str) -> None:
        """All that the role was granted here."""
        await self._delete(f"{self._topic(topic)}/permissions/{segment(role)}")


class Stats(Group):
    """What is counted of topics."""

    async def get_stats(
        self,
        topic: Topic,
        *,
        get_precise_backlog: bool = False,
        subscription_backlog_size: bool = True,
        get_earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> TopicStats:
        """Rates, producers, subscriptions, backlog. A precise backlog counts messages, another entries."""
        query = {
            "getPreciseBacklog": get_precise_backlog,
            "subscriptionBacklogSize": subscription_backlog_size,
            "getEarliestTimeInBacklog": get_earliest_time_in_backlog,
            "excludePublishers": exclude_publishers,
            "excludeConsumers": exclude_consumers,
        }
        return await self._get(TopicStats, f"{self._topic(topic)}/stats", query)

    async def get_partitioned_stats(
        self,
        topic: Topic,
        *,
        per_partition: bool = False,
        get_precise_backlog: bool = False,
        subscription_backlog_size: bool = True,
        get_earliest_time_in_backlog: bool = False,
        exclude_publishers: bool = False,
        exclude_consumers: bool = False,
    ) -> PartitionedTopicStats:
        """Of all partitions together; `per_partition`: of each too."""
        query = {
            "perPartition": per_partition,
            "getPreciseBacklog": get_precise_backlog,
            "subscriptionBacklogSize": subscription_backlog_size,
            "getEarliestTimeInBacklog": get_earliest_time_in_backlog,
            "excludePublishers": exclude_publishers,
            "excludeConsumers": exclude_consumers,
        }
        return await self._get(PartitionedTopicStats, f"{self._topic(topic)}/partitioned-stats", query)

    async def get_internal_stats(self, topic: Topic, *, metadata: bool = False) -> TopicInternalStats:
        """Ledgers and cursors. `metadata`: that of the ledgers too."""
        return await self._get(TopicInternalStats, f"{self._topic(topic)}/internalStats", {"metadata": metadata})

    async def get_partitioned_internal_stats(self, topic: Topic) -> PartitionedTopicInternalStats:
        """Of each partition."""
        return await self._get(PartitionedTopicInternalStats, f"{self._topic(topic)}/partitioned-internalStats")

    async def get_internal_info(self, topic: Topic) -> dict[str, object]:
        """The metadata of its ledgers and cursors, as it is kept."""
        return await self._get(dict[str, object], f"{self._topic(topic)}/internal-info")


class TopicsWithoutMessages(Life, Partitions, Stats, Subscriptions, Upkeep):
    """`topics`, but for what gives messages and ids of messages."""


class Topics(TopicsWithoutMessages, Messages):
    """`topics`, with those as the broker gives them."""
