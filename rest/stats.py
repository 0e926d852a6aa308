"""Statistics of topics, with fields that do not change between versions. A broker may return more fields, or fewer."""

from __future__ import annotations

from typing import TypedDict


class Incoming(TypedDict, total=False):
    """Incoming messages: rates are per second, and of bytes where they are called throughput."""

    msgRateIn: float
    msgThroughputIn: float
    averageMsgSize: float


class Outgoing(TypedDict, total=False):
    """Outgoing messages."""

    msgRateOut: float
    msgThroughputOut: float
    bytesOutCounter: int
    msgOutCounter: int


class Acknowledged(Outgoing, total=False):
    """Messages that are dispatched and acknowledged; timestamps are in milliseconds since the epoch."""

    msgRateRedeliver: float
    messageAckRate: float
    unackedMessages: int
    lastAckedTimestamp: int
    lastConsumedTimestamp: int


class Connected(TypedDict, total=False):
    """The client of a producer or consumer."""

    address: str
    connectedSince: str
    clientVersion: str
    metadata: dict[str, str]


class PublisherStats(Incoming, Connected, total=False):
    """A producer of a topic."""

    producerId: int
    producerName: str
    accessMode: str


class ConsumerStats(Acknowledged, Connected, total=False):
    """A consumer of a subscription."""

    consumerName: str
    availablePermits: int
    avgMessagesPerEntry: int
    blockedConsumerOnUnackedMsgs: bool
    keyHashRanges: list[str]


class SubscriptionStats(Acknowledged, total=False):
    """A subscription.

    `msgBacklog` counts entries, or messages if a precise backlog was requested. Sizes are in bytes.
    """

    type: str
    msgRateExpired: float
    msgBacklog: int
    msgBacklogNoDelayed: int
    backlogSize: int
    earliestMsgPublishTimeInBacklog: int
    oldestBacklogMessageAgeSeconds: int
    msgDelayed: int
    blockedSubscriptionOnUnackedMsgs: bool
    activeConsumerName: str
    totalMsgExpired: int
    lastExpireTimestamp: int
    lastMarkDeleteAdvancedTimestamp: int
    isDurable: bool
    isReplicated: bool
    allowOutOfOrderDelivery: bool
    consumersAfterMarkDeletePosition: dict[str, str]
    nonContiguousDeletedMessagesRanges: int
    subscriptionProperties: dict[str, str]
    consumers: list[ConsumerStats]


class CompactionStats(TypedDict, total=False):
    """Compactions of a topic, in milliseconds and bytes."""

    lastCompactionRemovedEventCount: int
    lastCompactionSucceedTimestamp: int
    lastCompactionFailedTimestamp: int
    lastCompactionDurationTimeInMills: int


class TopicStats(Incoming, Outgoing, total=False):
    """A topic. Rates are per second, sizes in bytes, times in milliseconds since the epoch."""

    bytesInCounter: int
    msgInCounter: int
    msgChunkPublished: bool
    storageSize: int
    backlogSize: int
    backlogQuotaLimitSize: int
    backlogQuotaLimitTime: int
    oldestBacklogMessageAgeSeconds: int
    earliestMsgPublishTimeInBacklogs: int
    publishers: list[PublisherStats]
    waitingPublishers: int
    subscriptions: dict[str, SubscriptionStats]
    deduplicationStatus: str
    topicEpoch: int
    ownerBroker: str
    nonContiguousDeletedMessagesRanges: int
    compaction: CompactionStats
    lastPublishTimeStamp: int
    topicCreationTimeStamp: int


class PartitionedTopicMetadata(TypedDict, total=False):
    """The number of partitions; 0 for a topic that is not partitioned."""

    partitions: int
    deleted: bool
    properties: dict[str, str]


class PartitionedTopicStats(TopicStats, total=False):
    """Sums over all partitions, and each partition if requested."""

    metadata: PartitionedTopicMetadata
    partitions: dict[str, TopicStats]


class LedgerInfo(TypedDict, total=False):
    """A ledger of a topic. Sizes are in bytes. The current ledger's numbers stand in `TopicInternalStats`."""

    ledgerId: int
    entries: int
    size: int
    offloaded: bool
    underReplicated: bool
    metadata: str


class CursorStats(TypedDict, total=False):
    """A cursor. Positions are `ledger:entry`."""

    markDeletePosition: str
    readPosition: str
    waitingReadOp: bool
    pendingReadOps: int
    messagesConsumedCounter: int
    cursorLedger: int
    cursorLedgerLastEntry: int
    individuallyDeletedMessages: str
    state: str
    active: bool
    numberOfEntriesSinceFirstNotAckedMessage: int
    totalNonContiguousDeletedMessagesRange: int
    properties: dict[str, int]


class TopicInternalStats(TypedDict, total=False):
    """Ledgers and cursors of a topic. Positions are `ledger:entry`, sizes are in bytes."""

    entriesAddedCounter: int
    numberOfEntries: int
    totalSize: int
    currentLedgerEntries: int
    currentLedgerSize: int
    lastLedgerCreatedTimestamp: str
    waitingCursorsCount: int
    pendingAddEntriesCount: int
    lastConfirmedEntry: str
    state: str
    ledgers: list[LedgerInfo]
    cursors: dict[str, CursorStats]
    properties: dict[str, str]
    compactedLedger: LedgerInfo


class PartitionedTopicInternalStats(TypedDict, total=False):
    """Ledgers and cursors of each partition, by its name."""

    metadata: PartitionedTopicMetadata
    partitions: dict[str, TopicInternalStats]


class BacklogAnalysis(TypedDict, total=False):
    """The backlog of a subscription, counted entry by entry."""

    entries: int
    messages: int
    markerMessages: int
    filterAcceptedEntries: int
    filterRejectedEntries: int
    filterRescheduledEntries: int
    filterAcceptedMessages: int
    filterRejectedMessages: int
    filterRescheduledMessages: int
    aborted: bool
    firstMessageId: str
    lastMessageId: str


class LongRunningStatus(TypedDict, total=False):
    """The status of a compaction or an offload: NOT_RUN, RUNNING, SUCCESS or ERROR."""

    status: str
    lastError: str
