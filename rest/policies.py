"""Policies of topics and namespaces: a row for each, from which broker, client and command line derive what they do.

Nothing is imported here: whoever speaks of policies imports this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeAlias, TypedDict, TypeVar

T = TypeVar("T")

Long: TypeAlias = Annotated[int, "long"]
"""A number of 64 bits; others have 32."""


class RetentionPolicies(TypedDict):
    """How much acknowledged data is kept: minutes and MB; -1 is without limit, both 0 is nothing."""

    retentionTimeInMinutes: int
    retentionSizeInMB: Long


class BacklogQuota(TypedDict, total=False):
    """Bytes (`limit` is the older name of `limitSize`) and seconds, -1 for no limit.

    `policy`: producer_request_hold, producer_exception or consumer_backlog_eviction.
    """

    limit: Long
    limitSize: Long
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
    publishThrottlingRateInByte: Long


class DispatchRate(TypedDict, total=False):
    """Per `ratePeriodInSecond`; -1 is without limit."""

    dispatchThrottlingRateInMsg: int
    dispatchThrottlingRateInByte: Long
    relativeToPublishRate: bool
    ratePeriodInSecond: int


class SubscribeRate(TypedDict):
    """Of a consumer, per `ratePeriodInSecond`; -1 is without limit."""

    subscribeThrottlingRatePerConsumer: int
    ratePeriodInSecond: int


class DelayedDeliveryPolicies(TypedDict, total=False):
    """Milliseconds: how often due messages are looked for, and the longest delay (0: any)."""

    tickTime: Long
    active: bool
    maxDeliveryDelayInMillis: Long


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


class OffloadPolicies(TypedDict, total=False):
    """Where old ledgers would go: `managedLedgerOffloadDriver` says to what, and the others say how."""

    offloadersDirectory: str
    managedLedgerOffloadDriver: str
    managedLedgerOffloadMaxThreads: int
    managedLedgerOffloadReadThreads: int
    managedLedgerOffloadPrefetchRounds: int
    managedLedgerOffloadThresholdInSeconds: Long
    managedLedgerOffloadThresholdInBytes: Long
    managedLedgerOffloadDeletionLagInMillis: Long
    managedLedgerOffloadedReadPriority: str
    managedLedgerExtraConfigurations: dict[str, str]
    s3ManagedLedgerOffloadRegion: str
    s3ManagedLedgerOffloadBucket: str
    s3ManagedLedgerOffloadServiceEndpoint: str
    s3ManagedLedgerOffloadMaxBlockSizeInBytes: int
    s3ManagedLedgerOffloadReadBufferSizeInBytes: int
    s3ManagedLedgerOffloadCredentialId: str
    s3ManagedLedgerOffloadCredentialSecret: str
    s3ManagedLedgerOffloadRole: str
    s3ManagedLedgerOffloadRoleSessionName: str
    gcsManagedLedgerOffloadRegion: str
    gcsManagedLedgerOffloadBucket: str
    gcsManagedLedgerOffloadMaxBlockSizeInBytes: int
    gcsManagedLedgerOffloadReadBufferSizeInBytes: int
    gcsManagedLedgerOffloadServiceAccountKeyFile: str
    fileSystemProfilePath: str
    fileSystemURI: str
    managedLedgerOffloadBucket: str
    managedLedgerOffloadRegion: str
    managedLedgerOffloadServiceEndpoint: str
    managedLedgerOffloadMaxBlockSizeInBytes: int
    managedLedgerOffloadReadBufferSizeInBytes: int


OFFLOAD_DEFAULTS: Final[Mapping[str, Any]] = {
    "offloadersDirectory": "./offloaders",
    "managedLedgerOffloadMaxThreads": 2,
    "managedLedgerOffloadReadThreads": 2,
    "managedLedgerOffloadPrefetchRounds": 1,
    "managedLedgerExtraConfigurations": {},
    "s3ManagedLedgerOffloadMaxBlockSizeInBytes": 64 << 20,
    "s3ManagedLedgerOffloadReadBufferSizeInBytes": 1 << 20,
    "s3ManagedLedgerOffloadRoleSessionName": "pulsar-s3-offload",
    "gcsManagedLedgerOffloadMaxBlockSizeInBytes": 128 << 20,
    "gcsManagedLedgerOffloadReadBufferSizeInBytes": 1 << 20,
}
"""What Pulsar's own class has where nothing is said."""

