"""Calls for non-persistent topics only."""

from __future__ import annotations

from pulsarium.rest.group import Group, Namespace, Topic, segment
from pulsarium.rest.stats import PartitionedTopicMetadata, TopicInternalStats, TopicStats


class NonPersistentTopics(Group):
    """Calls of `non-persistent`, for topics whose names begin with non-persistent://. `topics` has these calls too."""

    async def create_partitioned_topic(self, topic: Topic, partitions: int) -> None:
        """Create a topic with this number of partitions."""
        await self._put(f"{self._topic(topic)}/partitions", partitions)

    async def get_partitioned_topic_metadata(self, topic: Topic) -> PartitionedTopicMetadata:
        """Return the number of partitions."""
        return await self._get(PartitionedTopicMetadata, f"{self._topic(topic)}/partitions")

    async def get_stats(self, topic: Topic) -> TopicStats:
        """Return rates, producers and subscriptions."""
        return await self._get(TopicStats, f"{self._topic(topic)}/stats")

    async def get_internal_stats(self, topic: Topic) -> TopicInternalStats:
        """Return internal stats, in the form of those of a persistent topic."""
        return await self._get(TopicInternalStats, f"{self._topic(topic)}/internalStats")

    async def unload(self, topic: Topic) -> None:
        """Close the topic. Clients look it up again."""
        await self._put(f"{self._topic(topic)}/unload")

    async def get_list(self, namespace: Namespace) -> list[str]:
        """Return the topics of a namespace."""
        return await self._get(list[str], f"non-persistent/{self._namespace_name(namespace)}")

    async def get_list_in_bundle(self, namespace: Namespace, bundle: str) -> list[str]:
        """Return the topics of a bundle, such as `0x..._0x...`."""
        return await self._get(list[str], f"non-persistent/{self._namespace_name(namespace)}/{segment(bundle)}")
