"""Policies of topics and namespaces: one row for each. Broker, client and command line derive their work from it.

This module imports nothing, because every module about policies imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeAlias, TypedDict, TypeVar

T = TypeVar("T")

Long: TypeAlias = Annotated[int, "long"]
"""A number of 64 bits. Other numbers have 32."""


class RetentionPolicies(TypedDict):
    """Limits of acknowledged data that is kept, in minutes and MB. -1 is without limit; both 0 keeps nothing."""

    retentionTimeInMinutes: int
    retentionSizeInMB: Long


class BacklogQuota(TypedDict, total=False):
    """Limits of a backlog in bytes (`limit` is the older name of `limitSize`) and in seconds; -1 for no limit.

    `policy`: producer_request_hold, producer_exception or consumer_backlog_eviction.
    """

    limit: Long
    limitSize: Long
    limitTime: int
    policy: str


class PersistencePolicies(TypedDict, total=False):
    """The number of bookies for data, and the most writes of a cursor per second (0: no limit)."""

    bookkeeperEnsemble: int
    bookkeeperWriteQuorum: int
    bookkeeperAckQuorum: int
    managedLedgerMaxMarkDeleteRate: float
    managedLedgerStorageClassName: str


class PublishRate(TypedDict):
    """Publish rates per second; -1 is without limit."""

    publishThrottlingRateInMsg: int
    publishThrottlingRateInByte: Long


class DispatchRate(TypedDict, total=False):
    """Dispatch rates per `ratePeriodInSecond`; -1 is without limit."""

    dispatchThrottlingRateInMsg: int
    dispatchThrottlingRateInByte: Long
    relativeToPublishRate: bool
    ratePeriodInSecond: int


class SubscribeRate(TypedDict):
    """The subscribe rate of a consumer per `ratePeriodInSecond`; -1 is without limit."""

    subscribeThrottlingRatePerConsumer: int
    ratePeriodInSecond: int


class DelayedDeliveryPolicies(TypedDict, total=False):
    """The interval between searches for due messages, and the longest delay (0: any), both in milliseconds."""

    tickTime: Long
    active: bool
    maxDeliveryDelayInMillis: Long


class InactiveTopicPolicies(TypedDict):
    """Conditions under which an inactive topic is deleted.

    `inactiveTopicDeleteMode`: delete_when_no_subscriptions or delete_when_subscriptions_caught_up.
    """

    inactiveTopicDeleteMode: str
    maxInactiveDurationSeconds: int
    deleteWhileInactive: bool


class AutoTopicCreation(TypedDict, total=False):
    """The topics that clients create by using them. `topicType`: partitioned or non-partitioned."""

    allowAutoTopicCreation: bool
    topicType: str
    defaultNumPartitions: int


class AutoSubscriptionCreation(TypedDict):
    """Switch: whether consumers create subscriptions."""

    allowAutoSubscriptionCreation: bool


class EntryFilters(TypedDict):
    """Names of entry filters, separated by commas."""

    entryFilterNames: str


class BookieAffinity(TypedDict, total=False):
    """Groups of bookies that store a namespace."""

    bookkeeperAffinityGroupPrimary: str
    bookkeeperAffinityGroupSecondary: str


class Bundles(TypedDict, total=False):
    """The bundles of a namespace: `boundaries` in hexadecimal, one more than bundles."""

    boundaries: list[str]
    numBundles: int


class OffloadPolicies(TypedDict, total=False):
    """The storage for old ledgers: `managedLedgerOffloadDriver` selects it, and the other fields configure it."""

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


OFFLOAD_DRIVERS: Final = ("S3", "aws-s3", "google-cloud-storage", "filesystem", "azureblob", "aliyun-oss")
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
"""The defaults of Pulsar's own class."""

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
"""Classes of Pulsar with the same fields, in org.apache.pulsar.common.policies.data."""


