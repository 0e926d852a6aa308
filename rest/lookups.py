"""Calls that look up the broker of a topic."""

from __future__ import annotations

from pulsarium.rest.data import LookupData
from pulsarium.rest.group import CallGroup, Topic
from pulsarium.rest.stats import PartitionedTopicMetadata


class Lookups(CallGroup):
    """Calls of `lookup`."""

    async def lookup_topic(self, topic: Topic) -> LookupData:
        """Return the URLs of the broker that serves the topic."""
        return await self._get(LookupData, self._lookup(topic))

    async def lookup_partitioned_topic(self, topic: Topic) -> dict[str, LookupData]:
        """Return the URLs of the broker of each partition, by its name. Return none for a topic without partitions."""
        name = self._name(topic)
        metadata = await self._get(PartitionedTopicMetadata, f"{name.rest_path}/partitions")
        partitions = [name.partition(index) for index in range(metadata["partitions"])]
        return {str(partition): await self.lookup_topic(partition) for partition in partitions}

    async def get_bundle_range(self, topic: Topic) -> str:
        """Return the bundle of the topic, as `0x..._0x...`."""
        return await self._get_text(f"{self._lookup(topic)}/bundle") or ""

    def _lookup(self, topic: Topic) -> str:
        return f"/lookup/v2/topic/{self._topic(topic)}"
