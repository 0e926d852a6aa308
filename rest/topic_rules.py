"""Policies of topics: what is allowed, and how data is kept."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.rest.group import Topic
from pulsarium.rest.of_names import OfTopic, asked, of
from pulsarium.rest.policies import (
    AutoSubscriptionCreation,
    DelayedDeliveryPolicies,
    EntryFilters,
    OffloadPolicies,
    PersistencePolicies,
)


class TopicRules(OfTopic):
    """`applied`: also what the namespace or the broker says. `is_global`: of all clusters."""

    async def get_subscription_types_enabled(self, topic: Topic, *, is_global: bool = False) -> list[str] | None:
        """The types of subscription allowed: Exclusive, Shared, Failover, Key_Shared."""
        return await self._find(list[str], self._path(topic, "subscriptionTypesEnabled"), of(is_global))

    async def set_subscription_types_enabled(
        self, topic: Topic, types: Sequence[str], *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "subscriptionTypesEnabled"), list(types), of(is_global))

    async def remove_subscription_types_enabled(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "subscriptionTypesEnabled"), of(is_global))

    async def get_deduplication_status(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> bool | None:
        """Whether repeated messages are dropped."""
        return await self._find(bool, self._path(topic, "deduplicationEnabled"), asked(applied, is_global))

    async def set_deduplication_status(self, topic: Topic, enable: bool, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "deduplicationEnabled"), enable, of(is_global))

    async def remove_deduplication_status(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "deduplicationEnabled"), of(is_global))

    async def get_deduplication_snapshot_interval(self, topic: Topic, *, is_global: bool = False) -> int | None:
        """Entries after which sequence ids are saved for deduplication."""
        return await self._find(int, self._path(topic, "deduplicationSnapshotInterval"), of(is_global))

    async def set_deduplication_snapshot_interval(
        self, topic: Topic, interval: int, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "deduplicationSnapshotInterval"), interval, of(is_global))

    async def remove_deduplication_snapshot_interval(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "deduplicationSnapshotInterval"), of(is_global))

    async def get_persistence(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> PersistencePolicies | None:
        """How data is spread over bookies."""
        return await self._find(PersistencePolicies, self._path(topic, "persistence"), asked(applied, is_global))

    async def set_persistence(self, topic: Topic, persistence: PersistencePolicies, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "persistence"), persistence, of(is_global))

    async def remove_persistence(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "persistence"), of(is_global))

    async def get_delayed_delivery_policy(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> DelayedDeliveryPolicies | None:
        """Whether messages can be delayed."""
        return await self._find(
            DelayedDeliveryPolicies, self._path(topic, "delayedDelivery"), asked(applied, is_global)
        )

    async def set_delayed_delivery_policy(
        self, topic: Topic, policies: DelayedDeliveryPolicies, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "delayedDelivery"), policies, of(is_global))

    async def remove_delayed_delivery_policy(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "delayedDelivery"), of(is_global))

    async def get_offload_policies(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> OffloadPolicies | None:
        """Where old ledgers are offloaded to."""
        return await self._find(OffloadPolicies, self._path(topic, "offloadPolicies"), asked(applied, is_global))

    async def set_offload_policies(self, topic: Topic, policies: OffloadPolicies, *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "offloadPolicies"), policies, of(is_global))

    async def remove_offload_policies(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "offloadPolicies"), of(is_global))

    async def get_schema_compatibility_strategy(self, topic: Topic, *, applied: bool = False) -> str | None:
        """Which new schemas are accepted, like BACKWARD or FULL_TRANSITIVE."""
        return await self._find(str, self._path(topic, "schemaCompatibilityStrategy"), {"applied": applied})

    async def set_schema_compatibility_strategy(self, topic: Topic, strategy: str) -> None:
        """Set it."""
        await self._put(self._path(topic, "schemaCompatibilityStrategy"), strategy)

    async def remove_schema_compatibility_strategy(self, topic: Topic) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "schemaCompatibilityStrategy"))

    async def get_entry_filters_per_topic(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> EntryFilters | None:
        """The entry filters."""
        return await self._find(EntryFilters, self._path(topic, "entryFilters"), asked(applied, is_global))

    async def set_entry_filters_per_topic(
        self, topic: Topic, filters: EntryFilters, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "entryFilters"), filters, of(is_global))

    async def remove_entry_filters_per_topic(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "entryFilters"), of(is_global))

    async def get_auto_subscription_creation(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> AutoSubscriptionCreation | None:
        """Whether consumers create subscriptions."""
        return await self._find(
            AutoSubscriptionCreation, self._path(topic, "autoSubscriptionCreation"), asked(applied, is_global)
        )

    async def set_auto_subscription_creation(
        self, topic: Topic, creation: AutoSubscriptionCreation, *, is_global: bool = False
    ) -> None:
        """Set it."""
        await self._post(self._path(topic, "autoSubscriptionCreation"), creation, of(is_global))

    async def remove_auto_subscription_creation(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "autoSubscriptionCreation"), of(is_global))

    async def get_dispatcher_pause_on_ack_state_persistent(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> bool | None:
        """Whether dispatch waits for acknowledgements to be saved."""
        return await self._find(
            bool, self._path(topic, "dispatcherPauseOnAckStatePersistent"), asked(applied, is_global)
        )

    async def set_dispatcher_pause_on_ack_state_persistent(self, topic: Topic, *, is_global: bool = False) -> None:
        """It does."""
        await self._post(self._path(topic, "dispatcherPauseOnAckStatePersistent"), query=of(is_global))

    async def remove_dispatcher_pause_on_ack_state_persistent(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "dispatcherPauseOnAckStatePersistent"), of(is_global))

    async def get_replication_clusters(
        self, topic: Topic, *, applied: bool = False, is_global: bool = False
    ) -> list[str] | None:
        """The clusters it is replicated to."""
        return await self._find(list[str], self._path(topic, "replication"), asked(applied, is_global))

    async def set_replication_clusters(self, topic: Topic, clusters: Sequence[str], *, is_global: bool = False) -> None:
        """Set it."""
        await self._post(self._path(topic, "replication"), list(clusters), of(is_global))

    async def remove_replication_clusters(self, topic: Topic, *, is_global: bool = False) -> None:
        """The namespace's holds again."""
        await self._delete(self._path(topic, "replication"), of(is_global))