@dataclass(frozen=True, slots=True)
class PolicyPath:
    """The REST calls of a policy of namespaces or of topics. `word` is the last part of its path."""

    word: str
    setting: str = "POST"  # the method that sets it; "": it is set in parts
    removal: str = "DELETE"  # the method that removes it; "": no method does
    removed_at: str = ""  # in place of `word`
    applied: bool = False  # ?applied=true returns the value that takes effect
    is_local: bool = False  # no value for all clusters
    in_query: bool = False  # the value is in the query


@dataclass(frozen=True, slots=True, eq=False)
class Policy(Generic[T]):
    """A policy. `json` is the type of its JSON value.

    Without a value, `conf` applies: a key of broker.conf, or keys by the fields of the value. Without such a key,
    `default` applies.
    """

    json: type[T]
    kept: str  # its name in the JSON of a namespace's policies, and in stored policies of topics
    right: str  # Pulsar's PolicyName
    about: str
    namespace: PolicyPath | None = None
    topic: PolicyPath | None = None
    event: str = ""  # its name in the events of __change_events
    conf: str | Mapping[str, str] = ""
    default: Any = None
    per_cluster: bool = False  # stored by cluster; REST reads and sets the broker's own
    has_body: bool = True  # false: being set is its only value


def _applied(word: str, setting: str = "POST", *, is_local: bool = False, in_query: bool = False) -> PolicyPath:
    return PolicyPath(word, setting, applied=True, is_local=is_local, in_query=in_query)


def _rates(messages: str, size: str) -> Mapping[str, str]:
    return {"dispatchThrottlingRateInMsg": messages, "dispatchThrottlingRateInByte": size}


_RATE: Final = {
    "dispatchThrottlingRateInMsg": 0,
    "dispatchThrottlingRateInByte": 0,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}

# fmt: off
# ---- limits of size, rate and age
MESSAGE_TTL = Policy(int, "message_ttl_in_seconds", "TTL", "Seconds after which messages expire; 0: never",
    PolicyPath("messageTTL"), _applied("messageTTL", in_query=True), "messageTTLInSeconds",
    "ttlDurationDefaultInSeconds")
RETENTION = Policy(RetentionPolicies, "retention_policies", "RETENTION", "Limits of acknowledged data that is kept",
    PolicyPath("retention"), _applied("retention"), "retentionPolicies",
    {"retentionTimeInMinutes": "defaultRetentionTimeInMinutes", "retentionSizeInMB": "defaultRetentionSizeInMB"})
BACKLOG_QUOTAS = Policy(dict[str, BacklogQuota], "backlog_quota_map", "BACKLOG",
    "Limits of backlogs, by type: destination_storage, message_age",
    PolicyPath("backlogQuotaMap", "", ""), PolicyPath("backlogQuotaMap", "", "", applied=True), "backLogQuotaMap")
COMPACTION_THRESHOLD = Policy(int, "compaction_threshold", "COMPACTION",
    "Bytes of new messages after which a topic is compacted; 0: never", PolicyPath("compactionThreshold", "PUT"),
    _applied("compactionThreshold"), "compactionThreshold", "brokerServiceCompactionThresholdInBytes")
INACTIVE_TOPICS = Policy(InactiveTopicPolicies, "inactive_topic_policies", "INACTIVE_TOPIC",
    "Conditions under which an inactive topic is deleted", PolicyPath("inactiveTopicPolicies"),
    _applied("inactiveTopicPolicies"), "inactiveTopicPolicies",
    {"inactiveTopicDeleteMode": "brokerDeleteInactiveTopicsMode", "maxInactiveDurationSeconds": "max_inactive_seconds",
     "deleteWhileInactive": "brokerDeleteInactiveTopicsEnabled"})
SUBSCRIPTION_EXPIRATION = Policy(int, "subscription_expiration_time_minutes", "SUBSCRIPTION_EXPIRATION_TIME",
    "Minutes after which an unused subscription is deleted; 0: never", PolicyPath("subscriptionExpirationTime"),
    _applied("subscriptionExpirationTime", in_query=True), "subscriptionExpirationTimeInMinutes",
    "subscriptionExpirationTimeMinutes")
