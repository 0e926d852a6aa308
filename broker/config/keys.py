"""The broker.conf keys that have an effect in Pulsarium: name, type, default and meaning, in one place."""

from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from pulsarium.broker.config.connection_keys import ConnectionConfig
from pulsarium.broker.config.meaning import Meaning, key
from pulsarium.broker.config.proposals import BACKLOG_AGE, NEGATIVE_ACKS, TOKEN_KEYS
from pulsarium.proto.framing import FRAME_PADDING
from pulsarium.proto.numbers import LONG_MAX

MOST_BUNDLES: Final = 1 << 16  # of a namespace; a bound, so that no client's number sizes an allocation
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")
QUOTA_POLICIES: Final = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
REGEXES: Final = ("RE2J_WITH_JDK_FALLBACK", "RE2J", "JDK")
INACTIVE_TOPIC_MODES: Final = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
SCHEMA_STRATEGIES: Final = (
    "UNDEFINED",
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
APPEND_BROKER_TIMESTAMP: Final = "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor"
APPEND_INDEX: Final = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
AUTHENTICATION_PROVIDERS: Final = tuple(
    f"org.apache.pulsar.broker.authentication.AuthenticationProvider{name}" for name in ("Basic", "Tls", "Token")
)
AUTHORIZATION_PROVIDER: Final = "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider"
TLS_PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ConnectionConfig):
    """Settings of one broker, named as in broker.conf.

    The defaults are those of a stock standalone; `load` adds the defaults of a Profile. Two defaults are Pulsarium's
    own. bindAddress is loopback. managedLedgerDefaultMarkDeleteRateLimit is unset: the broker stores acknowledgements
    as fast as they arrive.
    """

    # Addresses that the broker binds, and addresses that it gives to clients
    clusterName: str = key("standalone", "Name of the broker's cluster")
    bindAddress: str = key("127.0.0.1", "Address that both ports are bound to")
    brokerServicePort: int = key(6650, "Port of the binary protocol; 0 takes a free port", low=0, high=65535)
    webServicePort: int = key(8080, "Port of HTTP; 0 takes a free port", low=0, high=65535)
    advertisedAddress: str | None = key(
        None, "Host in the URLs that the broker gives to clients; unset: localhost; advertisedListeners take precedence"
    )
    advertisedListeners: str = key("", "Named URLs for clients, as name:pulsar://host:port, separated by commas")
    internalListenerName: str = key(
        "", "Default listener among advertisedListeners; unset: the first, or its only URLs"
    )
    brokerServicePortTls: int | None = key(
        None, "Port of the binary protocol over TLS; 0 takes a free port; unset: none", low=0, high=65535
    )
    webServicePortTls: int | None = key(None, "Port of HTTPS; 0 takes a free port; unset: none", low=0, high=65535)

    # TLS of these two ports
    tlsCertificateFilePath: str | None = key(None, "Certificate chain of the broker, PEM")
    tlsKeyFilePath: str | None = key(None, "Private key of the certificate, PEM, not encrypted")
    tlsTrustCertsFilePath: str | None = key(None, "Authorities that must have signed the certificates of clients, PEM")
    tlsRequireTrustedClientCertOnConnect: bool = key(False, "Refuse clients without a trusted certificate")
    tlsAllowInsecureConnection: bool = key(
        False,
        "Accept untrusted certificates of clients",
        without_effect="every client could claim every role; Pulsarium always verifies certificates",
    )
    tlsProtocols: frozenset[str] = key(frozenset(), "Accepted versions of TLS; unset: both", one_of=TLS_PROTOCOLS)
    tlsCertRefreshCheckDurationSec: int = key(300, "Check interval for changed files; 0: never", "seconds", low=0)

    # Authentication
    authenticationEnabled: bool = key(False, "Accept only clients that prove a role")
    authenticationProviders: tuple[str, ...] = key((), "Classes that prove roles by password, certificate or token")
    strictAuthMethod: bool = key(
        False, "Refuse HTTP requests that do not name their method (X-Pulsar-Auth-Method-Name)"
    )
    anonymousUserRole: str | None = key(None, "Role of clients that prove none; unset: refuse them")
    authenticationRefreshCheckSeconds: int = key(
        60, "Check interval for expired credentials of connections", "seconds", low=1
    )
    authenticateOriginalAuthData: bool = key(False, "Verify the credentials that a proxy passes on too")
    authenticateMetricsEndpoint: bool = key(False, "Require a role at /metrics too")
    tokenSecretKey: str | None = key(
        None,
        "Key that signs tokens (HS256 to HS512): file:///..., data:;base64,... or base64 itself",
        secret=True,
    )
    tokenPublicKey: str | None = key(
        None, "Public key that verifies tokens (RSA, EC) without tokenSecretKey; DER, in the forms of tokenSecretKey"
    )
    tokenPublicAlg: str = key(
        "RS256",
        "Algorithm of tokenPublicKey",
        one_of=("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    )
    tokenAuthClaim: str = key("sub", "Claim of a token that names the role")
    tokenAudienceClaim: str | None = key(None, "Claim that must name this broker; unset: no audience is checked")
    tokenAudience: str | None = key(None, "This broker's name in tokenAudienceClaim")
    tokenAllowedClockSkewSeconds: int = key(0, "Allowed clock difference to the issuer of tokens", "seconds", low=0)
    tokenValidationKeysJwks: str | None = key(
        None,
        "Further keys that verify tokens, each with a kid: a JWKS document, in the forms of tokenSecretKey or as JSON",
        secret=True,
        proposal=TOKEN_KEYS,
    )
    tokenValidationKeysRefreshSeconds: int = key(
        0, "Interval of reading tokenValidationKeysJwks again; 0: never", "seconds", low=0, proposal=TOKEN_KEYS
    )
    tokenRequireKid: bool = key(
        False,
        "Refuse tokens without the kid of a key in tokenValidationKeysJwks, and try no key on them",
        proposal=TOKEN_KEYS,
    )
    basicAuthConf: str | None = key(
        None, "Users and passwords as htpasswd writes them (apr1, crypt), in the forms of tokenSecretKey", secret=True
    )

    # Authorization
    authorizationEnabled: bool = key(False, "Allow roles only the operations that they are granted")
    authorizationProvider: str = key(
        AUTHORIZATION_PROVIDER, "Class that authorizes operations", one_of=(AUTHORIZATION_PROVIDER,)
    )
    superUserRoles: frozenset[str] = key(frozenset(), "Roles that may do everything (superusers)")
    proxyRoles: frozenset[str] = key(frozenset(), "Roles of proxies, which name the original principal of each client")
    authorizationAllowWildcardsMatching: bool = key(False, "Match any text with a * at either end of a granted role")

    # Migration to another cluster
    clusterMigrationCheckDurationSeconds: int = key(
        0, "Check interval for migrated topics; 0: check only when a topic is loaded", "seconds"
    )

    # Policies of topics
    systemTopicEnabled: bool = key(True, "Create system topics, for the broker's own use")
    topicLevelPoliciesEnabled: bool = key(True, "Allow policies of single topics; needs systemTopicEnabled")

    # Topics
    enablePersistentTopics: bool = key(True, "Serve persistent topics")
    enableNonPersistentTopics: bool = key(True, "Serve non-persistent topics")
    allowAutoTopicCreation: bool = key(True, "Create a topic when a client first uses it")
    allowAutoTopicCreationType: str = key(
        "non-partitioned",
        "Kind of topic that allowAutoTopicCreation creates",
        one_of=("partitioned", "non-partitioned"),
    )
    strictTopicNameEnabled: bool = key(
        False,
        "Check names of topics more strictly; without effect, as in Pulsar 4.2",
        without_effect="Pulsar 4.2 has this key and never reads it, so names are checked as without it",
    )
    defaultNumPartitions: int = key(1, "Partitions of a partitioned topic that allowAutoTopicCreation creates", low=1)
    maxNumPartitionsPerPartitionedTopic: int = key(0, "Most partitions of a topic; 0: no limit")
    maxTopicsPerNamespace: int = key(0, "Most persistent topics of a namespace, partitions counted; 0: no limit")
    maxProducersPerTopic: int = key(0, "Most producers of a topic; 0: no limit")
    maxConsumersPerTopic: int = key(0, "Most consumers of a topic; 0: no limit")
    maxSameAddressProducersPerTopic: int = key(0, "Most producers of a topic from one IP address; 0: no limit")
    maxSameAddressConsumersPerTopic: int = key(0, "Most consumers of a topic from one IP address; 0: no limit")
    maxSubscriptionsPerTopic: int = key(0, "Most subscriptions of a topic; 0: no limit")
    aggregatePublisherStatsByProducerName: bool = key(False, "Aggregate producers by name in partitioned-stats")
    maxPublishRatePerTopicInMessages: int = key(0, "Most messages published to a topic per second; 0: no limit")
    maxPublishRatePerTopicInBytes: int = key(
        0, "Most bytes published to a topic per second; 0: no limit", "bytes", high=LONG_MAX
    )
    brokerPublisherThrottlingMaxMessageRate: int = key(0, "Most messages published to a broker per second; 0: no limit")
    brokerPublisherThrottlingMaxByteRate: int = key(
        0, "Most bytes published to a broker per second; 0: no limit", "bytes", high=LONG_MAX
    )
    encryptionRequireOnProducer: bool = key(False, "Refuse producers and messages without encryption")
    brokerDeleteInactiveTopicsEnabled: bool = key(True, "Delete inactive topics")
    brokerDeleteInactiveTopicsFrequencySeconds: int = key(60, "Search interval for inactive topics", "seconds", low=1)
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int | None = key(
        None, "Age at which an inactive topic is deleted; unset: brokerDeleteInactiveTopicsFrequencySeconds", "seconds"
    )
    brokerDeleteInactiveTopicsMode: str = key(
        "delete_when_no_subscriptions", "Condition for an inactive topic", one_of=INACTIVE_TOPIC_MODES
    )
    brokerDeleteInactivePartitionedTopicMetadataEnabled: bool = key(
        False, "Delete a partitioned topic with its last inactive partition; a non-persistent one with its first"
    )

    # Messages that are kept, dropped or refused
    ttlDurationDefaultInSeconds: int = key(0, "Age at which messages expire; 0: never", "seconds")
    messageExpiryCheckIntervalInMinutes: int = key(5, "Search interval for expired messages", "minutes", low=1)
    defaultRetentionTimeInMinutes: int = key(0, "How long acknowledged messages are kept; -1: forever", "minutes")
    defaultRetentionSizeInMB: int = key(0, "Size of acknowledged messages that are kept; -1: all", "MiB")
    retentionCheckIntervalInSeconds: int = key(120, "Interval of deleting acknowledged messages", "seconds", low=1)
    backlogQuotaCheckEnabled: bool = key(True, "Enforce backlog quotas")
    backlogQuotaCheckIntervalInSeconds: int = key(60, "Interval between measurements of backlogs", "seconds", low=1)
    backlogQuotaDefaultLimitBytes: int = key(-1, "Largest backlog; -1: no limit", "bytes", high=LONG_MAX)
    backlogQuotaDefaultLimitGB: float = key(
        -1.0, "Largest backlog, where backlogQuotaDefaultLimitBytes is not set; -1: no limit", "GiB"
    )
    backlogQuotaDefaultLimitSecond: int = key(-1, "Largest age of a message in a backlog; -1: no limit", "seconds")
    preciseTimeBasedBacklogQuotaCheck: bool = key(
        False,
        "Take the age of a backlog from its oldest message, and evict single messages, not whole ledgers",
    )
    backlogQuotaDefaultRetentionPolicy: str = key(
        "producer_request_hold", "Action at a full backlog", one_of=QUOTA_POLICIES
    )
    brokerDeduplicationEnabled: bool = key(False, "Drop messages that a producer sends again (deduplication)")
    brokerDeduplicationEntriesInterval: int = key(1_000, "Entries between two deduplication snapshots", low=1)
    brokerDeduplicationSnapshotIntervalSeconds: int = key(120, "Time between deduplication snapshots", "seconds", low=1)
    brokerDeduplicationSnapshotFrequencyInSeconds: int = key(
        120, "Check interval for due deduplication snapshots", "seconds", low=1
    )
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = key(
        360, "Absence after which deduplication forgets a producer", "minutes", low=1
    )
    brokerDeduplicationMaxNumberOfProducers: int = key(10_000, "Most producers that deduplication remembers", low=1)

    # Subscriptions
    allowAutoSubscriptionCreation: bool = key(True, "Create a subscription when a consumer first names it")
    subscriptionExpirationTimeMinutes: int = key(
        0, "Time without consumers after which a subscription is deleted; 0: never", "minutes"
    )
    subscriptionExpiryCheckIntervalInMinutes: int = key(
        5, "Search interval for expired subscriptions; 0: never", "minutes"
    )
    strictlyVerifySubscriptionName: bool = key(
        False, "Refuse subscription names with characters other than letters, digits and . : = _ -"
    )
    subscriptionTypesEnabled: frozenset[str] = key(
        frozenset(SUBSCRIPTION_TYPES), "Subscription types that consumers may use", one_of=SUBSCRIPTION_TYPES
    )
    subscribeThrottlingRatePerConsumer: int = key(0, "Most SUBSCRIBEs of one consumer in a period; 0: no limit")
    subscribeRatePeriodPerConsumerInSecond: int = key(30, "Period of the subscribe rate", "seconds", low=1)
    maxConsumersPerSubscription: int = key(0, "Most consumers of a subscription; 0: no limit")
    activeConsumerFailoverDelayTimeMillis: int = key(
        1_000, "Delay before a new active consumer of Failover is notified and gets messages", "milliseconds"
    )
    acknowledgmentAtBatchIndexLevelEnabled: bool = key(True, "Store acknowledgements within a batch (PIP-54)")

    # Schemas
    schemaCompatibilityStrategy: str = key("FULL", "Compatibility required of a new schema", one_of=SCHEMA_STRATEGIES)
    systemTopicSchemaCompatibilityStrategy: str = key(
        "ALWAYS_COMPATIBLE", "Compatibility that a new schema of a system topic must have", one_of=SCHEMA_STRATEGIES
    )
    isAllowAutoUpdateSchemaEnabled: bool = key(True, "Allow producers to register new schemas")
    isSchemaValidationEnforced: bool = key(False, "Refuse producers without a schema on topics with a schema")

    # Dispatch
    dispatcherMaxReadBatchSize: int = key(100, "Most entries that the dispatcher reads at once", low=1)
    dispatcherMaxRoundRobinBatchSize: int = key(20, "Most messages to one Shared consumer in a row", low=1)
    dispatcherReadFailureBackoffInitialTimeInMs: int = key(15_000, "Pause after a failed read", "milliseconds", low=1)
    dispatcherReadFailureBackoffMaxTimeInMs: int = key(
        60_000, "Longest pause after failed reads; the pause doubles each time", "milliseconds", low=1
    )
    dispatchThrottlingRateInMsg: int = key(0, "Most messages dispatched by a broker per second; 0: no limit")
    dispatchThrottlingRateInByte: int = key(
        0, "Most bytes dispatched by a broker per second; 0: no limit", "bytes", high=LONG_MAX
    )
    dispatchThrottlingRatePerTopicInMsg: int = key(0, "Most messages dispatched from a topic per second; 0: no limit")
    dispatchThrottlingRatePerTopicInByte: int = key(
        0, "Most bytes dispatched from a topic per second; 0: no limit", "bytes", high=LONG_MAX
    )
    dispatchThrottlingRatePerSubscriptionInMsg: int = key(
        0, "Most messages dispatched to a subscription per second; 0: no limit"
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = key(
        0, "Most bytes dispatched to a subscription per second; 0: no limit", "bytes", high=LONG_MAX
    )
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = key(True, "Apply dispatch rates without a backlog too")
    dispatchThrottlingOnBatchMessageEnabled: bool = key(False, "Count a batch as one message in dispatch rates")
    maxUnackedMessagesPerConsumer: int = key(
        50_000, "Most unacknowledged messages of a Shared or Key_Shared consumer; 0: no limit"
    )
    maxUnackedMessagesPerSubscription: int = key(200_000, "Most unacknowledged messages of a subscription; 0: no limit")
    subscriptionKeySharedEnable: bool = key(True, "Accept Key_Shared consumers")
    subscriptionKeySharedUseConsistentHashing: bool = key(
        True, "Assign keys by a hash ring of consumer names; false: each new consumer takes half of the widest range"
    )
    subscriptionKeySharedConsistentHashingReplicaPoints: int = key(100, "Points of each consumer on the ring", low=1)
    subscriptionKeySharedUseClassicPersistentImplementation: bool = key(
        False,
        "Make a new consumer wait until all messages read before it joined are acknowledged, as before Pulsar 4.0",
    )
    keySharedLookAheadMsgInReplayThresholdPerConsumer: int = key(
        2_000, "Most messages that wait for one consumer while the dispatcher reads on; 0: no limit"
    )
    keySharedLookAheadMsgInReplayThresholdPerSubscription: int = key(
        20_000, "Most messages that wait for consumers of a subscription while the dispatcher reads on"
    )
    keySharedNegativeAckOrderingEnabled: bool = key(
        True,
        "Keep the order of keys after negative acknowledgements on Key_Shared, for clients that send NEGATIVE_ACK",
        proposal=NEGATIVE_ACKS,
    )
    keySharedNegativeAckMaxRetryingPositionsPerSubscription: int = key(
        50_000,
        "Negatively acknowledged messages of a subscription from which on no others are delivered",
        low=1,
        proposal=NEGATIVE_ACKS,
    )
    delayedDeliveryEnabled: bool = key(True, "Delay messages by deliver_at_time on Shared and Key_Shared")
    delayedDeliveryTickTimeMillis: int = key(
        1_000, "Search interval for delayed messages that are due", "milliseconds", low=1
    )
    isDelayedDeliveryDeliverAtTimeStrict: bool = key(
        False, "Never deliver before deliver_at_time; false: up to one tick before"
    )
    delayedDeliveryMaxDelayInMillis: int = key(
        0, "Longest delay that a producer may set; 0: no limit", "milliseconds", high=LONG_MAX
    )
    subscriptionBacklogScanMaxEntries: int = key(10_000, "Most entries that analyzeBacklog scans", low=1)
    subscriptionBacklogScanMaxTimeMs: int = key(
        120_000, "Longest scan of analyzeBacklog", "milliseconds", low=1, high=LONG_MAX
    )

    # Entries
    brokerEntryMetadataInterceptors: tuple[str, ...] = key(
        (),
        "Broker entry metadata that the broker adds to each entry: its time, its index",
        one_of=(APPEND_BROKER_TIMESTAMP, APPEND_INDEX),
    )
    exposingBrokerEntryMetadataToClientEnabled: bool = key(False, "Deliver broker entry metadata to supporting clients")

    # Managed ledgers
    managedLedgerMaxEntriesPerLedger: int = key(50_000, "Entries at which the broker starts a new ledger", low=1)
    managedLedgerMaxSizePerLedgerMbytes: int = key(2_048, "Size at which the broker starts a new ledger", "MiB", low=1)
    managedLedgerMinLedgerRolloverTimeMinutes: int = key(
        10, "Least age before the broker starts a new ledger", "minutes"
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = key(240, "Age at which the broker starts a new ledger", "minutes")
    managedLedgerDefaultMarkDeleteRateLimit: float | None = key(
        None, "Most writes of a mark-delete position; 0 or unset: at each acknowledgement", "per second", low=0
    )
    managedLedgerMaxUnackedRangesToPersist: int = key(
        10_000,
        "Most ranges of individually acknowledged messages that are stored; a restart redelivers the rest",
    )
    managedLedgerMaxBatchDeletedIndexToPersist: int = key(10_000, "Most partly acknowledged batches that are stored")
    managedLedgerPersistIndividualAckAsLongArray: bool = key(
        True, "Store acknowledged ranges as bitmaps; needs managedLedgerUnackedRangesOpenCacheSetEnabled"
    )
    managedLedgerUnackedRangesOpenCacheSetEnabled: bool = key(True, "Hold acknowledged ranges as one bitmap per ledger")
    managedLedgerMaxUnackedRangesToPersistInMetadataStore: int = key(
        1_000, "Most acknowledged ranges of a cursor in the metadata store; a cursor with more is stored in its ledger"
    )
    managedCursorInfoCompressionType: str = key("NONE", "Compression of stored cursors: LZ4, ZLIB, ZSTD or SNAPPY")
    managedCursorInfoCompressionThresholdInBytes: int = key(16_384, "Least size of compressed cursors", "bytes")
    managedLedgerInfoCompressionType: str = key("NONE", "Compression of managed ledgers: LZ4, ZLIB, ZSTD or SNAPPY")
    managedLedgerInfoCompressionThresholdInBytes: int = key(16_384, "Least size of compressed managed ledgers", "bytes")
    managedLedgerCursorBackloggedThreshold: int = key(
        1_000, "Entries from which a subscription counts as backlogged", high=LONG_MAX
    )
    autoSkipNonRecoverableData: bool = key(False, "Skip damaged messages, also in deduplication and compaction")
    managedLedgerCacheSizeMB: int | None = key(
        None, "Memory for the entries of all topics; unset: 56 with --data, and 256 without", "MiB", low=0
    )

    # Compaction
    brokerServiceCompactionMonitorIntervalInSeconds: int = key(
        60, "Search interval for topics to compact", "seconds", low=1
    )
    brokerServiceCompactionThresholdInBytes: int = key(
        0, "Size of new messages that starts compaction, without a policy; 0: no compaction", "bytes", high=LONG_MAX
    )
    topicCompactionRetainNullKey: bool = key(False, "Retain messages without a key in compaction")

    # Namespaces and tenants
    defaultNumberOfNamespaceBundles: int = key(
        4, "Bundles of a new namespace without a number", low=1, high=MOST_BUNDLES
    )
    enableShadowTopics: bool = key(True, "Allow shadow topics; without it, those that exist stay")
    defaultNumberOfSystemNamespaceBundles: int = key(
        0, "Bundles of pulsar/system in a new cluster; 0: as of other namespaces", low=0, high=MOST_BUNDLES
    )
    maxNamespacesPerTenant: int = key(
        0, "Namespaces of a tenant above which it gets no more; 0: no limit. As in Pulsar, a tenant gets one more"
    )
    maxTenants: int = key(0, "Most tenants, including those that exist at the start; 0: no limit")
    forceDeleteTenantAllowed: bool = key(False, "Allow force=true in deletions of tenants")
    forceDeleteNamespaceAllowed: bool = key(False, "Allow force=true in deletions of namespaces")

    # Patterns
    enableBrokerSideSubscriptionPatternEvaluation: bool = key(True, "Filter topic lists by the client's pattern")
    subscriptionPatternMaxLength: int = key(50, "Longest pattern that the broker filters by", "characters")
    topicsPatternRegexImplementation: str = key(REGEXES[0], "Regular expressions of patterns", one_of=REGEXES)
    enableBrokerTopicListWatcher: bool = key(True, "Offer watchers of topic lists to clients")

    # Transactions
    transactionCoordinatorEnabled: bool = key(False, "Serve transactions")
    maxActiveTransactionsPerCoordinator: int = key(
        0, "Most open transactions of one coordinator; 0: no limit", high=LONG_MAX
    )

    # Statistics
    statsUpdateFrequencyInSecs: int = key(60, "Interval between computations of rates", "seconds", low=1)
    exposeSubscriptionBacklogAgeInPrometheus: bool = key(
        False, "Show the age of each durable subscription's backlog, in stats and metrics", proposal=BACKLOG_AGE
    )

    @property
    def max_frame_size(self) -> int:
        """Return the size of the largest frame in bytes, with its length word."""
        return self.maxMessageSize + FRAME_PADDING

    @property
    def has_tls(self) -> bool:
        """Return whether any port speaks TLS."""
        return self.brokerServicePortTls is not None or self.webServicePortTls is not None

    @property
    def takes_topic_policies(self) -> bool:
        """Return whether single topics have policies. A change of such policies needs a system topic."""
        return self.systemTopicEnabled and self.topicLevelPoliciesEnabled

    @property
    def max_inactive_seconds(self) -> int:
        """Return the age in seconds at which an inactive topic is deleted, without a policy."""
        own = self.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds
        return self.brokerDeleteInactiveTopicsFrequencySeconds if own is None else own

    @property
    def default_quota_bytes(self) -> int:
        """Return the largest backlog in bytes without a policy, or -1 for no limit."""
        if self.backlogQuotaDefaultLimitBytes >= 0:
            return self.backlogQuotaDefaultLimitBytes
        return int(self.backlogQuotaDefaultLimitGB * 2**30) if self.backlogQuotaDefaultLimitGB > 0 else -1

    @property
    def appends_broker_timestamp(self) -> bool:
        """Return whether the broker adds its time to each entry."""
        return APPEND_BROKER_TIMESTAMP in self.brokerEntryMetadataInterceptors

    @property
    def appends_index(self) -> bool:
        """Return whether the broker adds the index of messages to each entry."""
        return APPEND_INDEX in self.brokerEntryMetadataInterceptors


class Key(NamedTuple):
    """A key of Config, for code that reads values into it or prints a page of it."""

    name: str
    type: object
    default: object
    meaning: Meaning


def documented_keys() -> dict[str, Key]:
    """Return all keys of Config by name, in the order of the class."""
    return {
        each.name: Key(name=each.name, type=each.type, default=each.default, meaning=each.metadata["meaning"])
        for each in fields(Config)
    }
