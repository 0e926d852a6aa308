"""Policies of namespaces: how much, how fast and how long."""

from __future__ import annotations

from pulsarium.rest.group import Namespace
from pulsarium.rest.of_names import OfNamespace
from pulsarium.rest.policies import (
    BacklogQuota,
    DispatchRate,
    InactiveTopicPolicies,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)


class NamespaceLimits(OfNamespace):
    """Each is got, set and removed; None is what is not set, so that the broker's holds."""

    async def get_backlog_quota_map(self, namespace: Namespace) -> dict[str, BacklogQuota] | None:
        """What happens at how much backlog, by what is bounded: destination_storage, message_age."""
        return await self._find(dict[str, BacklogQuota], self._path(namespace, "backlogQuotaMap"))

    async def set_backlog_quota(
        self, namespace: Namespace, quota: BacklogQuota, quota_type: str = "destination_storage"
    ) -> None:
        """Set one of them."""
        await self._post(self._path(namespace, "backlogQuota"), quota, {"backlogQuotaType": quota_type})

    async def remove_backlog_quota(self, namespace: Namespace, quota_type: str = "destination_storage") -> None:
        """Remove one of them."""
        await self._delete(self._path(namespace, "backlogQuota"), {"backlogQuotaType": quota_type})

    async def get_namespace_message_ttl(self, namespace: Namespace) -> int | None:
        """Seconds after which messages expire, 0 is never."""
        return await self._find(int, self._path(namespace, "messageTTL"))

    async def set_namespace_message_ttl(self, namespace: Namespace, seconds: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "messageTTL"), seconds)

    async def remove_namespace_message_ttl(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "messageTTL"))

    async def get_max_subscriptions_per_topic(self, namespace: Namespace) -> int | None:
        """How many subscriptions a topic may have, 0 is without limit."""
        return await self._find(int, self._path(namespace, "maxSubscriptionsPerTopic"))

    async def set_max_subscriptions_per_topic(self, namespace: Namespace, maximum: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "maxSubscriptionsPerTopic"), maximum)

    async def remove_max_subscriptions_per_topic(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "maxSubscriptionsPerTopic"))

    async def get_subscription_expiration_time(self, namespace: Namespace) -> int | None:
        """Minutes after which nobody's subscription is deleted, 0 is never."""
        return await self._find(int, self._path(namespace, "subscriptionExpirationTime"))

    async def set_subscription_expiration_time(self, namespace: Namespace, minutes: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "subscriptionExpirationTime"), minutes)

    async def remove_subscription_expiration_time(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "subscriptionExpirationTime"))

    async def get_retention(self, namespace: Namespace) -> RetentionPolicies | None:
        """How much acknowledged data is kept."""
        return await self._find(RetentionPolicies, self._path(namespace, "retention"))

    async def set_retention(self, namespace: Namespace, retention: RetentionPolicies) -> None:
        """Set it."""
        await self._post(self._path(namespace, "retention"), retention)

    async def remove_retention(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "retention"))

    async def get_dispatch_rate(self, namespace: Namespace) -> DispatchRate | None:
        """How fast messages of a topic are dispatched."""
        return await self._find(DispatchRate, self._path(namespace, "dispatchRate"))

    async def set_dispatch_rate(self, namespace: Namespace, rate: DispatchRate) -> None:
        """Set it."""
        await self._post(self._path(namespace, "dispatchRate"), rate)

    async def remove_dispatch_rate(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "dispatchRate"))

    async def get_subscribe_rate(self, namespace: Namespace) -> SubscribeRate | None:
        """How often a consumer may subscribe."""
        return await self._find(SubscribeRate, self._path(namespace, "subscribeRate"))

    async def set_subscribe_rate(self, namespace: Namespace, rate: SubscribeRate) -> None:
        """Set it."""
        await self._post(self._path(namespace, "subscribeRate"), rate)

    async def remove_subscribe_rate(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "subscribeRate"))

    async def get_subscription_dispatch_rate(self, namespace: Namespace) -> DispatchRate | None:
        """How fast a subscription gets messages."""
        return await self._find(DispatchRate, self._path(namespace, "subscriptionDispatchRate"))

    async def set_subscription_dispatch_rate(self, namespace: Namespace, rate: DispatchRate) -> None:
        """Set it."""
        await self._post(self._path(namespace, "subscriptionDispatchRate"), rate)

    async def remove_subscription_dispatch_rate(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "subscriptionDispatchRate"))

    async def get_publish_rate(self, namespace: Namespace) -> PublishRate | None:
        """How fast messages may be published to a topic."""
        return await self._find(PublishRate, self._path(namespace, "publishRate"))

    async def set_publish_rate(self, namespace: Namespace, rate: PublishRate) -> None:
        """Set it."""
        await self._post(self._path(namespace, "publishRate"), rate)

    async def remove_publish_rate(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "publishRate"))

    async def get_replicator_dispatch_rate(self, namespace: Namespace) -> DispatchRate | None:
        """How fast messages are replicated."""
        return await self._find(DispatchRate, self._path(namespace, "replicatorDispatchRate"))

    async def set_replicator_dispatch_rate(self, namespace: Namespace, rate: DispatchRate) -> None:
        """Set it."""
        await self._post(self._path(namespace, "replicatorDispatchRate"), rate)

    async def remove_replicator_dispatch_rate(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "replicatorDispatchRate"))

    async def get_inactive_topic_policies(self, namespace: Namespace) -> InactiveTopicPolicies | None:
        """When nobody's topic is deleted."""
        return await self._find(InactiveTopicPolicies, self._path(namespace, "inactiveTopicPolicies"))

    async def set_inactive_topic_policies(self, namespace: Namespace, policies: InactiveTopicPolicies) -> None:
        """Set it."""
        await self._post(self._path(namespace, "inactiveTopicPolicies"), policies)

    async def remove_inactive_topic_policies(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "inactiveTopicPolicies"))

    async def get_max_producers_per_topic(self, namespace: Namespace) -> int | None:
        """How many producers a topic may have, 0 is without limit."""
        return await self._find(int, self._path(namespace, "maxProducersPerTopic"))

    async def set_max_producers_per_topic(self, namespace: Namespace, maximum: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "maxProducersPerTopic"), maximum)

    async def remove_max_producers_per_topic(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "maxProducersPerTopic"))

    async def get_max_consumers_per_topic(self, namespace: Namespace) -> int | None:
        """How many consumers a topic may have, 0 is without limit."""
        return await self._find(int, self._path(namespace, "maxConsumersPerTopic"))

    async def set_max_consumers_per_topic(self, namespace: Namespace, maximum: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "maxConsumersPerTopic"), maximum)

    async def remove_max_consumers_per_topic(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "maxConsumersPerTopic"))

    async def get_max_consumers_per_subscription(self, namespace: Namespace) -> int | None:
        """How many consumers a subscription may have, 0 is without limit."""
        return await self._find(int, self._path(namespace, "maxConsumersPerSubscription"))

    async def set_max_consumers_per_subscription(self, namespace: Namespace, maximum: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "maxConsumersPerSubscription"), maximum)

    async def remove_max_consumers_per_subscription(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "maxConsumersPerSubscription"))

    async def get_max_unacked_messages_per_subscription(self, namespace: Namespace) -> int | None:
        """How many messages a subscription may leave unacknowledged, 0 is without limit."""
        return await self._find(int, self._path(namespace, "maxUnackedMessagesPerSubscription"))

    async def set_max_unacked_messages_per_subscription(self, namespace: Namespace, maximum: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "maxUnackedMessagesPerSubscription"), maximum)

    async def remove_max_unacked_messages_per_subscription(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "maxUnackedMessagesPerSubscription"))

    async def get_max_unacked_messages_per_consumer(self, namespace: Namespace) -> int | None:
        """How many messages a consumer may leave unacknowledged, 0 is without limit."""
        return await self._find(int, self._path(namespace, "maxUnackedMessagesPerConsumer"))

    async def set_max_unacked_messages_per_consumer(self, namespace: Namespace, maximum: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "maxUnackedMessagesPerConsumer"), maximum)

    async def remove_max_unacked_messages_per_consumer(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "maxUnackedMessagesPerConsumer"))

    async def get_compaction_threshold(self, namespace: Namespace) -> int | None:
        """Bytes of backlog at which compaction starts, 0 is never."""
        return await self._find(int, self._path(namespace, "compactionThreshold"))

    async def set_compaction_threshold(self, namespace: Namespace, threshold: int) -> None:
        """Set it."""
        await self._put(self._path(namespace, "compactionThreshold"), threshold)

    async def remove_compaction_threshold(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "compactionThreshold"))

    async def get_max_topics_per_namespace(self, namespace: Namespace) -> int | None:
        """How many topics there may be, 0 is without limit."""
        return await self._find(int, self._path(namespace, "maxTopicsPerNamespace"))

    async def set_max_topics_per_namespace(self, namespace: Namespace, maximum: int) -> None:
        """Set it."""
        await self._post(self._path(namespace, "maxTopicsPerNamespace"), maximum)

    async def remove_max_topics_per_namespace(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "maxTopicsPerNamespace"))
