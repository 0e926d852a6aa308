"""Policies of topics: how much, how fast and how long."""

from __future__ import annotations

from pulsarium.rest.group import Topic
from pulsarium.rest.of_names import OfTopic, asked, of
from pulsarium.rest.policies import (
    BacklogQuota,
    DispatchRate,
    InactiveTopicPolicies,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)


class TopicLimits(OfTopic):
    """`applied`: also what the namespace or the broker says. `is_global`: of all clusters."""

    async def get_message_ttl(self, topic: Topic, *, applied: bool = False, is_global: bool = False) -> int | None:
        """Seconds after which messages expire, 0 is never."""
        return await self._find(int, self._path(topic, "messageTTL"), asked(applied, is_global))

    async def set_message_ttl(self, topic: Topic, seconds: int, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "messageTTL"), query={"messageTTL": seconds, **of(is_global)})

    async def remove_message_ttl(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "messageTTL"), {"messageTTL": 0, **of(is_global)})

    async def get_max_consumers_per_subscription(self, topic: Topic, *, is_global: bool = False) -> int | None:
        """How many consumers a subscription may have, 0 is without limit."""
        return await self._find(int, self._path(topic, "maxConsumersPerSubscription"), of(is_global))

    async def set_max_consumers_per_subscription(self, topic: Topic, maximum: int, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "maxConsumersPerSubscription"), maximum, of(is_global))

    async def remove_max_consumers_per_subscription(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "maxConsumersPerSubscription"), of(is_global))

    async def get_retention(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> RetentionPolicies | None:
        """How much acknowledged data is kept."""
        return await self._find(RetentionPolicies, self._path(topic, "retention"), asked(applied, is_global))

    async def set_retention(self, topic: Topic, retention: RetentionPolicies, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "retention"), retention, of(is_global))

    async def remove_retention(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "retention"), of(is_global))

    async def get_max_producers(self, topic: Topic, *, applied: bool = False, is_global: bool = False) -> int | None:
        """How many producers there may be, 0 is without limit."""
        return await self._find(int, self._path(topic, "maxProducers"), asked(applied, is_global))

    async def set_max_producers(self, topic: Topic, maximum: int, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "maxProducers"), maximum, of(is_global))

    async def remove_max_producers(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "maxProducers"), of(is_global))

    async def get_max_message_size(self, topic: Topic, *, is_global: bool = False) -> int | None:
        """Bytes that a message may have, 0 is the broker's own limit."""
        return await self._find(int, self._path(topic, "maxMessageSize"), of(is_global))

    async def set_max_message_size(self, topic: Topic, maximum: int, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "maxMessageSize"), maximum, of(is_global))

    async def remove_max_message_size(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "maxMessageSize"), of(is_global))

    async def get_replicator_dispatch_rate(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> DispatchRate | None:
        """How fast messages are replicated."""
        return await self._find(DispatchRate, self._path(topic, "replicatorDispatchRate"), asked(applied, is_global))

    async def set_replicator_dispatch_rate(self, topic: Topic, rate: DispatchRate, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "replicatorDispatchRate"), rate, of(is_global))

    async def remove_replicator_dispatch_rate(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "replicatorDispatchRate"), of(is_global))

    async def get_publish_rate(self, topic: Topic, *, is_global: bool = False) -> PublishRate | None:
        """How fast messages may be published."""
        return await self._find(PublishRate, self._path(topic, "publishRate"), of(is_global))

    async def set_publish_rate(self, topic: Topic, rate: PublishRate, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "publishRate"), rate, of(is_global))

    async def remove_publish_rate(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "publishRate"), of(is_global))

    async def get_compaction_threshold(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> int | None:
        """Bytes of backlog at which compaction starts, 0 is never."""
        return await self._find(int, self._path(topic, "compactionThreshold"), asked(applied, is_global))

    async def set_compaction_threshold(self, topic: Topic, threshold: int, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "compactionThreshold"), threshold, of(is_global))

    async def remove_compaction_threshold(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "compactionThreshold"), of(is_global))

    async def get_subscribe_rate(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> SubscribeRate | None:
        """How often a consumer may subscribe."""
        return await self._find(SubscribeRate, self._path(topic, "subscribeRate"), asked(applied, is_global))

    async def set_subscribe_rate(self, topic: Topic, rate: SubscribeRate, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "subscribeRate"), rate, of(is_global))

    async def remove_subscribe_rate(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "subscribeRate"), of(is_global))

    async def get_max_consumers(self, topic: Topic, *, applied: bool = False, is_global: bool = False) -> int | None:
        """How many consumers there may be, 0 is without limit."""
        return await self._find(int, self._path(topic, "maxConsumers"), asked(applied, is_global))

    async def set_max_consumers(self, topic: Topic, maximum: int, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "maxConsumers"), maximum, of(is_global))

    async def remove_max_consumers(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "maxConsumers"), of(is_global))

    async def get_dispatch_rate(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> DispatchRate | None:
        """How fast messages are dispatched."""
        return await self._find(DispatchRate, self._path(topic, "dispatchRate"), asked(applied, is_global))

    async def set_dispatch_rate(self, topic: Topic, rate: DispatchRate, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "dispatchRate"), rate, of(is_global))

    async def remove_dispatch_rate(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "dispatchRate"), of(is_global))

    async def get_inactive_topic_policies(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> InactiveTopicPolicies | None:
        """When the topic is deleted while nobody uses it."""
        return await self._find(
            InactiveTopicPolicies, self._path(topic, "inactiveTopicPolicies"), asked(applied, is_global)
        )

    async def set_inactive_topic_policies(
        self, topic: Topic, policies: InactiveTopicPolicies, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "inactiveTopicPolicies"), policies, of(is_global))

    async def remove_inactive_topic_policies(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "inactiveTopicPolicies"), of(is_global))

    async def get_backlog_quota_map(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> dict[str, BacklogQuota] | None:
        """What happens at how much backlog, by what is bounded: destination_storage, message_age."""
        return await self._find(
            dict[str, BacklogQuota], self._path(topic, "backlogQuotaMap"), asked(applied, is_global)
        )

    async def set_backlog_quota(
        self, topic: Topic, quota: BacklogQuota, quota_type: str = "destination_storage", *, is_global: bool = False
    ) -> None:
        """Set one of them."""
        await self._post(self._path(topic, "backlogQuota"), quota, {"backlogQuotaType": quota_type, **of(is_global)})

    async def remove_backlog_quota(
        self, topic: Topic, quota_type: str = "destination_storage", *, is_global: bool = False
    ) -> None:
        """Remove one of them."""
        await self._delete(self._path(topic, "backlogQuota"), {"backlogQuotaType": quota_type, **of(is_global)})

    async def get_max_unacked_messages_on_consumer(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> int | None:
        """How many messages a consumer may leave unacknowledged, 0 is without limit."""
        return await self._find(int, self._path(topic, "maxUnackedMessagesOnConsumer"), asked(applied, is_global))

    async def set_max_unacked_messages_on_consumer(
        self, topic: Topic, maximum: int, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "maxUnackedMessagesOnConsumer"), maximum, of(is_global))

    async def remove_max_unacked_messages_on_consumer(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "maxUnackedMessagesOnConsumer"), of(is_global))

    async def get_max_unacked_messages_on_subscription(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> int | None:
        """How many messages a subscription may leave unacknowledged, 0 is without limit."""
        return await self._find(int, self._path(topic, "maxUnackedMessagesOnSubscription"), asked(applied, is_global))

    async def set_max_unacked_messages_on_subscription(
        self, topic: Topic, maximum: int, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "maxUnackedMessagesOnSubscription"), maximum, of(is_global))

    async def remove_max_unacked_messages_on_subscription(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "maxUnackedMessagesOnSubscription"), of(is_global))

    async def get_max_subscriptions_per_topic(self, topic: Topic, *, is_global: bool = False) -> int | None:
        """How many subscriptions there may be, 0 is without limit."""
        return await self._find(int, self._path(topic, "maxSubscriptionsPerTopic"), of(is_global))

    async def set_max_subscriptions_per_topic(self, topic: Topic, maximum: int, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "maxSubscriptionsPerTopic"), maximum, of(is_global))

    async def remove_max_subscriptions_per_topic(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "maxSubscriptionsPerTopic"), of(is_global))