JAVA: Final[Mapping[Any, str]] = {
    RetentionPolicies: "RetentionPolicies",
    BacklogQuota: "impl.BacklogQuotaImpl",
    PersistencePolicies: "PersistencePolicies",
    PublishRate: "PublishRate",
    DispatchRate: "impl.DispatchRateImpl",
    SubscribeRate: "SubscribeRate",
    DelayedDeliveryPolicies: "impl.DelayedDeliveryPoliciesImpl",
    InactiveTopicPolicies: "InactiveTopicPolicies",
    AutoTopicCreation: "impl.AutoTopicCreationOverrideImpl",
    AutoSubscriptionCreation: "impl.AutoSubscriptionCreationOverrideImpl",
    EntryFilters: "EntryFilters",
    OffloadPolicies: "OffloadPoliciesImpl",
}
"""The classes of Pulsar, in org.apache.pulsar.common.policies.data, that have the same fields."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where namespaces, or topics, have a policy, and by which calls; `word` is the last part of its path."""

    word: str
    setting: str = "POST"  # the method that sets it; "": it is set part by part
    removal: str = "DELETE"  # the method that removes it; "": none does
    removed_at: str = ""  # instead of `word`
    applied: bool = False  # ?applied=true gives what holds in the end
    is_local: bool = False  # there is none for all clusters
    in_query: bool = False  # the value stands there


@dataclass(frozen=True, slots=True, eq=False)
class Policy(Generic[T]):
    """A policy, whose value in JSON is a `json`.

    Where nothing is set broker.conf's `conf` holds, or its keys by the fields of the value, and `default` where it has
    no key.
    """

    json: type[T]
    kept: str  # its name in the JSON of a namespace's policies; those of topics are kept by it too
    right: str  # Pulsar's PolicyName
    about: str
    namespace: Place | None = None
    topic: Place | None = None
    event: str = ""  # its name in the events of __change_events
    conf: str | Mapping[str, str] = ""
    default: Any = None
    per_cluster: bool = False  # kept by cluster, and REST is about the broker's own
    has_body: bool = True  # else being set is all there is to it


def _applied(word: str, setting: str = "POST", *, is_local: bool = False, in_query: bool = False) -> Place:
    return Place(word, setting, applied=True, is_local=is_local, in_query=in_query)


def _rates(messages: str, size: str) -> Mapping[str, str]:
    return {"dispatchThrottlingRateInMsg": messages, "dispatchThrottlingRateInByte": size}


_RATE: Final = {
    "dispatchThrottlingRateInMsg": 0,
    "dispatchThrottlingRateInByte": 0,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}

# fmt: off
# ---- how much, how fast, how long
MESSAGE_TTL = Policy(int, "message_ttl_in_seconds", "TTL", "Seconds after which messages expire; 0: never",
    Place("messageTTL"), _applied("messageTTL", in_query=True), "messageTTLInSeconds", "ttlDurationDefaultInSeconds")
RETENTION = Policy(RetentionPolicies, "retention_policies", "RETENTION", "How much acknowledged data is kept",
    Place("retention"), _applied("retention"), "retentionPolicies",
    {"retentionTimeInMinutes": "defaultRetentionTimeInMinutes", "retentionSizeInMB": "defaultRetentionSizeInMB"})
BACKLOG_QUOTAS = Policy(dict[str, BacklogQuota], "backlog_quota_map", "BACKLOG",
    "What happens at how much backlog, by what is bounded: destination_storage, message_age",
    Place("backlogQuotaMap", "", ""), Place("backlogQuotaMap", "", "", applied=True), "backLogQuotaMap")
COMPACTION_THRESHOLD = Policy(int, "compaction_threshold", "COMPACTION",
    "Bytes of new messages at which a topic is compacted; 0: never", Place("compactionThreshold", "PUT"),
    _applied("compactionThreshold"), "compactionThreshold", "brokerServiceCompactionThresholdInBytes")
INACTIVE_TOPICS = Policy(InactiveTopicPolicies, "inactive_topic_policies", "INACTIVE_TOPIC",
    "When a topic is deleted that nobody uses", Place("inactiveTopicPolicies"), _applied("inactiveTopicPolicies"),
    "inactiveTopicPolicies",
    {"inactiveTopicDeleteMode": "brokerDeleteInactiveTopicsMode", "maxInactiveDurationSeconds": "max_inactive_seconds",
     "deleteWhileInactive": "brokerDeleteInactiveTopicsEnabled"})
SUBSCRIPTION_EXPIRATION = Policy(int, "subscription_expiration_time_minutes", "SUBSCRIPTION_EXPIRATION_TIME",
    "Minutes after which a subscription is deleted that nobody uses; 0: never", Place("subscriptionExpirationTime"),
    _applied("subscriptionExpirationTime", in_query=True), "subscriptionExpirationTimeInMinutes",
    "subscriptionExpirationTimeMinutes")