MAX_TOPICS = Policy(int, "max_topics_per_namespace", "MAX_TOPICS", "Most topics of a namespace; 0: any number",
    PolicyPath("maxTopicsPerNamespace"), conf="maxTopicsPerNamespace")
MAX_PRODUCERS = Policy(int, "max_producers_per_topic", "MAX_PRODUCERS", "Most producers of a topic; 0: any number",
    PolicyPath("maxProducersPerTopic"), _applied("maxProducers"), "maxProducerPerTopic", "maxProducersPerTopic")
MAX_CONSUMERS = Policy(int, "max_consumers_per_topic", "MAX_CONSUMERS", "Most consumers of a topic; 0: any number",
    PolicyPath("maxConsumersPerTopic"), _applied("maxConsumers"), "maxConsumerPerTopic", "maxConsumersPerTopic")
MAX_CONSUMERS_PER_SUBSCRIPTION = Policy(int, "max_consumers_per_subscription", "MAX_CONSUMERS",
    "Most consumers of a subscription; 0: any number", PolicyPath("maxConsumersPerSubscription"),
    PolicyPath("maxConsumersPerSubscription"), "maxConsumersPerSubscription", "maxConsumersPerSubscription")
MAX_SUBSCRIPTIONS = Policy(int, "max_subscriptions_per_topic", "MAX_SUBSCRIPTIONS",
    "Most subscriptions of a topic; 0: any number", PolicyPath("maxSubscriptionsPerTopic"),
    PolicyPath("maxSubscriptionsPerTopic"), "maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic")
MAX_UNACKED_PER_CONSUMER = Policy(int, "max_unacked_messages_per_consumer", "MAX_UNACKED",
    "Most unacknowledged messages of a consumer; 0: any number", PolicyPath("maxUnackedMessagesPerConsumer"),
    _applied("maxUnackedMessagesOnConsumer"), "maxUnackedMessagesOnConsumer", "maxUnackedMessagesPerConsumer")
MAX_UNACKED_PER_SUBSCRIPTION = Policy(int, "max_unacked_messages_per_subscription", "MAX_UNACKED",
    "Most unacknowledged messages of a subscription; 0: any number",
    PolicyPath("maxUnackedMessagesPerSubscription"), _applied("maxUnackedMessagesOnSubscription"),
    "maxUnackedMessagesOnSubscription", "maxUnackedMessagesPerSubscription")
MAX_MESSAGE_SIZE = Policy(int, "max_message_size", "MAX_MESSAGE_SIZE",
    "Bytes of the largest message; 0: the broker's maxMessageSize", None, PolicyPath("maxMessageSize"),
    "maxMessageSize", default=0)
PUBLISH_RATE = Policy(PublishRate, "publishMaxMessageRate", "RATE", "Limits of the publish rate of a topic",
    PolicyPath("publishRate"), PolicyPath("publishRate"), "publishRate", per_cluster=True)
DISPATCH_RATE = Policy(DispatchRate, "topicDispatchRate", "RATE", "Limits of the dispatch rate of a topic",
    PolicyPath("dispatchRate"), _applied("dispatchRate"), "dispatchRate",
    _rates("dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerTopicInByte"), _RATE, per_cluster=True)
SUBSCRIPTION_DISPATCH_RATE = Policy(DispatchRate, "subscriptionDispatchRate", "RATE",
    "Limits of the dispatch rate of a subscription", PolicyPath("subscriptionDispatchRate"),
    _applied("subscriptionDispatchRate"), "subscriptionDispatchRate",
    _rates("dispatchThrottlingRatePerSubscriptionInMsg", "dispatchThrottlingRatePerSubscriptionInByte"), _RATE,
    per_cluster=True)
REPLICATOR_DISPATCH_RATE = Policy(DispatchRate, "replicatorDispatchRate", "REPLICATION_RATE",
    "Limits of the rate of replication to another cluster", PolicyPath("replicatorDispatchRate"),
    _applied("replicatorDispatchRate"), "replicatorDispatchRate", default=_RATE, per_cluster=True)
