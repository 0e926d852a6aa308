"""What happens to the data of topics: unload, truncate, compact, offload, trim."""

from __future__ import annotations

from typing import cast

from pulsarium.rest.group import Group, Topic
from pulsarium.rest.message_ids import Id, body_of
from pulsarium.rest.stats import LongRunningStatus


class Upkeep(Group):
    """Of a partitioned topic most of it is for all partitions."""

    async def unload(self, topic: Topic) -> None:
        """Close it; clients look it up again."""
        await self._put(f"{self._topic(topic)}/unload")

    async def truncate(self, topic: Topic) -> None:
        """Drop all data."""
        await self._delete(f"{self._topic(topic)}/truncate")

    async def trim_topic(self, topic: Topic) -> None:
        """Drop the ledgers that retention does not keep."""
        await self._post(f"{self._topic(topic)}/trim")

    async def trigger_compaction(self, topic: Topic) -> None:
        """Keep the last message of each key."""
        await self._put(f"{self._topic(topic)}/compaction")

    async def compaction_status(self, topic: Topic) -> LongRunningStatus:
        """How that goes."""
        return await self._get(LongRunningStatus, f"{self._topic(topic)}/compaction")

    async def trigger_offload(self, topic: Topic, message_id: Id) -> None:
        """Move the ledgers before a message to another storage."""
        await self._put(f"{self._topic(topic)}/offload", body_of(message_id, batchSize=0))

    async def offload_status(self, topic: Topic) -> LongRunningStatus:
        """How that goes."""
        return await self._get(LongRunningStatus, f"{self._topic(topic)}/offload")

    async def get_backlog_size_by_message_id(self, topic: Topic, message_id: Id) -> int:
        """Bytes from a message on."""
        return cast(int, await self._put(f"{self._topic(topic)}/backlogSize", body_of(message_id, batchSize=0)))
