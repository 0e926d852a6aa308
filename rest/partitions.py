"""Partitioned topics, and topics that shadow others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pulsarium.rest.group import Group, Topic
from pulsarium.rest.stats import PartitionedTopicMetadata

_WITH_PROPERTIES: Final = "application/vnd.partitioned-topic-metadata+json"
_SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"


class Partitions(Group):
    """How many there are, and more of them."""

    async def create_partitioned_topic(
        self, topic: Topic, partitions: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """A topic with so many partitions, which exist from then on."""
        path, query = f"{self._topic(topic)}/partitions", {"createLocalTopicOnly": False}
        if properties:
            body = {"partitions": partitions, "deleted": False, "properties": dict(properties)}
            await self._put(path, body, query, content_type=_WITH_PROPERTIES)
        else:
            await self._put(path, partitions, query)

    async def update_partitioned_topic(
        self, topic: Topic, partitions: int, *, update_local_only: bool = False, force: bool = False
    ) -> None:
        """How many it has then. `force`: without looking at partitions that exist."""
        query = {"updateLocalTopicOnly": update_local_only, "force": force}
        await self._post(f"{self._topic(topic)}/partitions", partitions, query)

    async def get_partitioned_topic_metadata(self, topic: Topic) -> PartitionedTopicMetadata:
        """How many it has; 0 if it is not partitioned."""
        return await self._get(PartitionedTopicMetadata, f"{self._topic(topic)}/partitions")

    async def create_missed_partitions(self, topic: Topic) -> None:
        """Create those that are not there."""
        await self._post(f"{self._topic(topic)}/createMissedPartitions")

    async def delete_partitioned_topic(self, topic: Topic, *, force: bool = False) -> None:
        """All of it, with its schemas. `force`: also while clients are connected; they are closed."""
        await self._delete(f"{self._topic(topic)}/partitions", {"force": force, "deleteSchema": True})

    async def create_shadow_topic(
        self, topic: Topic, source: Topic, properties: Mapping[str, str] | None = None
    ) -> None:
        """A topic that shows the messages of `source`, with as many partitions (PIP-180)."""
        of_shadow = {_SHADOW_SOURCE: str(self._name(source)), **(properties or {})}
        if partitions := (await self.get_partitioned_topic_metadata(source))["partitions"]:
            await self.create_partitioned_topic(topic, partitions, of_shadow)
        else:
            await self._put(self._topic(topic), of_shadow)

    async def get_shadow_source(self, topic: Topic) -> str | None:
        """Whose messages it shows."""
        found = await self._find(dict[str, str], f"{self._topic(topic)}/properties")
        return (found or {}).get(_SHADOW_SOURCE)
