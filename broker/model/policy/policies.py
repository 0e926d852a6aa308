"""The policies of one topic as one object, made anew when one of its sources changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from pulsarium.broker.model.ledger.ledger import NO_RETENTION, Retention

STORAGE: Final = "destination_storage"  # the kinds of backlog quota, as REST names them
AGE: Final = "message_age"

UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit of the backlog, and what happens at it; -1: none."""

    limit_size: int = UNLIMITED  # bytes, of destination_storage
    limit_seconds: int = UNLIMITED  # of message_age
    policy: str = "producer_request_hold"  # or producer_exception, consumer_backlog_eviction


@dataclass(frozen=True, slots=True)
class DelayedDelivery:
    """Whether deliver_at_time is heeded, how exactly, and the longest delay; 0: any."""

    active: bool = True
    tick_ms: int = 1000
    max_delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Inactivity:
    """When a topic that nobody uses is deleted. `mode` as in brokerDeleteInactiveTopicsMode."""

    delete: bool = False
    max_seconds: int = 60
    mode: str = "delete_when_no_subscriptions"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often one consumer may subscribe; 0 or less: any number."""

    subscribes: int = 0
    period_seconds: int = 30


@dataclass(frozen=True, slots=True)
class PublishRate:
    """How fast messages may come in, a second; 0 or less: as they come."""

    messages: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class DispatchRate:
    """How fast they may go out in a period; 0 or less: as fast as they are taken. `relative`: so many more than come
    in."""

    messages: int = 0
    bytes: int = 0
    period_seconds: int = 1
    relative: bool = False


@dataclass(frozen=True, slots=True)
class SchemaPolicies:
    """What a new schema must fit (`strategy`), whether producers may bring one, and whether they must have one where
    there is one."""

    strategy: str = "FULL"
    auto_update: bool = True
    validation_enforced: bool = False


@dataclass(frozen=True, slots=True)
class AutoCreation:
    """Whether clients may make topics in a namespace, and of how many partitions; 0: topics without."""

    allowed: bool
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What holds for one topic. Limits of 0 are none."""

    message_ttl_seconds: int = 0
    retention: Retention = NO_RETENTION
    backlog_quotas: Mapping[str, Quota] = field(default_factory=lambda: MappingProxyType({}))  # by kind
    deduplication: bool = False
    deduplication_snapshot_seconds: int = 120
    delayed_delivery: DelayedDelivery = DelayedDelivery()
    inactivity: Inactivity = Inactivity()
    max_unacked_per_consumer: int = 50_000
    max_unacked_per_subscription: int = 200_000
    max_producers: int = 0
    max_consumers: int = 0
    max_consumers_per_subscription: int = 0
    max_subscriptions: int = 0
    subscription_expiration_minutes: int = 0
    compaction_threshold: int = 0  # bytes
    max_message_size: int = 0  # metadata and payload together
    encryption_required: bool = False
    auto_subscription: bool = True
    publish_rate: PublishRate = PublishRate()
    resource_group: str = ""
    dispatch_rate: DispatchRate = DispatchRate()
    subscription_dispatch_rate: DispatchRate = DispatchRate()  # of those without one of their own
    subscription_dispatch_rates: Mapping[str, DispatchRate] = field(default_factory=lambda: MappingProxyType({}))
    subscribe_rate: Rate = Rate()
    subscription_types: frozenset[str] = frozenset()  # that consumers may ask for
    schemas: SchemaPolicies = SchemaPolicies()
    shadows: frozenset[str] = frozenset()  # the shadow topics that get new messages

    def dispatch_rate_of(self, subscription: str) -> DispatchRate:
        """How fast messages may go out to one subscription."""
        return self.subscription_dispatch_rates.get(subscription, self.subscription_dispatch_rate)
