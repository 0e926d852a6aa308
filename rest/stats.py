"""What stats hold, as far as it stays the same from version to version; a broker may say more, and less."""

from __future__ import annotations

from typing import TypedDict


class Incoming(TypedDict, total=False):
    """Count incoming messages: rates are per second, of bytes where they are called throughput."""

    msgRateIn: float
    msgThroughputIn: float
    averageMsgSize: float


class Outgoing(TypedDict, total=False):
    """Count outgoing messages."""

    msgRateOut: float
    msgThroughputOut: float
    bytesOutCounter: int
    msgOutCounter: int


class Acknowledged(Outgoing, total=False):
    """Count messages that go out and are acknowledged; timestamps in milliseconds since the epoch."""

    msgRateRedeliver: float
    messageAckRate: float
    unackedMessages: int
    lastAckedTimestamp: int
    lastConsumedTimestamp: int


class Connected(TypedDict, total=False):
    """Name the client of a producer or consumer."""

    address: str
    connectedSince: str
    clientVersion: str
    metadata: dict[str, str]


class PublisherStats(Incoming, Connected, total=False):
    """Describe a producer of a topic."""

    producerId: int
    producerName: str
    accessMode: str


class ConsumerStats(Acknowledged, Connected, total=False):
    """Describe a consumer of a subscription."""

    consumerName: str
    availablePermits: int
    avgMessagesPerEntry: int
    blockedConsumerOnUnackedMsgs: bool
    keyHashRanges: list[str]


class SubscriptionStats(Acknowledged, total=False):
    """`msgBacklog` counts entries, or messages where a precise backlog was asked for; sizes are bytes."""

    type: str
    msgRateExpired: float
    msgBacklog: int
    msgBacklogNoDelayed: int
    backlogSize: int
    earliestMsgPublishTimeInBacklog: int
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
    """Of a topic's compactions; milliseconds and bytes."""

    lastCompactionRemovedEventCount: int
    lastCompactionSucceedTimestamp: int
    lastCompactionFailedTimestamp: int
    lastCompactionDurationTimeInMills: int


class TopicStats(Incoming, Outgoing, total=False):
    """Rates are per second; sizes are bytes; times are milliseconds since the epoch."""

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
    """0 `partitions`: it is not partitioned."""

    partitions: int
    deleted: bool
    properties: dict[str, str]


class PartitionedTopicStats(TopicStats, total=False):
    """The partitions together, and each if that was asked for."""

    metadata: PartitionedTopicMetadata
    partitions: dict[str, TopicStats]


class LedgerInfo(TypedDict, total=False):
    """One ledger of a topic; an open one has its numbers elsewhere. Sizes are bytes."""

    ledgerId: int
    entries: int
    size: int
    offloaded: bool
    underReplicated: bool
    metadata: str


class CursorStats(TypedDict, total=False):
    """A cursor; positions are `ledger:entry`."""

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
    """Ledgers and cursors; positions are `ledger:entry`, sizes bytes."""

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
    compactedLedger: LedgerInfo


class PartitionedTopicInternalStats(TypedDict, total=False):
    """Of each partition, by its name."""

    metadata: PartitionedTopicMetadata
    partitions: dict[str, TopicInternalStats]


class BacklogAnalysis(TypedDict, total=False):
    """What a subscription has yet to acknowledge, counted entry by entry."""

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
    """Of a compaction or an offload: NOT_RUN, RUNNING, SUCCESS or ERROR."""

    status: str
    lastError: str
