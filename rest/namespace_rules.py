"""Policies of namespaces: who may do what, and how."""

from __future__ import annotations

from collections.abc import Sequence

from pulsarium.rest.group import Namespace
from pulsarium.rest.of_names import OfNamespace
from pulsarium.rest.policies import (
    AutoSubscriptionCreation,
    AutoTopicCreation,
    DelayedDeliveryPolicies,
    EntryFilters,
    PersistencePolicies,
)


class NamespaceRules(OfNamespace):
    """Each is got, set and removed; None is what is not set, so that the broker's holds."""

    async def get_namespace_replication_clusters(self, namespace: Namespace) -> list[str] | None:
        """The clusters it is replicated to."""
        return await self._find(list[str], self._path(namespace, "replication"))

    async def set_namespace_replication_clusters(self, namespace: Namespace, clusters: Sequence[str]) -> None:
        """Set it."""
        await self._post(self._path(namespace, "replication"), list(clusters))

    async def get_namespace_allowed_clusters(self, namespace: Namespace) -> list[str] | None:
        """The clusters it may be replicated to."""
        return await self._find(list[str], self._path(namespace, "allowedClusters"))

    async def set_namespace_allowed_clusters(self, namespace: Namespace, clusters: Sequence[str]) -> None:
        """Set it."""
        await self._post(self._path(namespace, "allowedClusters"), list(clusters))

    async def get_subscription_types_enabled(self, namespace: Namespace) -> list[str] | None:
        """The types of subscription allowed: Exclusive, Shared, Failover, Key_Shared."""
        return await self._find(list[str], self._path(namespace, "subscriptionTypesEnabled"))

    async def set_subscription_types_enabled(self, namespace: Namespace, types: Sequence[str]) -> None:
        """Set it."""
        await self._post(self._path(namespace, "subscriptionTypesEnabled"), list(types))

    async def remove_subscription_types_enabled(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "subscriptionTypesEnabled"))

    async def get_persistence(self, namespace: Namespace) -> PersistencePolicies | None:
        """How data is spread over bookies."""
        return await self._find(PersistencePolicies, self._path(namespace, "persistence"))

    async def set_persistence(self, namespace: Namespace, persistence: PersistencePolicies) -> None:
        """Set it."""
        await self._post(self._path(namespace, "persistence"), persistence)

    async def remove_persistence(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "persistence"))

    async def get_deduplication_status(self, namespace: Namespace) -> bool | None:
        """Whether repeated messages are dropped."""
        return await self._find(bool, self._path(namespace, "deduplication"))

    async def set_deduplication_status(self, namespace: Namespace, enable: bool) -> None:
        """Set it."""
        await self._post(self._path(namespace, "deduplication"), enable)

    async def remove_deduplication_status(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "deduplication"))

    async def get_auto_topic_creation(self, namespace: Namespace) -> AutoTopicCreation | None:
        """Whether clients create topics."""
        return await self._find(AutoTopicCreation, self._path(namespace, "autoTopicCreation"))

    async def set_auto_topic_creation(self, namespace: Namespace, creation: AutoTopicCreation) -> None:
        """Set it."""
        await self._post(self._path(namespace, "autoTopicCreation"), creation)

    async def remove_auto_topic_creation(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "autoTopicCreation"))

    async def get_auto_subscription_creation(self, namespace: Namespace) -> AutoSubscriptionCreation | None:
        """Whether consumers create subscriptions."""
        return await self._find(AutoSubscriptionCreation, self._path(namespace, "autoSubscriptionCreation"))

    async def set_auto_subscription_creation(self, namespace: Namespace, creation: AutoSubscriptionCreation) -> None:
        """Set it."""
        await self._post(self._path(namespace, "autoSubscriptionCreation"), creation)

    async def remove_auto_subscription_creation(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "autoSubscriptionCreation"))

    async def get_encryption_required_status(self, namespace: Namespace) -> bool | None:
        """Whether messages have to be encrypted."""
        return await self._find(bool, self._path(namespace, "encryptionRequired"))

    async def set_encryption_required_status(self, namespace: Namespace, required: bool) -> None:
        """Set it."""
        await self._post(self._path(namespace, "encryptionRequired"), required)

    async def get_subscription_auth_mode(self, namespace: Namespace) -> str | None:
        """How names of subscriptions are tied to roles: None or Prefix."""
        return await self._find(str, self._path(namespace, "subscriptionAuthMode"))

    async def set_subscription_auth_mode(self, namespace: Namespace, mode: str) -> None:
        """Set it."""
        await self._post(self._path(namespace, "subscriptionAuthMode"), mode)

    async def get_delayed_delivery(self, namespace: Namespace) -> DelayedDeliveryPolicies | None:
        """Whether messages can be delayed."""
        return await self._find(DelayedDeliveryPolicies, self._path(namespace, "delayedDelivery"))

    async def set_delayed_delivery(self, namespace: Namespace, policies: DelayedDeliveryPolicies) -> None:
        """Set it."""
        await self._post(self._path(namespace, "delayedDelivery"), policies)

    async def remove_delayed_delivery(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "delayedDelivery"))

    async def get_is_allow_auto_update_schema(self, namespace: Namespace) -> bool | None:
        """Whether producers may change schemas."""
        return await self._find(bool, self._path(namespace, "isAllowAutoUpdateSchema"))

    async def set_is_allow_auto_update_schema(self, namespace: Namespace, allowed: bool) -> None:
        """Set it."""
        await self._post(self._path(namespace, "isAllowAutoUpdateSchema"), allowed)

    async def get_schema_validation_enforced(self, namespace: Namespace, *, applied: bool = False) -> bool | None:
        """Whether producers have to have a schema."""
        return await self._find(bool, self._path(namespace, "schemaValidationEnforced"), {"applied": applied})

    async def set_schema_validation_enforced(self, namespace: Namespace, enforced: bool) -> None:
        """Set it."""
        await self._post(self._path(namespace, "schemaValidationEnforced"), enforced)

    async def get_namespace_entry_filters(self, namespace: Namespace) -> EntryFilters | None:
        """The entry filters."""
        return await self._find(EntryFilters, self._path(namespace, "entryFilters"))

    async def set_namespace_entry_filters(self, namespace: Namespace, filters: EntryFilters) -> None:
        """Set it."""
        await self._post(self._path(namespace, "entryFilters"), filters)

    async def remove_namespace_entry_filters(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "entryFilters"))

    async def get_dispatcher_pause_on_ack_state_persistent(self, namespace: Namespace) -> bool | None:
        """Whether dispatch waits for acknowledgements to be saved."""
        return await self._find(bool, self._path(namespace, "dispatcherPauseOnAckStatePersistent"))

    async def set_dispatcher_pause_on_ack_state_persistent(self, namespace: Namespace) -> None:
        """It does."""
        await self._post(self._path(namespace, "dispatcherPauseOnAckStatePersistent"))

    async def remove_dispatcher_pause_on_ack_state_persistent(self, namespace: Namespace) -> None:
        """The broker's holds again."""
        await self._delete(self._path(namespace, "dispatcherPauseOnAckStatePersistent"))
