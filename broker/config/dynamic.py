"""Change settings while brokers run (Pulsar's dynamic configuration), by their broker.conf names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Protocol

from pulsarium.broker.config.keys import Config, documented_keys
from pulsarium.broker.config.profile import Profile
from pulsarium.broker.config.proposals import NEGATIVE_ACKS
from pulsarium.broker.config.values import read_value
from pulsarium.broker.logs import PartLog

log = PartLog("config")

FOLDER = "/admin/configuration"

# in Pulsar 4.2's own order, as its REST answer lists them
_TEXT = """
loadBalancerSheddingGracePeriodMinutes loadBalancerBandwithInResourceWeight loadBalancerBandwithOutResourceWeight
loadBalancerNamespaceBundleMaxBandwidthMbytes managedLedgerCursorResetLedgerCloseTimestampMaxClockSkewMillis
subscribeRatePeriodPerConsumerInSecond dispatchThrottlingRatePerSubscriptionInByte maxPublishRatePerTopicInBytes
autoSkipNonRecoverableData brokerPublisherThrottlingMaxByteRate dispatchThrottlingRateInMsg
supportedNamespaceBundleSplitAlgorithms loadBalancerAverageResourceUsageDifferenceThresholdPercentage
brokerDeleteInactiveTopicsFrequencySeconds loadBalancerAvgShedderHighThreshold loadBalancerLoadSheddingStrategy
loadBalancerBrokerMaxTopics loadBalancerMaxNumberOfBrokerSheddingPerCycle loadBalancerAutoBundleSplitEnabled
loadBalancerSheddingConditionHitCountThreshold loadBalancerSheddingEnabled loadBalancerDirectMemoryResourceWeight
loadBalancerSheddingBundlesWithPoliciesEnabled subscriptionTypesEnabled
subscriptionKeySharedUseClassicPersistentImplementation loadBalancerBrokerThresholdShedderPercentage
loadBalancerBandwidthOutResourceWeight loadBalancerNamespaceMaximumBundles
managedLedgerInactiveLedgerRolloverTimeSeconds forceDeleteNamespaceAllowed schemaLedgerForceRecovery
loadBalancerReportUpdateMaxIntervalMinutes dispatchThrottlingRatePerReplicatorInMsg
managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes
loadBalancerNamespaceBundleSplitConditionHitCountThreshold clientLibraryVersionCheckEnabled
maxMessagePublishBufferSizeInMB brokerShutdownTimeoutMs dispatcherMinReadBatchSize
subscriptionSharedUseClassicPersistentImplementation loadBalancerAvgShedderHitCountLowThreshold minUnloadMessage
minUnloadMessageThroughput brokerClientTlsEnabled loadBalancerBrokerLoadDataTTLInSeconds
brokerDeleteInactiveTopicsMaxInactiveDurationSeconds brokerDeleteInactivePartitionedTopicMetadataEnabled
keySharedUnblockingIntervalMs maxTopicsPerNamespace maxNumPartitionsPerPartitionedTopic
loadBalancerReportUpdateMinIntervalMillis dispatchThrottlingRatePerSubscriptionInMsg
loadBalancerServiceUnitStateMaxConcurrentOverrides topicPoliciesCacheInitTimeoutSeconds superUserRoles
transactionPendingAckBatchedWriteEnabled brokerDeleteInactiveTopicsMode loadBalancerMsgRateDifferenceShedderThreshold
dispatcherMaxReadSizeBytes exposeBundlesMetricsInPrometheus managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed
subscriptionRedeliveryTrackerEnabled dispatchThrottlingRatePerTopicInByte dispatchThrottlingRateRelativeToPublishRate
maxNamespacesPerTenant strictlyVerifySubscriptionName defaultNumberOfNamespaceBundles entryFiltersDirectory
dispatcherPauseOnAckStatePersistentEnabled loadBalancerAvgShedderLowThreshold loadBalancerHistoryResourcePercentage
dispatchThrottlingOnBatchMessageEnabled replicationStartAt bookkeeperUseV2WireProtocol
keySharedLookAheadMsgInReplayThresholdPerConsumer loadBalanceSheddingDelayInSeconds
loadBalancerBandwidthInResourceWeight defaultNumPartitions managedLedgerCacheSizeMB maxUnloadPercentage
dispatcherReadFailureBackoffMandatoryStopTimeInMs loadBalancerSheddingExcludedNamespaces allowOverrideEntryFilters
loadBalancerDistributeBundlesEvenlyEnabled dispatchThrottlingRatePerReplicatorInByte
dispatchThrottlingOnNonBacklogConsumerEnabled topicPublisherThrottlingTickTimeMillis unblockStuckSubscriptionEnabled
preciseDispatcherFlowControl maxConcurrentLookupRequest skipBrokerShutdownOnOOM managedLedgerCacheEvictionWatermark
httpRequestsFailOnUnknownPropertiesEnabled brokerPublisherThrottlingMaxMessageRate
loadBalancerNamespaceBundleMaxMsgRate replicationProducerQueueSize loadBalancerNamespaceBundleMaxSessions
loadBalancerTransferEnabled allowAutoTopicCreationType managedLedgerInactiveOffloadedLedgerEvictionTimeSeconds
managedLedgerMaxBacklogBetweenCursorsForCaching loadBalancerNamespaceBundleMaxTopics
loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold dispatcherMaxReadBatchSize
managedLedgerMinimumBacklogCursorsForCaching transactionLogBatchedWriteEnabled brokerClientAuthenticationPlugin
dispatcherReadFailureBackoffInitialTimeInMs subscribeThrottlingRatePerConsumer loadBalancerMemoryResourceWeight
topicFactoryClassName keySharedLookAheadMsgInReplayThresholdPerSubscription brokerClientAuthenticationParameters
loadBalancerReportUpdateThresholdPercentage subscriptionKeySharedEnable managedLedgerCacheEvictionTimeThresholdMillis
brokerDeleteInactiveTopicsEnabled loadBalancerAvgShedderHitCountHighThreshold configurationMetadataSyncEventTopic
managedLedgerMinimumBacklogEntriesForCaching maxPublishRatePerTopicInMessages maxUnloadBundleNumPerShedding
maxConcurrentTopicLoadRequest managedLedgerTraceTaskExecution loadBalancerDebugModeEnabled
resourceUsageTransportPublishIntervalInSecs loadBalancerAutoUnloadSplitBundlesEnabled
dispatcherEntryFilterRescheduledMessageDelay loadBalancerServiceUnitTableViewSyncer
defaultNamespaceBundleSplitAlgorithm dispatcherReadFailureBackoffMaxTimeInMs entryFilterNames
dispatcherMaxRoundRobinBatchSize loadBalancerBundleUnloadMinThroughputThreshold
brokerReplicationInactiveThresholdSeconds preferLaterVersions loadBalancerMaxNumberOfBundlesInBundleLoadReport
dispatchThrottlingRatePerTopicInMsg maxTenants loadBalancerCPUResourceWeight allowAutoTopicCreation
managedLedgerForceRecovery loadBalancerMaxNumberOfBundlesToSplitPerCycle failureDomainsEnabled
loadBalancerBrokerOverloadedThresholdPercentage flowOrQpsDifferenceThresholdPercentage
namespaceBundleUnloadingTimeoutMs dispatchThrottlingRateInByte forceDeleteTenantAllowed isAllowAutoUpdateSchemaEnabled
brokerPublisherThrottlingTickTimeMillis loadBalancerBrokerLoadTargetStd allowAutoSubscriptionCreation
loadBalancerSheddingIntervalMinutes dispatcherDispatchMessagesInSubscriptionThread
loadBalancerHostUsageCheckIntervalMinutes topicNameCacheMaxCapacity loadManagerClassName metadataSyncEventTopic
"""
NAMES = tuple(_TEXT.split())
RATES_OF_SEGMENTS = ("MsgRateIn", "BytesRateIn", "MsgRateOut", "BytesRateOut")
NAMES_OF_SCALABLE_TOPICS = (  # added by 5.0
    "scalableTopicAutoScaleEnabled",
    "scalableTopicMaxSegments",
    "scalableTopicMinSegments",
    "scalableTopicMaxDagDepth",
    "scalableTopicSplitCooldownSeconds",
    "scalableTopicMergeCooldownSeconds",
    "scalableTopicMergeWindowSeconds",
    "scalableTopicRebucketCooldownSeconds",
    *(f"scalableTopic{action}{rate}Threshold" for action in ("Split", "Merge") for rate in RATES_OF_SEGMENTS),
    "scalableTopicSplitVsRebucketMinMsgRateInThreshold",
)


_BROUGHT_BY_5_0_1 = """
brokerCloseInactiveTopicsEnabled exposeConsumerLevelMetricsInPrometheus exposeManagedCursorMetricsInPrometheus
exposeManagedLedgerMetricsInPrometheus exposePreciseBacklogInPrometheus exposeProducerLevelMetricsInPrometheus
exposeSubscriptionBacklogSizeInPrometheus exposeTopicLevelMetricsInPrometheus loadManagerMigrationEnabled
managedLedgerAddEntryHandoverMaxBatchBytesSize managedLedgerAddEntryHandoverMaxBatchItems managedLedgerBatchReadEnabled
scalableTopicEntryBucketBudget scalableTopicEntryBucketMaxPerSegment scalableTopicLoadReportRateChangeThreshold
topicLoadTimeoutSeconds
"""
_DROPPED_BY_5_0_1 = (
    "subscriptionKeySharedUseClassicPersistentImplementation",
    "subscriptionSharedUseClassicPersistentImplementation",
)
_OF_PROPOSALS = {NEGATIVE_ACKS: "keySharedNegativeAckMaxRetryingPositionsPerSubscription"}


def dynamic_names(profile: Profile) -> tuple[str, ...]:
    """Return the names of the settings that a release lets operators change while brokers run."""
    names = (*NAMES, *NAMES_OF_SCALABLE_TOPICS) if profile.scalable_topics else NAMES
    if profile.newer_rest:
        names = (*(name for name in names if name not in _DROPPED_BY_5_0_1), *_BROUGHT_BY_5_0_1.split())
    return (*names, *(name for proposal, name in _OF_PROPOSALS.items() if profile.has(proposal)))


class SettingRecords(Protocol):
    """The store of changed settings."""

    def put(self, folder: str, *names: str, value: Any) -> None:
        """Store a record."""

    def forget(self, folder: str, *names: str) -> None:
        """Delete a record."""

    def inside(self, folder: str, *names: str) -> dict[str, Any]:
        """Return the records of a folder by their names."""


class LiveConfig(Config):
    """The settings of running brokers, which `DynamicSettings` changes. All owners hold this one copy."""

    __slots__ = ()

    def change(self, name: str, value: object) -> None:
        """Set a setting. No other code changes a Config, which is frozen."""
        object.__setattr__(self, name, value)


class DynamicSettings:
    """Settings changed at run time, for all brokers of the cluster and those that start later: `config`.

    A change takes effect on settings that Pulsarium reads whenever it needs them, and on those that become policies of
    topics. `listeners` compute those policies again.
    """

    def __init__(self, config: Config, records: SettingRecords) -> None:
        self._start = config
        self.config = LiveConfig(**{each.name: getattr(config, each.name) for each in fields(config)})
        self._records = records
        self._keys = documented_keys()
        self.listeners: list[Callable[[], None]] = []  # called after each change
        self.recover()

    def recover(self) -> None:
        """Apply the stored settings, and undo all others."""
        for name in self._keys:
            self.config.change(name, getattr(self._start, name))
        for name, text in self.values.items():
            self._apply(name, text)
        self._tell()

    @property
    def values(self) -> dict[str, str]:
        """Return the stored texts by name."""
        return self._records.inside(FOLDER)

    def put(self, name: str, text: str) -> None:
        """Store and apply a setting. A text that cannot be read is stored too, as in Pulsar, but has no effect."""
        self._records.put(FOLDER, name, value=text)
        self._apply(name, text)
        self._tell()

    def forget(self, name: str) -> None:
        """Forget a setting, and return to the value from the start of the broker."""
        self._records.forget(FOLDER, name)
        if name in self._keys:
            self.config.change(name, getattr(self._start, name))
            self._tell()

    def _tell(self) -> None:
        for told in self.listeners:
            told()

    def _apply(self, name: str, text: str) -> None:
        key = self._keys.get(name)
        if key is None:
            log.warning("a dynamic setting is stored and has no effect here: Pulsarium does not have it", name=name)
            return
        try:
            value = read_value(key, text)
        except ValueError as error:
            log.warning(
                "a dynamic setting is stored, but its text cannot be read: it has no effect", name=name, reason=error
            )
            return
        self.config.change(name, value)
