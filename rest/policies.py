"""What policies of namespaces and topics are, in Pulsar's names."""

from __future__ import annotations

from typing import Any, TypedDict


class RetentionPolicies(TypedDict):
    """How much acknowledged data is kept: minutes and MB; -1 is without limit, both 0 is nothing."""

    retentionTimeInMinutes: int
    retentionSizeInMB: int


class BacklogQuota(TypedDict, total=False):
    """Bytes (`limit` is the older name of `limitSize`) and seconds, -1 for no limit.

    `policy`: producer_request_hold, producer_exception or consumer_backlog_eviction.
    """

    limit: int
    limitSize: int
    limitTime: int
    policy: str


class PersistencePolicies(TypedDict, total=False):
    """How data is spread over bookies; saves of a cursor a second, 0 without limit."""

    bookkeeperEnsemble: int
    bookkeeperWriteQuorum: int
    bookkeeperAckQuorum: int
    managedLedgerMaxMarkDeleteRate: float
    managedLedgerStorageClassName: str


class PublishRate(TypedDict):
    """Per second; -1 is without limit."""

    publishThrottlingRateInMsg: int
    publishThrottlingRateInByte: int


class DispatchRate(TypedDict, total=False):
    """Per `ratePeriodInSecond`; -1 is without limit."""

    dispatchThrottlingRateInMsg: int
    dispatchThrottlingRateInByte: int
    relativeToPublishRate: bool
    ratePeriodInSecond: int


class SubscribeRate(TypedDict):
    """Of a consumer, per `ratePeriodInSecond`; -1 is without limit."""

    subscribeThrottlingRatePerConsumer: int
    ratePeriodInSecond: int


class DelayedDeliveryPolicies(TypedDict, total=False):
    """Milliseconds: how often due messages are looked for, and the longest delay (0: any)."""

    tickTime: int
    active: bool
    maxDeliveryDelayInMillis: int


class InactiveTopicPolicies(TypedDict):
    """`inactiveTopicDeleteMode`: delete_when_no_subscriptions or delete_when_subscriptions_caught_up."""

    inactiveTopicDeleteMode: str
    maxInactiveDurationSeconds: int
    deleteWhileInactive: bool


class AutoTopicCreation(TypedDict, total=False):
    """`topicType`: partitioned or non-partitioned."""

    allowAutoTopicCreation: bool
    topicType: str
    defaultNumPartitions: int


class AutoSubscriptionCreation(TypedDict):
    """Whether consumers create subscriptions."""

    allowAutoSubscriptionCreation: bool


class EntryFilters(TypedDict):
    """Names, with commas between."""

    entryFilterNames: str


class BookieAffinity(TypedDict, total=False):
    """Groups of bookies that keep a namespace."""

    bookkeeperAffinityGroupPrimary: str
    bookkeeperAffinityGroupSecondary: str


class Bundles(TypedDict, total=False):
    """The bundles of a namespace: `boundaries` in hexadecimal, one more than bundles."""

    boundaries: list[str]
    numBundles: int


#: OffloadPolicies, by driver.
OffloadPolicies = dict[str, Any]
#: Everything that is set for a namespace.
Policies = dict[str, Any]
