"""The broker.conf keys of scalable topics, and of transactions over them, that Pulsar 5.0 added."""

from dataclasses import dataclass

from pulsarium.broker.config.meaning import key


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableTopicsConfig:
    """Settings of scalable topics of one broker, named as in broker.conf."""

    # Scalable topics
    scalableTopicsEnabled: bool = key(True, "Serve scalable topics to clients")
    scalableTopicEntryBucketBudget: int = key(
        4, "Entry buckets of a new scalable topic, divided among its segments (PIP-486)", low=1
    )
    scalableTopicEntryBucketMaxPerSegment: int = key(1_024, "Most entry buckets of a segment", low=1, high=1_024)
    scalableTopicConsumerSessionGracePeriodSeconds: int = key(
        60, "Time for a registered consumer to come back before its segments go to others", "seconds", low=0
    )
    scalableTopicAutoScaleEnabled: bool = key(True, "Split, merge and rebucket the segments of scalable topics")
    scalableTopicAutoScaleIntervalSeconds: int = key(60, "Interval between decisions about segments", "seconds", low=1)
    scalableTopicMaxSegments: int = key(64, "Most active segments of a topic", low=1)
    scalableTopicMinSegments: int = key(1, "Active segments that merges leave", low=1)
    scalableTopicMaxDagDepth: int = key(10, "Most merges in the line of a segment's ancestors", low=0)
    scalableTopicSplitCooldownSeconds: int = key(60, "Time from a split to the next", "seconds", low=0)
    scalableTopicMergeCooldownSeconds: int = key(300, "Time from a merge to the next", "seconds", low=0)
    scalableTopicMergeWindowSeconds: int = key(300, "Time for which merged segments were cold", "seconds", low=0)
    scalableTopicRebucketCooldownSeconds: int = key(60, "Time from a rebucket to the next", "seconds", low=0)
    scalableTopicSplitMsgRateInThreshold: float = key(10_000.0, "Messages in that split a segment", "per second")
    scalableTopicSplitBytesRateInThreshold: int = key(50_000_000, "Bytes in that split a segment", "per second")
    scalableTopicSplitMsgRateOutThreshold: float = key(50_000.0, "Messages out that split a segment", "per second")
    scalableTopicSplitBytesRateOutThreshold: int = key(250_000_000, "Bytes out that split a segment", "per second")
    scalableTopicMergeMsgRateInThreshold: float = key(1_000.0, "Messages in of a cold segment", "per second")
    scalableTopicMergeBytesRateInThreshold: int = key(5_000_000, "Bytes in of a cold segment", "per second")
    scalableTopicMergeMsgRateOutThreshold: float = key(5_000.0, "Messages out of a cold segment", "per second")
    scalableTopicMergeBytesRateOutThreshold: int = key(25_000_000, "Bytes out of a cold segment", "per second")
    scalableTopicSplitVsRebucketMinMsgRateInThreshold: float = key(
        1_000.0, "Messages in from which more consumers split a segment in place of sharing its buckets", "per second"
    )
    scalableTopicLoadReportIntervalSeconds: int = key(10, "Interval between measurements of segments", "seconds", low=1)
    scalableTopicLoadReportRateChangeThreshold: float = key(
        0.25, "Part of a rate by which the rate must change to count as another", low=0
    )

    # Transactions over scalable topics
    transactionCoordinatorScalableTopicsEnabled: bool = key(True, "Serve transactions over scalable topics")
    transactionCoordinatorScalableTopicsParallelism: int = key(
        16, "Coordinators of transactions over scalable topics", low=1
    )
    transactionCoordinatorScalableTopicsTimeoutSweepIntervalSeconds: int = key(
        60, "Interval between searches for overdue transactions over scalable topics", "seconds", low=1
    )
    transactionCoordinatorScalableTopicsGcIntervalSeconds: int = key(
        300, "Interval between searches for old ended transactions over scalable topics", "seconds", low=1
    )
    transactionCoordinatorScalableTopicsGcRetentionSeconds: int = key(
        900, "Time that an ended transaction over scalable topics is kept", "seconds", low=0
    )