MAX_TOPICS = Policy(int, "max_topics_per_namespace", "MAX_TOPICS", "Most topics of a namespace; 0: any number",
    Place("maxTopicsPerNamespace"), conf="maxTopicsPerNamespace")
MAX_PRODUCERS = Policy(int, "max_producers_per_topic", "MAX_PRODUCERS", "Most producers of a topic; 0: any number",
    Place("maxProducersPerTopic"), _applied("maxProducers"), "maxProducerPerTopic", "maxProducersPerTopic")
MAX_CONSUMERS = Policy(int, "max_consumers_per_topic", "MAX_CONSUMERS", "Most consumers of a topic; 0: any number",
    Place("maxConsumersPerTopic"), _applied("maxConsumers"), "maxConsumerPerTopic", "maxConsumersPerTopic")
MAX_CONSUMERS_PER_SUBSCRIPTION = Policy(int, "max_consumers_per_subscription", "MAX_CONSUMERS",
    "Most consumers of a subscription; 0: any number", Place("maxConsumersPerSubscription"),
    Place("maxConsumersPerSubscription"), "maxConsumersPerSubscription", "maxConsumersPerSubscription")
MAX_SUBSCRIPTIONS = Policy(int, "max_subscriptions_per_topic", "MAX_SUBSCRIPTIONS",
    "Most subscriptions of a topic; 0: any number", Place("maxSubscriptionsPerTopic"),
    Place("maxSubscriptionsPerTopic"), "maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic")
MAX_UNACKED_PER_CONSUMER = Policy(int, "max_unacked_messages_per_consumer", "MAX_UNACKED",
    "Messages that a consumer may leave unacknowledged; 0: any number", Place("maxUnackedMessagesPerConsumer"),
    _applied("maxUnackedMessagesOnConsumer"), "maxUnackedMessagesOnConsumer", "maxUnackedMessagesPerConsumer")
MAX_UNACKED_PER_SUBSCRIPTION = Policy(int, "max_unacked_messages_per_subscription", "MAX_UNACKED",
    "Messages that all consumers of a subscription may leave unacknowledged; 0: any number",
    Place("maxUnackedMessagesPerSubscription"), _applied("maxUnackedMessagesOnSubscription"),
    "maxUnackedMessagesOnSubscription", "maxUnackedMessagesPerSubscription")
MAX_MESSAGE_SIZE = Policy(int, "max_message_size", "MAX_MESSAGE_SIZE",
    "Bytes of the largest message; 0: as the broker says", None, Place("maxMessageSize"), "maxMessageSize", default=0)
PUBLISH_RATE = Policy(PublishRate, "publishMaxMessageRate", "RATE", "How fast messages may come in to a topic",
    Place("publishRate"), Place("publishRate"), "publishRate", per_cluster=True)
DISPATCH_RATE = Policy(DispatchRate, "topicDispatchRate", "RATE", "How fast a topic's messages go out",
    Place("dispatchRate"), _applied("dispatchRate"), "dispatchRate",
    _rates("dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerTopicInByte"), _RATE, per_cluster=True)
SUBSCRIPTION_DISPATCH_RATE = Policy(DispatchRate, "subscriptionDispatchRate", "RATE",
    "How fast messages go out to one subscription", Place("subscriptionDispatchRate"),
    _applied("subscriptionDispatchRate"), "subscriptionDispatchRate",
    _rates("dispatchThrottlingRatePerSubscriptionInMsg", "dispatchThrottlingRatePerSubscriptionInByte"), _RATE,
    per_cluster=True)
REPLICATOR_DISPATCH_RATE = Policy(DispatchRate, "replicatorDispatchRate", "REPLICATION_RATE",
    "How fast messages go out to another cluster", Place("replicatorDispatchRate"), _applied("replicatorDispatchRate"),
    "replicatorDispatchRate", default=_RATE, per_cluster=True)
SUBSCRIBE_RATE = Policy(SubscribeRate, "clusterSubscribeRate", "RATE", "How often one consumer may subscribe",
    Place("subscribeRate"), _applied("subscribeRate"), "subscribeRate",
    {"subscribeThrottlingRatePerConsumer": "subscribeThrottlingRatePerConsumer",
     "ratePeriodInSecond": "subscribeRatePeriodPerConsumerInSecond"},
    per_cluster=True)

