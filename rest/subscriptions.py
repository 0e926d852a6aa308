"""Subscriptions of topics, and their cursors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from pulsarium.rest.exchange import NO_BODY
from pulsarium.rest.group import Group, Topic, twice
from pulsarium.rest.message_ids import LATEST, Id, body_of, skipped
from pulsarium.rest.stats import BacklogAnalysis


class Subscriptions(Group):
    """Those that need not exist as topics do: of a partitioned topic, each partition has its own."""

    async def get_subscriptions(self, topic: Topic) -> list[str]:
        """Their names."""
        return await self._get(list[str], f"{self._topic(topic)}/subscriptions")

    async def create_subscription(
        self,
        topic: Topic,
        subscription: str,
        message_id: Id = LATEST,
        *,
        replicated: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """A durable one that begins behind `message_id`, so that it keeps messages before a consumer comes."""
        extra = {"properties": dict(properties), "excluded": False} if properties else {"batchSize": 0}
        body = body_of(message_id, **extra)
        await self._put(self._subscription(topic, subscription), body, {"replicated": replicated})

    async def delete_subscription(self, topic: Topic, subscription: str, *, force: bool = False) -> None:
        """`force`: also while consumers are connected."""
        await self._delete(self._subscription(topic, subscription), {"force": force})

    async def get_subscription_properties(self, topic: Topic, subscription: str) -> dict[str, str]:
        """Its own."""
        return await self._get(dict[str, str], f"{self._subscription(topic, subscription)}/properties")

    async def update_subscription_properties(
        self, topic: Topic, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Replace them all."""
        await self._put(f"{self._subscription(topic, subscription)}/properties", dict(properties))

    async def get_replicated_subscription_status(self, topic: Topic, subscription: str) -> dict[str, bool]:
        """Whether it is replicated, by topic or partition."""
        path = f"{self._subscription(topic, subscription)}/replicatedSubscriptionStatus"
        return await self._get(dict[str, bool], path)

    async def set_replicated_subscription_status(self, topic: Topic, subscription: str, enabled: bool) -> None:
        """Set that."""
        await self._post(f"{self._subscription(topic, subscription)}/replicatedSubscriptionStatus", enabled)

    # ---- what it has yet to acknowledge

    async def skip_messages(self, topic: Topic, subscription: str, count: int) -> None:
        """Skip the next `count`."""
        await self._post(f"{self._subscription(topic, subscription)}/skip/{count}")

    async def skip_by_message_ids(self, topic: Topic, subscription: str, message_ids: Sequence[Id]) -> None:
        """Skip these, single messages of batches too (PIP-423)."""
        body = {"type": "messageId", "messageIds": [skipped(each) for each in message_ids]}
        await self._post(f"{self._subscription(topic, subscription)}/skipByMessageIds", body)

    async def skip_all_messages(self, topic: Topic, subscription: str) -> None:
        """Skip all there are."""
        await self._post(f"{self._subscription(topic, subscription)}/skip_all")

    async def expire_messages(self, topic: Topic, subscription: str, seconds: int) -> None:
        """Acknowledge what is older."""
        await self._post(f"{self._subscription(topic, subscription)}/expireMessages/{seconds}")

    async def expire_messages_up_to(
        self, topic: Topic, subscription: str, message_id: Id, *, is_excluded: bool = False
    ) -> None:
        """Acknowledge all up to `message_id`, and itself unless `is_excluded`."""
        body = body_of(message_id, excluded=is_excluded)
        await self._post(f"{self._subscription(topic, subscription)}/expireMessages", body)

    async def expire_messages_for_all_subscriptions(self, topic: Topic, seconds: int) -> None:
        """Acknowledge what is older, for every subscription."""
        await self._post(f"{self._topic(topic)}/all_subscription/expireMessages/{seconds}")

    async def reset_cursor(self, topic: Topic, subscription: str, timestamp: int) -> None:
        """To the first message published at or after `timestamp`, milliseconds since the epoch."""
        await self._post(f"{self._subscription(topic, subscription)}/resetcursor/{timestamp}")

    async def reset_cursor_to(
        self, topic: Topic, subscription: str, message_id: Id, *, is_excluded: bool = False
    ) -> None:
        """To a message, or with `is_excluded` behind it."""
        body = body_of(message_id, excluded=is_excluded)
        await self._post(f"{self._subscription(topic, subscription)}/resetcursor", body)

    async def analyze_subscription_backlog(
        self, topic: Topic, subscription: str, start: Id | None = None
    ) -> BacklogAnalysis:
        """Counts entry by entry, from `start` on and up to subscriptionBacklogScanMaxEntries."""
        body = NO_BODY if start is None else body_of(start, excluded=False)
        found = await self._post(f"{self._subscription(topic, subscription)}/analyzeBacklog", body)
        return cast(BacklogAnalysis, found)

    def _subscription(self, topic: Topic, subscription: str) -> str:
        return f"{self._topic(topic)}/subscription/{twice(subscription)}"