SUBSCRIBE_RATE = Policy(SubscribeRate, "clusterSubscribeRate", "RATE", "Limit of the subscribe rate of a consumer",
    PolicyPath("subscribeRate"), _applied("subscribeRate"), "subscribeRate",
    {"subscribeThrottlingRatePerConsumer": "subscribeThrottlingRatePerConsumer",
     "ratePeriodInSecond": "subscribeRatePeriodPerConsumerInSecond"},
    per_cluster=True)

# ---- permitted operations, and storage
DEDUPLICATION = Policy(bool, "deduplicationEnabled", "DEDUPLICATION",
    "Whether deduplication drops messages that a producer sends again", PolicyPath("deduplication"),
    _applied("deduplicationEnabled"), "deduplicationEnabled", "brokerDeduplicationEnabled")
DEDUPLICATION_SNAPSHOTS = Policy(int, "deduplicationSnapshotIntervalSeconds", "DEDUPLICATION_SNAPSHOT",
    "Seconds between two deduplication snapshots", PolicyPath("deduplicationSnapshotInterval", removal="POST"),
    PolicyPath("deduplicationSnapshotInterval"), "deduplicationSnapshotIntervalSeconds",
    "brokerDeduplicationSnapshotIntervalSeconds")
DELAYED_DELIVERY = Policy(DelayedDeliveryPolicies, "delayed_delivery_policies", "DELAYED_DELIVERY",
    "Delayed delivery by deliver_at_time", PolicyPath("delayedDelivery"), _applied("delayedDelivery"), "",
    {"tickTime": "delayedDeliveryTickTimeMillis", "active": "delayedDeliveryEnabled",
     "maxDeliveryDelayInMillis": "delayedDeliveryMaxDelayInMillis"})
AUTO_TOPIC_CREATION = Policy(AutoTopicCreation, "autoTopicCreationOverride", "AUTO_TOPIC_CREATION",
    "Whether clients create topics, and with how many partitions", PolicyPath("autoTopicCreation"))
AUTO_SUBSCRIPTION_CREATION = Policy(AutoSubscriptionCreation, "autoSubscriptionCreationOverride",
    "AUTO_SUBSCRIPTION_CREATION", "Whether consumers create subscriptions", PolicyPath("autoSubscriptionCreation"),
    _applied("autoSubscriptionCreation"), "autoSubscriptionCreationOverride",
    {"allowAutoSubscriptionCreation": "allowAutoSubscriptionCreation"})
SUBSCRIPTION_TYPES = Policy(list[str], "subscription_types_enabled", "SUBSCRIPTION_AUTH_MODE",
    "Subscription types that consumers may use: Exclusive, Shared, Failover, Key_Shared; []: no limit at this level",
    PolicyPath("subscriptionTypesEnabled"), PolicyPath("subscriptionTypesEnabled"), "subscriptionTypesEnabled")
SUBSCRIPTION_AUTH_MODE = Policy(str, "subscription_auth_mode", "SUBSCRIPTION_AUTH_MODE",
    "Whether a subscription's name must begin with the role: None, Prefix",
    PolicyPath("subscriptionAuthMode", removal=""))
ENCRYPTION_REQUIRED = Policy(bool, "encryption_required", "ENCRYPTION",
    "Whether producers and messages without encryption are refused", PolicyPath("encryptionRequired", removal=""))
SCHEMA_STRATEGY = Policy(str, "schema_compatibility_strategy", "SCHEMA_COMPATIBILITY_STRATEGY",
    "Compatibility that a new schema must have, such as BACKWARD or FULL_TRANSITIVE",
    PolicyPath("schemaCompatibilityStrategy", "PUT", ""), _applied("schemaCompatibilityStrategy", "PUT", is_local=True),
    "schemaCompatibilityStrategy", "schemaCompatibilityStrategy")
