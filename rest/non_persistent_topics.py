"""Non-persistent topics, by calls of their own."""

from __future__ import annotations

from pulsarium.rest.group import Group, Namespace, Topic, segment
from pulsarium.rest.stats import PartitionedTopicMetadata, TopicInternalStats, TopicStats


class NonPersistentTopics(Group):
    """Names begin with non-persistent://. `topics` can do all of this too."""

    async def create_partitioned_topic(self, topic: Topic, partitions: int) -> None:
        """A topic with so many partitions."""
        await self._put(f"{self._topic(topic)}/partitions", partitions)

    async def get_partitioned_topic_metadata(self, topic: Topic) -> PartitionedTopicMetadata:
        """How many partitions it has."""
        return await self._get(PartitionedTopicMetadata, f"{self._topic(topic)}/partitions")

    async def get_stats(self, topic: Topic) -> TopicStats:
        """Rates, producers and subscriptions."""
        return await self._get(TopicStats, f"{self._topic(topic)}/stats")

    async def get_internal_stats(self, topic: Topic) -> TopicInternalStats:
        """In the form of a persistent topic's."""
        return await self._get(TopicInternalStats, f"{self._topic(topic)}/internalStats")

    async def unload(self, topic: Topic) -> None:
        """Close it; clients look it up again."""
        await self._put(f"{self._topic(topic)}/unload")

    async def get_list(self, namespace: Namespace) -> list[str]:
        """The topics of a namespace."""
        return await self._get(list[str], f"non-persistent/{self._namespace_name(namespace)}")

    async def get_list_in_bundle(self, namespace: Namespace, bundle: str) -> list[str]:
        """Those of a bundle, `0x..._0x...`."""
        return await self._get(list[str], f"non-persistent/{self._namespace_name(namespace)}/{segment(bundle)}")
