"""Calls about scalable topics: layouts, segments, subscriptions and auto scale policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from pulsarium.proto.topic_name import SegmentName
from pulsarium.rest.group import CallGroup, Namespace, Topic, segment, twice

#: Fields of an AutoScalePolicyOverride, such as `maxSegments`. Missing ones have the value of the namespace.
AutoScalePolicy: TypeAlias = Mapping[str, Any]


class ScalableTopicMetadata(TypedDict, total=False):
    """The layout of a scalable topic: its segments by id, and its properties."""

    epoch: int
    nextSegmentId: int
    segments: dict[str, Any]
    properties: dict[str, str]


class ScalableTopics(CallGroup):
    """Calls of `scalable` and `segments`. Topics may be named by topic:// or persistent:// names."""

    async def list_scalable_topics(
        self, namespace: Namespace, properties: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the scalable topics of a namespace that have all of `properties`."""
        query = {"property": [f"{key}={value}" for key, value in (properties or {}).items()]}
        return await self._get(list[str], f"scalable/{self._namespace_name(namespace)}", query)

    async def create_scalable_topic(
        self, topic: Topic, num_initial_segments: int = 1, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a scalable topic with segments of equal width."""
        query = {"numInitialSegments": num_initial_segments}
        await self._put(self._path(topic), dict(properties or {}), query)

    async def migrate_to_scalable(self, topic: Topic, *, force: bool = False) -> None:
        """Make a persistent topic scalable. With `force`, disconnect clients that do not know scalable topics."""
        await self._post(self._path(topic, "migrate"), query={"force": force})

    async def get_metadata(self, topic: Topic) -> ScalableTopicMetadata:
        """Return the layout of a scalable topic, and its properties."""
        return await self._get(ScalableTopicMetadata, self._path(topic))

    async def get_stats(self, topic: Topic) -> dict[str, Any]:
        """Return stats of a scalable topic, its segments, producers and subscriptions."""
        return await self._get(dict[str, Any], self._path(topic, "stats"))

    async def get_segment_stats(self, topic: Topic, segment_id: int) -> dict[str, Any]:
        """Return stats of one segment."""
        return await self._get(dict[str, Any], self._path(topic, "segments", segment_id, "stats"))

    async def delete_scalable_topic(self, topic: Topic, *, force: bool = False) -> None:
        """Delete a scalable topic with its segments. With `force`, disconnect their clients first."""
        await self._delete(self._path(topic), {"force": force})

    async def split_segment(self, topic: Topic, segment_id: int) -> None:
        """Split a segment into its two halves."""
        await self._post(self._path(topic, "split", segment_id))

    async def merge_segments(self, topic: Topic, segment_id_1: int, segment_id_2: int) -> None:
        """Merge two adjacent segments."""
        await self._post(self._path(topic, "merge", segment_id_1, segment_id_2))

    async def rebucket_segment(self, topic: Topic, segment_id: int, bucket_count: int) -> None:
        """Replace a segment by one with another number of entry buckets."""
        await self._post(self._path(topic, "rebucket", segment_id), query={"bucketCount": bucket_count})

    # ---- permissions and policies

    async def get_permissions(self, topic: Topic) -> dict[str, list[str]]:
        """Return the granted actions by role."""
        return await self._get(dict[str, list[str]], self._path(topic, "permissions"))

    async def grant_permission(self, topic: Topic, role: str, actions: Sequence[str]) -> None:
        """Grant a role actions on the topic and all its segments."""
        await self._post(self._path(topic, "permissions", role), list(actions))

    async def revoke_permissions(self, topic: Topic, role: str) -> None:
        """Revoke all actions of a role on the topic."""
        await self._delete(self._path(topic, "permissions", role))

    async def get_auto_scale_policy(self, topic: Topic) -> AutoScalePolicy | None:
        """Return the auto scale policy of the topic, or None without one."""
        return await self._find(dict[str, Any], self._path(topic, "autoScalePolicy"))

    async def set_auto_scale_policy(self, topic: Topic, policy: AutoScalePolicy) -> None:
        """Set the auto scale policy of the topic, in place of an earlier one."""
        await self._post(self._path(topic, "autoScalePolicy"), dict(policy))

    async def remove_auto_scale_policy(self, topic: Topic) -> None:
        """Remove the auto scale policy of the topic."""
        await self._delete(self._path(topic, "autoScalePolicy"))

    # ---- subscriptions

    async def create_subscription(self, topic: Topic, subscription: str, type: str = "STREAM") -> None:
        """Create a subscription of the type STREAM or QUEUE, at the first message of each segment."""
        await self._put(self._path(topic, "subscriptions", subscription), query={"type": type})

    async def delete_subscription(self, topic: Topic, subscription: str) -> None:
        """Delete a subscription."""
        await self._delete(self._path(topic, "subscriptions", subscription))

    async def seek_subscription(self, topic: Topic, subscription: str, timestamp: int) -> None:
        """Reset a subscription to the messages published at or after a time, in milliseconds since the epoch."""
        await self._post(self._path(topic, "subscriptions", subscription, "seek"), query={"timestamp": timestamp})

    async def clear_backlog(self, topic: Topic, subscription: str) -> None:
        """Acknowledge the whole backlog of a subscription."""
        await self._post(self._path(topic, "subscriptions", subscription, "skip-all"))

    # ---- single segments, by segment:// names

    async def create_segment(self, topic: Topic, subscriptions: Sequence[str] = ()) -> None:
        """Create the topic of a segment, with subscriptions at its first message."""
        await self._put(self._segment(topic), list(subscriptions))

    async def terminate_segment(self, topic: Topic) -> None:
        """Terminate the topic of a segment."""
        await self._post(f"{self._segment(topic)}/terminate")

    async def delete_segment(self, topic: Topic, *, force: bool = False) -> None:
        """Delete the topic of a segment. With `force`, disconnect its clients first."""
        await self._delete(self._segment(topic), {"force": force})

    async def get_segment_backlog(self, topic: Topic, subscription: str) -> int:
        """Return how many entries of a segment a subscription has not acknowledged."""
        return await self._get(int, f"{self._segment(topic)}/subscription/{twice(subscription)}/backlog")

    def _path(self, topic: Topic, *parts: object) -> str:
        name = self._name(topic)
        return "/".join(("scalable", name.tenant, name.namespace, name.encoded_local_name, *map(segment, parts)))

    def _segment(self, topic: Topic) -> str:
        of = SegmentName.of(self._name(topic))
        parent = of.parent
        return f"segments/{parent.tenant}/{parent.namespace}/{parent.encoded_local_name}/{of.descriptor}"