OLDER_SCHEMA_STRATEGY = Policy(str, "schema_auto_update_compatibility_strategy", "SCHEMA_COMPATIBILITY_STRATEGY",
    "Older form of the schema compatibility strategy, such as Backward or AutoUpdateDisabled",
    PolicyPath("schemaAutoUpdateCompatibilityStrategy", "PUT", ""))
SCHEMA_AUTO_UPDATE = Policy(bool, "is_allow_auto_update_schema", "SCHEMA_COMPATIBILITY_STRATEGY",
    "Whether producers may register new schemas", PolicyPath("isAllowAutoUpdateSchema", removal=""))
SCHEMA_VALIDATION = Policy(bool, "schema_validation_enforced", "SCHEMA_COMPATIBILITY_STRATEGY",
    "Whether topics with a schema refuse producers without one",
    PolicyPath("schemaValidationEnforced", removal="", applied=True),
    PolicyPath("schemaValidationEnforced", removal="", applied=True, is_local=True), "schemaValidationEnforced",
    default=False)
ENTRY_FILTERS = Policy(EntryFilters, "entryFilters", "ENTRY_FILTERS",
    "Filters that decide which entries are dispatched", PolicyPath("entryFilters"), _applied("entryFilters"),
    "entryFilters", default={"entryFilterNames": ""})
DISPATCHER_PAUSE = Policy(bool, "dispatcherPauseOnAckStatePersistentEnabled",
    "DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT", "Whether dispatch pauses while acknowledgements cannot be stored",
    PolicyPath("dispatcherPauseOnAckStatePersistent"), _applied("dispatcherPauseOnAckStatePersistent"),
    "dispatcherPauseOnAckStatePersistentEnabled", default=False, has_body=False)
METRIC_LABELS = Policy(list[str], "allowed_topic_property_keys_for_metrics", "ALLOW_CUSTOM_METRIC_LABELS",
    "Properties of topics that metrics may show", PolicyPath("allowedTopicPropertyKeysForMetrics"))
PERSISTENCE = Policy(PersistencePolicies, "persistence", "PERSISTENCE",
    "Number of bookies for data, and rate at which cursors are stored", PolicyPath("persistence"),
    _applied("persistence"), "persistence")

# ---- other clusters, other storage
REPLICATION = Policy(list[str], "replication_clusters", "REPLICATION", "Clusters that messages are replicated to",
    PolicyPath("replication", removal=""), _applied("replication"), "replicationClusters")
ALLOWED_CLUSTERS = Policy(list[str], "allowed_clusters", "ALLOW_CLUSTERS",
    "Clusters that messages may be replicated to", PolicyPath("allowedClusters", removal=""))
SHADOW_TOPICS = Policy(list[str], "shadowTopics", "SHADOW_TOPIC", "Shadow topics of a topic", None,
    PolicyPath("shadowTopics", "PUT", is_local=True), "shadowTopics")
OFFLOAD = Policy(OffloadPolicies, "offload_policies", "OFFLOAD", "Storage for old ledgers, by driver",
    PolicyPath("offloadPolicies", removed_at="removeOffloadPolicies"), _applied("offloadPolicies"), "offloadPolicies")
OFFLOAD_THRESHOLD = Policy(int, "offload_threshold", "OFFLOAD",
    "Bytes from which old ledgers are offloaded; -1: never", PolicyPath("offloadThreshold", "PUT", ""))
OFFLOAD_SECONDS = Policy(int, "offload_threshold_in_seconds", "OFFLOAD",
    "Age in seconds from which old ledgers are offloaded; -1: never",
    PolicyPath("offloadThresholdInSeconds", "PUT", ""))
OFFLOAD_LAG = Policy(int, "offload_deletion_lag_ms", "OFFLOAD",
    "Milliseconds for which an offloaded ledger is kept in BookKeeper too", PolicyPath("offloadDeletionLagMs", "PUT"))
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
    "is_allow_auto_update_schema_with_replicator": ABSENT,
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
"""The policies of a new namespace, in Pulsar's order of its JSON. ABSENT policies are shown only when they are set."""
