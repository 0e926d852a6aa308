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