# ---- what is allowed, and how data is kept
DEDUPLICATION = Policy(bool, "deduplicationEnabled", "DEDUPLICATION",
    "Whether messages that were sent twice are dropped", Place("deduplication"), _applied("deduplicationEnabled"),
    "deduplicationEnabled", "brokerDeduplicationEnabled")
DEDUPLICATION_SNAPSHOTS = Policy(int, "deduplicationSnapshotIntervalSeconds", "DEDUPLICATION_SNAPSHOT",
    "Seconds after which sequence ids are kept", Place("deduplicationSnapshotInterval", removal="POST"),
    Place("deduplicationSnapshotInterval"), "deduplicationSnapshotIntervalSeconds",
    "brokerDeduplicationSnapshotIntervalSeconds")
DELAYED_DELIVERY = Policy(DelayedDeliveryPolicies, "delayed_delivery_policies", "DELAYED_DELIVERY",
    "Whether deliver_at_time is heeded", Place("delayedDelivery"), _applied("delayedDelivery"), "",
    {"tickTime": "delayedDeliveryTickTimeMillis", "active": "delayedDeliveryEnabled",
     "maxDeliveryDelayInMillis": "delayedDeliveryMaxDelayInMillis"})
AUTO_TOPIC_CREATION = Policy(AutoTopicCreation, "autoTopicCreationOverride", "AUTO_TOPIC_CREATION",
    "Whether clients make topics, and of how many partitions", Place("autoTopicCreation"))
AUTO_SUBSCRIPTION_CREATION = Policy(AutoSubscriptionCreation, "autoSubscriptionCreationOverride",
    "AUTO_SUBSCRIPTION_CREATION", "Whether consumers make subscriptions", Place("autoSubscriptionCreation"),
    _applied("autoSubscriptionCreation"), "autoSubscriptionCreationOverride",
    {"allowAutoSubscriptionCreation": "allowAutoSubscriptionCreation"})
SUBSCRIPTION_TYPES = Policy(list[str], "subscription_types_enabled", "SUBSCRIPTION_AUTH_MODE",
    "Subscription types that consumers may ask for: Exclusive, Shared, Failover, Key_Shared; []: any that hold above",
    Place("subscriptionTypesEnabled"), Place("subscriptionTypesEnabled"), "subscriptionTypesEnabled")
SUBSCRIPTION_AUTH_MODE = Policy(str, "subscription_auth_mode", "SUBSCRIPTION_AUTH_MODE",
    "Whether a subscription's name must begin with the role: None, Prefix", Place("subscriptionAuthMode", removal=""))
ENCRYPTION_REQUIRED = Policy(bool, "encryption_required", "ENCRYPTION", "Whether what is not encrypted is refused",
    Place("encryptionRequired", removal=""))
SCHEMA_STRATEGY = Policy(str, "schema_compatibility_strategy", "SCHEMA_COMPATIBILITY_STRATEGY",
    "What a new schema must be compatible with, like BACKWARD or FULL_TRANSITIVE",
    Place("schemaCompatibilityStrategy", "PUT", ""), _applied("schemaCompatibilityStrategy", "PUT", is_local=True),
    "schemaCompatibilityStrategy", "schemaCompatibilityStrategy")
OLDER_SCHEMA_STRATEGY = Policy(str, "schema_auto_update_compatibility_strategy", "SCHEMA_COMPATIBILITY_STRATEGY",
    "The same by its old name, like Backward or AutoUpdateDisabled",
    Place("schemaAutoUpdateCompatibilityStrategy", "PUT", ""))
SCHEMA_AUTO_UPDATE = Policy(bool, "is_allow_auto_update_schema", "SCHEMA_COMPATIBILITY_STRATEGY",
    "Whether producers may bring new schemas", Place("isAllowAutoUpdateSchema", removal=""))
SCHEMA_VALIDATION = Policy(bool, "schema_validation_enforced", "SCHEMA_COMPATIBILITY_STRATEGY",
    "Whether producers without a schema are refused where there is one",
    Place("schemaValidationEnforced", removal="", applied=True),
    Place("schemaValidationEnforced", removal="", applied=True, is_local=True), "schemaValidationEnforced",
    default=False)
ENTRY_FILTERS = Policy(EntryFilters, "entryFilters", "ENTRY_FILTERS",
    "Filters that entries pass before they are dispatched", Place("entryFilters"), _applied("entryFilters"),
    "entryFilters", default={"entryFilterNames": ""})
DISPATCHER_PAUSE = Policy(bool, "dispatcherPauseOnAckStatePersistentEnabled",
    "DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT", "Whether dispatch waits while acknowledgements cannot be kept",
    Place("dispatcherPauseOnAckStatePersistent"), _applied("dispatcherPauseOnAckStatePersistent"),
    "dispatcherPauseOnAckStatePersistentEnabled", default=False, has_body=False)
METRIC_LABELS = Policy(list[str], "allowed_topic_property_keys_for_metrics", "ALLOW_CUSTOM_METRIC_LABELS",
    "Properties of topics that metrics may show", Place("allowedTopicPropertyKeysForMetrics"))
PERSISTENCE = Policy(PersistencePolicies, "persistence", "PERSISTENCE",
    "How many bookies keep a message, and how often acknowledgements are kept", Place("persistence"),
    _applied("persistence"), "persistence")

# ---- other clusters, other storage
REPLICATION = Policy(list[str], "replication_clusters", "REPLICATION", "The clusters that have the messages",
    Place("replication", removal=""), _applied("replication"), "replicationClusters")
ALLOWED_CLUSTERS = Policy(list[str], "allowed_clusters", "ALLOW_CLUSTERS", "The clusters that may have the messages",
    Place("allowedClusters", removal=""))
SHADOW_TOPICS = Policy(list[str], "shadowTopics", "SHADOW_TOPIC", "The topics that show the same messages", None,
    Place("shadowTopics", "PUT", is_local=True), "shadowTopics")
OFFLOAD = Policy(OffloadPolicies, "offload_policies", "OFFLOAD", "Where old ledgers would go, by driver",
    Place("offloadPolicies", removed_at="removeOffloadPolicies"), _applied("offloadPolicies"), "offloadPolicies")
OFFLOAD_THRESHOLD = Policy(int, "offload_threshold", "OFFLOAD",
    "Bytes from which old ledgers would be offloaded; -1: never", Place("offloadThreshold", "PUT", ""))
OFFLOAD_SECONDS = Policy(int, "offload_threshold_in_seconds", "OFFLOAD",
    "Age in seconds from which they would be; -1: never", Place("offloadThresholdInSeconds", "PUT", ""))
OFFLOAD_LAG = Policy(int, "offload_deletion_lag_ms", "OFFLOAD",
    "Milliseconds that an offloaded ledger would be kept here too", Place("offloadDeletionLagMs", "PUT"))
# fmt: on

POLICIES: Final[tuple[Policy[Any], ...]] = tuple(row for row in list(globals().values()) if isinstance(row, Policy))

ABSENT: Final = object()
_IN_ORDER: Final[dict[str, Any]] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "replication_clusters": [],
    "allowed_clusters": [],
    "bundles": ABSENT,
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "persistence": ABSENT,
    "deduplicationEnabled": ABSENT,
    "autoTopicCreationOverride": ABSENT,
    "autoSubscriptionCreationOverride": ABSENT,
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "message_ttl_in_seconds": ABSENT,
    "subscription_expiration_time_minutes": ABSENT,
    "retention_policies": ABSENT,
    "deleted": False,
    "encryption_required": False,
    "delayed_delivery_policies": ABSENT,
    "inactive_topic_policies": ABSENT,
    "subscription_auth_mode": "None",
    "max_producers_per_topic": ABSENT,
    "max_consumers_per_topic": ABSENT,
    "max_consumers_per_subscription": ABSENT,
    "max_unacked_messages_per_consumer": ABSENT,
    "max_unacked_messages_per_subscription": ABSENT,
    "max_subscriptions_per_topic": ABSENT,
    "compaction_threshold": ABSENT,
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "offload_deletion_lag_ms": ABSENT,
    "max_topics_per_namespace": ABSENT,
    "schema_auto_update_compatibility_strategy": ABSENT,
    "schema_compatibility_strategy": "UNDEFINED",
    "is_allow_auto_update_schema": True,
    "schema_validation_enforced": False,
    "offload_policies": ABSENT,
    "deduplicationSnapshotIntervalSeconds": ABSENT,
    "subscription_types_enabled": [],
    "allowed_topic_property_keys_for_metrics": ABSENT,
    "properties": {},
    "resource_group_name": ABSENT,
    "migrated": False,
    "dispatcherPauseOnAckStatePersistentEnabled": ABSENT,
    "entryFilters": ABSENT,
}
NAMESPACE_DEFAULTS: Final[Mapping[str, Any]] = _IN_ORDER | {
    row.kept: ABSENT for row in POLICIES if row.namespace is not None and row.kept not in _IN_ORDER
}
"""What a new namespace has, in Pulsar's order of its JSON; ABSENT is shown only when it is set."""
