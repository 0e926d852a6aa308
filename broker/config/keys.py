"""The broker.conf keys that Pulsarium honours: name, type, default and meaning, in one place."""

from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from pulsarium.broker.config.meaning import Meaning, key

FRAME_PADDING: Final = 10 * 1024  # what a frame may hold beyond maxMessageSize: Pulsar's MESSAGE_SIZE_FRAME_PADDING
MOST_BUNDLES: Final = 1 << 16  # of a namespace; nothing is sized by what somebody claims
JAVA_INT: Final = (-(2**31), 2**31 - 1)
JAVA_LONG: Final = (-(2**63), 2**63 - 1)
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")
QUOTA_POLICIES: Final = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
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
class Config:
    """Settings of one broker, named as in broker.conf. What is not set is as in a stock standalone; `load` puts in the
    defaults that a Profile has of its own.

    Two defaults are Pulsarium's own: bindAddress is loopback, and acknowledgements are kept as fast as they come
    (managedLedgerDefaultMarkDeleteRateLimit) unless the key is set.
    """

    # Where it listens, and what it tells clients to connect to
    clusterName: str = key("standalone", "Name of the cluster that this broker is")
    bindAddress: str = key("127.0.0.1", "Address that both ports are bound to")
    brokerServicePort: int = key(6650, "Port of the binary protocol; 0 takes a free one", low=0, high=65535)
    webServicePort: int = key(8080, "Port of HTTP; 0 takes a free one", low=0, high=65535)
    advertisedAddress: str | None = key(
        None, "Host in the URLs that clients are given; unset: localhost; advertisedListeners come first"
    )
    advertisedListeners: str = key("", "Named URLs for clients, as name:pulsar://host:port, separated by commas")
    internalListenerName: str = key("", "The listener of advertisedListeners that is used unasked; unset: the first")
    brokerServicePortTls: int | None = key(
        None, "Port of the binary protocol over TLS; 0 takes a free one; unset: none", low=0, high=65535
    )
    webServicePortTls: int | None = key(None, "Port of HTTPS; 0 takes a free one; unset: none", low=0, high=65535)

    # TLS of these two ports
    tlsCertificateFilePath: str | None = key(None, "Certificate of the broker and those behind it, PEM")
    tlsKeyFilePath: str | None = key(None, "Private key of the certificate, PEM, not encrypted")
    tlsTrustCertsFilePath: str | None = key(None, "Certificates that those of clients must come from, PEM")
    tlsRequireTrustedClientCertOnConnect: bool = key(False, "Refuse clients without such a certificate")
    tlsAllowInsecureConnection: bool = key(
        False,
        "Ask nobody for a certificate, unless tlsTrustCertsFilePath is set; nobody is let in by a false one",
        without_effect="a role would be whatever somebody claims",
    )
    tlsProtocols: frozenset[str] = key(
        frozenset(), "Versions of TLS that are spoken; unset: both", one_of=TLS_PROTOCOLS
    )
    tlsCertRefreshCheckDurationSec: int = key(300, "How often changed files are looked for; 0: never", "seconds", low=0)

    # Who a client is
    authenticationEnabled: bool = key(False, "Let in only who proves a role")
    authenticationProviders: tuple[str, ...] = key((), "What a role is proved by: password, certificate, token")
    strictAuthMethod: bool = key(
        False, "Refuse HTTP requests that do not name their method (X-Pulsar-Auth-Method-Name)"
    )
    anonymousUserRole: str | None = key(None, "Role of those who prove none; unset: they are refused")
    authenticationRefreshCheckSeconds: int = key(
        60, "How often connections are looked at whose tokens may have expired", "seconds", low=1
    )
    authenticateOriginalAuthData: bool = key(False, "Check also the credentials that a proxy passes on")
    authenticateMetricsEndpoint: bool = key(False, "Ask for a role also at /metrics")
    tokenSecretKey: str | None = key(
        None,
        "Key that signs tokens (HS256 to HS512): file:///..., data:;base64,... or base64 itself",
        secret=True,
    )
    tokenPublicKey: str | None = key(
        None, "Public key of who signs them (RSA, EC) where there is no tokenSecretKey; DER, given like it"
    )
    tokenPublicAlg: str = key(
        "RS256",
        "Kind of that key",
        one_of=("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    )
    tokenAuthClaim: str = key("sub", "Claim of a token that names the role")
    tokenAudienceClaim: str | None = key(None, "Claim that must name this broker; unset: none must")
    tokenAudience: str | None = key(None, "This broker's name there")
    tokenAllowedClockSkewSeconds: int = key(0, "How far the clock of who signs tokens may be off", "seconds", low=0)
    basicAuthConf: str | None = key(
        None, "Users and passwords as htpasswd writes them (apr1, crypt), given like tokenSecretKey", secret=True
    )

    # What a role may do
    authorizationEnabled: bool = key(False, "Let roles do only what they are granted")
    authorizationProvider: str = key(AUTHORIZATION_PROVIDER, "What decides", one_of=(AUTHORIZATION_PROVIDER,))
    superUserRoles: frozenset[str] = key(frozenset(), "Roles that may do everything")
    proxyRoles: frozenset[str] = key(frozenset(), "Roles that speak for others, whose role they name")
    authorizationAllowWildcardsMatching: bool = key(False, "Take * at either end of a granted role for anything")

    # Migration to another cluster
    clusterMigrationCheckDurationSeconds: int = key(
        0, "How often topics are looked at that may have moved; 0: only when they are loaded", "seconds"
    )

    # Policies of topics
    systemTopicEnabled: bool = key(True, "Keep topics for the broker's own use")
    topicLevelPoliciesEnabled: bool = key(True, "Take policies of single topics, where system topics are kept")

    # Connections
    maxMessageSize: int = key(
        5_242_880, "Largest message; a frame may be 10 KiB larger", "bytes", low=1, high=2147473407
    )
    keepAliveIntervalSeconds: int = key(30, "Silence before a PING, and from there to closing; 0 for never", "seconds")
    connectionLivenessCheckTimeoutMillis: int = key(
        5_000,
        "How long a connection may take to prove that it lives when another wants its place; 0 for no such check",
        "milliseconds",
        high=JAVA_LONG[1],
    )
    brokerMaxConnections: int = key(0, "Connections that are served at once; more are refused; 0 for any number")
    brokerMaxConnectionsPerIp: int = key(0, "The same of one address")
    maxHttpServerConnections: int = key(
        2_048, "HTTP connections that a port serves at once; more wait until others end; 0 for any number"
    )
    maxHttpServerConnectionsPerIp: int = key(
        1_024,
        "The same of one address, loopback too; more are answered 503. Pulsarium's own key",
        low=0,
    )
    httpRequestsLimitEnabled: bool = key(False, "Refuse HTTP requests beyond httpRequestsMaxPerSecond (429)")
    httpRequestsMaxPerSecond: float = key(100.0, "HTTP requests that a broker answers in a second", "per second", low=0)
    httpMaxRequestHeaderSize: int = key(8_192, "Largest head of an HTTP request", "bytes", low=1)
    httpAllowedHosts: frozenset[str] = key(
        frozenset(),
        "Names of this broker in HTTP's Host beside its own, and sites (HOST:PORT) whose pages may call it; * for all. "
        "Pulsarium's own key: addresses, names without a dot, private ones (.internal, .local), and advertised ones",
    )
    maxPendingPublishRequestsPerConnection: int = key(1_000, "Sends without a receipt before reading pauses", low=1)
    maxMessagePublishBufferSizeInMB: int = key(
        16, "Published messages that are not stored yet before their publishers pause; 0 for any size", "MiB", low=0
    )
    maxConcurrentNonPersistentMessagePerConnection: int = key(
        1_000, "Messages for non-persistent topics that are taken at once; more are dropped"
    )
    maxConsumerMetadataSize: int = key(1_024, "Most metadata that a producer or consumer may bring", "bytes")

    # Topics
    enablePersistentTopics: bool = key(True, "Serve persistent topics")
    enableNonPersistentTopics: bool = key(True, "Serve non-persistent topics")
    allowAutoTopicCreation: bool = key(True, "Create a topic when a client first uses it")
    allowAutoTopicCreationType: str = key(
        "non-partitioned", "What is created then", one_of=("partitioned", "non-partitioned")
    )
    defaultNumPartitions: int = key(1, "Partitions of a topic that is created so", low=1)
    maxNumPartitionsPerPartitionedTopic: int = key(0, "Most partitions of a topic; 0 for any number")
    maxTopicsPerNamespace: int = key(0, "Most persistent topics of a namespace, partitions counted; 0 for any number")
    maxProducersPerTopic: int = key(0, "Most producers of a topic; 0 for any number")
    maxConsumersPerTopic: int = key(0, "Most consumers of a topic; 0 for any number")
    maxSubscriptionsPerTopic: int = key(0, "Most subscriptions of a topic; 0 for any number")
    aggregatePublisherStatsByProducerName: bool = key(False, "Add up producers of one name in partitioned-stats")
    maxPublishRatePerTopicInMessages: int = key(0, "Messages that a topic takes a second; 0 for any number")
    maxPublishRatePerTopicInBytes: int = key(
        0, "Bytes that a topic takes a second; 0 for any number", "bytes", high=JAVA_LONG[1]
    )
    brokerPublisherThrottlingMaxMessageRate: int = key(
        0, "Messages that all topics of a broker together take a second; 0 for any number"
    )
    brokerPublisherThrottlingMaxByteRate: int = key(
        0, "Bytes that they take a second; 0 for any number", "bytes", high=JAVA_LONG[1]
    )
    encryptionRequireOnProducer: bool = key(False, "Refuse producers and messages without encryption")
    brokerDeleteInactiveTopicsEnabled: bool = key(True, "Delete topics that nobody uses")
    brokerDeleteInactiveTopicsFrequencySeconds: int = key(60, "How often they are looked for", "seconds", low=1)
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int | None = key(
        None, "How long a topic is unused before that; unset: brokerDeleteInactiveTopicsFrequencySeconds", "seconds"
    )
    brokerDeleteInactiveTopicsMode: str = key(
        "delete_when_no_subscriptions", "What unused means", one_of=INACTIVE_TOPIC_MODES
    )

    # Messages that are kept, dropped or refused
    ttlDurationDefaultInSeconds: int = key(
        0, "Age at which messages are acknowledged for everybody; 0: none", "seconds"
    )
    messageExpiryCheckIntervalInMinutes: int = key(5, "How often such messages are looked for", "minutes", low=1)
    defaultRetentionTimeInMinutes: int = key(0, "How long acknowledged messages are kept; -1: for ever", "minutes")
    defaultRetentionSizeInMB: int = key(0, "How many acknowledged messages are kept; -1: all", "MiB")
    retentionCheckIntervalInSeconds: int = key(120, "How often the rest is deleted", "seconds", low=1)
    backlogQuotaCheckEnabled: bool = key(True, "Enforce backlog quotas")
    backlogQuotaCheckIntervalInSeconds: int = key(60, "How often backlogs are measured", "seconds", low=1)
    backlogQuotaDefaultLimitBytes: int = key(-1, "Largest backlog; -1: any", "bytes", high=JAVA_LONG[1])
    backlogQuotaDefaultLimitGB: float = key(-1.0, "The same in GiB, when the other is not set; -1: any", "GiB")
    backlogQuotaDefaultLimitSecond: int = key(-1, "Oldest message of a backlog; -1: any", "seconds")
    backlogQuotaDefaultRetentionPolicy: str = key(
        "producer_request_hold", "What happens at the limit of a backlog", one_of=QUOTA_POLICIES
    )
    brokerDeduplicationEnabled: bool = key(False, "Drop messages that were sent twice")
    brokerDeduplicationEntriesInterval: int = key(1_000, "Entries after which what was seen is kept", low=1)
    brokerDeduplicationSnapshotIntervalSeconds: int = key(120, "Time after which it is kept", "seconds", low=1)
    brokerDeduplicationSnapshotFrequencyInSeconds: int = key(120, "How often that time is looked at", "seconds", low=1)
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = key(
        360, "Absence after which a producer's sequence ids are forgotten", "minutes", low=1
    )
    brokerDeduplicationMaxNumberOfProducers: int = key(10_000, "Most producers that are remembered", low=1)

    # Subscriptions
    allowAutoSubscriptionCreation: bool = key(True, "Create a subscription when a consumer first names it")
    subscriptionExpirationTimeMinutes: int = key(
        0, "How long nobody may use a subscription before it is deleted; 0: for ever", "minutes"
    )
    subscriptionExpiryCheckIntervalInMinutes: int = key(5, "How often that is looked at; 0: never", "minutes")
    strictlyVerifySubscriptionName: bool = key(False, "Refuse subscription names beyond letters, digits and . : = _ -")
    subscriptionTypesEnabled: frozenset[str] = key(
        frozenset(SUBSCRIPTION_TYPES), "Subscription types that consumers may ask for", one_of=SUBSCRIPTION_TYPES
    )
    subscribeThrottlingRatePerConsumer: int = key(0, "Subscribes of one consumer in a period; 0 for any number")
    subscribeRatePeriodPerConsumerInSecond: int = key(30, "That period", "seconds", low=1)
    maxConsumersPerSubscription: int = key(0, "Most consumers of a subscription; 0 for any number")
    activeConsumerFailoverDelayTimeMillis: int = key(
        1_000, "Pause before a newly active Failover consumer is told so and gets messages", "milliseconds"
    )
    acknowledgmentAtBatchIndexLevelEnabled: bool = key(
        True, "Keep acknowledgements of single messages of a batch (PIP-54)"
    )

    # Schemas
    schemaCompatibilityStrategy: str = key(
        "FULL", "What a new schema must be compatible with", one_of=SCHEMA_STRATEGIES
    )
    systemTopicSchemaCompatibilityStrategy: str = key(
        "ALWAYS_COMPATIBLE", "The same of system topics", one_of=SCHEMA_STRATEGIES
    )
    isAllowAutoUpdateSchemaEnabled: bool = key(True, "Let producers bring new schemas")
    isSchemaValidationEnforced: bool = key(False, "Refuse producers without a schema where there is one")

    # Dispatch
    dispatcherMaxReadBatchSize: int = key(100, "Most entries of one read for consumers", low=1)
    dispatcherMaxRoundRobinBatchSize: int = key(
        20, "Most messages for one Shared consumer before the next one's turn", low=1
    )
    dispatcherReadFailureBackoffInitialTimeInMs: int = key(15_000, "Pause after a failed read", "milliseconds", low=1)
    dispatcherReadFailureBackoffMaxTimeInMs: int = key(60_000, "Longest such pause; it doubles", "milliseconds", low=1)
    dispatchThrottlingRateInMsg: int = key(
        0, "Messages that go out to all consumers of a broker together in a second; 0 for any number"
    )
    dispatchThrottlingRateInByte: int = key(0, "The same in bytes", "bytes", high=JAVA_LONG[1])
    dispatchThrottlingRatePerTopicInMsg: int = key(
        0, "Messages that go out to all consumers of a topic in a second; 0 for any number"
    )
    dispatchThrottlingRatePerTopicInByte: int = key(0, "The same in bytes", "bytes", high=JAVA_LONG[1])
    dispatchThrottlingRatePerSubscriptionInMsg: int = key(
        0, "Messages that go out to a subscription in a second; 0 for any number"
    )
    dispatchThrottlingRatePerSubscriptionInByte: int = key(0, "The same in bytes", "bytes", high=JAVA_LONG[1])
    dispatchThrottlingOnNonBacklogConsumerEnabled: bool = key(
        True, "Hold subscriptions to these rates; false: only those with a backlog"
    )
    dispatchThrottlingOnBatchMessageEnabled: bool = key(False, "Count a batch as one message in these rates")
    maxUnackedMessagesPerConsumer: int = key(
        50_000, "Messages that a consumer of Shared or Key_Shared may owe; 0 for any number"
    )
    maxUnackedMessagesPerSubscription: int = key(200_000, "The same for all consumers of a subscription together")
    subscriptionKeySharedEnable: bool = key(True, "Take Key_Shared consumers")
    subscriptionKeySharedUseConsistentHashing: bool = key(
        True, "Divide keys by a ring of consumer names; false: halve the widest range for each consumer that joins"
    )
    subscriptionKeySharedConsistentHashingReplicaPoints: int = key(100, "Points of each consumer on the ring", low=1)
    subscriptionKeySharedUseClassicPersistentImplementation: bool = key(
        False, "Make consumers that join wait for all that was read before, as before Pulsar 4.0"
    )
    keySharedLookAheadMsgInReplayThresholdPerConsumer: int = key(
        2_000, "Messages that may wait for a consumer while others are read past them; 0 for any number"
    )
    keySharedLookAheadMsgInReplayThresholdPerSubscription: int = key(20_000, "The same for all consumers together")
    delayedDeliveryEnabled: bool = key(True, "Heed deliver_at_time on Shared and Key_Shared")
    delayedDeliveryTickTimeMillis: int = key(
        1_000, "Time between two looks for delayed messages that are due", "milliseconds", low=1
    )
    isDelayedDeliveryDeliverAtTimeStrict: bool = key(
        False, "Never deliver before deliver_at_time; false: up to one tick before"
    )
    delayedDeliveryMaxDelayInMillis: int = key(
        0, "Longest delay that a producer may ask for; 0 for any", "milliseconds", high=JAVA_LONG[1]
    )
    subscriptionBacklogScanMaxEntries: int = key(10_000, "Most entries that analyzeBacklog looks at", low=1)
    subscriptionBacklogScanMaxTimeMs: int = key(
        120_000, "How long it may look", "milliseconds", low=1, high=JAVA_LONG[1]
    )

    # Entries
    brokerEntryMetadataInterceptors: tuple[str, ...] = key(
        (), "What the broker adds to each entry: its time, its index", one_of=(APPEND_BROKER_TIMESTAMP, APPEND_INDEX)
    )
    exposingBrokerEntryMetadataToClientEnabled: bool = key(False, "Deliver what was added, to clients that can take it")

    # Managed ledgers
    managedLedgerMaxEntriesPerLedger: int = key(50_000, "Entries that end a ledger", low=1)
    managedLedgerMaxSizePerLedgerMbytes: int = key(2_048, "Size that ends a ledger", "MiB", low=1)
    managedLedgerMinLedgerRolloverTimeMinutes: int = key(10, "Age below which a ledger is not ended", "minutes")
    managedLedgerMaxLedgerRolloverTimeMinutes: int = key(240, "Age that ends a ledger", "minutes")
    managedLedgerDefaultMarkDeleteRateLimit: float | None = key(
        None, "Most writes of a cursor's position; 0 or unset: as acknowledgements come", "per second", low=0
    )
    managedLedgerMaxUnackedRangesToPersist: int = key(
        10_000, "Ranges of acknowledged messages behind the mark-delete position that are kept; the rest comes again"
    )
    managedLedgerMaxBatchDeletedIndexToPersist: int = key(10_000, "Partly acknowledged batches that are kept")
    managedLedgerPersistIndividualAckAsLongArray: bool = key(
        True, "Keep ranges as bitmaps, where managedLedgerUnackedRangesOpenCacheSetEnabled is on"
    )
    managedLedgerUnackedRangesOpenCacheSetEnabled: bool = key(True, "Hold ranges as one bitmap a ledger")
    managedLedgerMaxUnackedRangesToPersistInMetadataStore: int = key(
        1_000, "Ranges above which a cursor is kept in its ledger and not in the metadata store"
    )
    managedCursorInfoCompressionType: str = key("NONE", "Compression of kept cursors: LZ4, ZLIB, ZSTD or SNAPPY")
    managedCursorInfoCompressionThresholdInBytes: int = key(16_384, "Size from which they are compressed", "bytes")
    managedLedgerInfoCompressionType: str = key("NONE", "Compression of kept managed ledgers, as of cursors")
    managedLedgerInfoCompressionThresholdInBytes: int = key(16_384, "Size from which they are compressed", "bytes")
    managedLedgerCursorBackloggedThreshold: int = key(
        1_000, "Entries from which on a subscription has a backlog", high=JAVA_LONG[1]
    )
    autoSkipNonRecoverableData: bool = key(False, "Do without damaged messages, also in deduplication and compaction")
    managedLedgerCacheSizeMB: int = key(256, "Memory for entries, of all topics together", "MiB", low=0)

    # Compaction
    brokerServiceCompactionMonitorIntervalInSeconds: int = key(
        60, "How often topics are looked at that may have to be compacted", "seconds", low=1
    )
    brokerServiceCompactionThresholdInBytes: int = key(
        0, "New messages that lead to compaction, where no policy says so; 0: none do", "bytes", high=JAVA_LONG[1]
    )
    topicCompactionRetainNullKey: bool = key(False, "Keep messages without a key when a topic is compacted")

    # Namespaces and tenants
    defaultNumberOfNamespaceBundles: int = key(
        4, "Bundles of a namespace that is created without a number", low=1, high=MOST_BUNDLES
    )
    maxTenants: int = key(0, "Most tenants, those of the start counted; 0 for any number")
    forceDeleteTenantAllowed: bool = key(False, "Allow force=true when a tenant is deleted")
    forceDeleteNamespaceAllowed: bool = key(False, "Allow force=true when a namespace is deleted")

    # Patterns
    enableBrokerSideSubscriptionPatternEvaluation: bool = key(True, "Filter topic lists by the client's pattern here")
    subscriptionPatternMaxLength: int = key(50, "Longest pattern that is filtered by here", "characters")
    enableBrokerTopicListWatcher: bool = key(True, "Offer clients to watch topic lists")

    # Transactions
    transactionCoordinatorEnabled: bool = key(False, "Serve transactions")
    maxActiveTransactionsPerCoordinator: int = key(
        0, "Transactions of one coordinator that may be open at once; 0 for any number", high=JAVA_LONG[1]
    )

    # Statistics
    statsUpdateFrequencyInSecs: int = key(60, "How often rates are computed anew", "seconds", low=1)

    @property
    def max_frame_size(self) -> int:
        """Bytes of the largest frame, its length word included."""
        return self.maxMessageSize + FRAME_PADDING

    @property
    def has_tls(self) -> bool:
        """Whether any port speaks TLS."""
        return self.brokerServicePortTls is not None or self.webServicePortTls is not None

    @property
    def takes_topic_policies(self) -> bool:
        """Whether single topics have policies: their changes need a system topic."""
        return self.systemTopicEnabled and self.topicLevelPoliciesEnabled

    @property
    def max_inactive_seconds(self) -> int:
        """How long a topic may be unused, unless a policy says otherwise."""
        own = self.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds
        return self.brokerDeleteInactiveTopicsFrequencySeconds if own is None else own

    @property
    def default_quota_bytes(self) -> int:
        """The largest backlog, unless a policy says otherwise; -1: any."""
        if self.backlogQuotaDefaultLimitBytes >= 0:
            return self.backlogQuotaDefaultLimitBytes
        return int(self.backlogQuotaDefaultLimitGB * 2**30) if self.backlogQuotaDefaultLimitGB > 0 else -1

    @property
    def appends_broker_timestamp(self) -> bool:
        return APPEND_BROKER_TIMESTAMP in self.brokerEntryMetadataInterceptors

    @property
    def appends_index(self) -> bool:
        return APPEND_INDEX in self.brokerEntryMetadataInterceptors


class Key(NamedTuple):
    """One key of Config, for whoever reads values into it or prints a page of it."""

    name: str
    type: object
    default: object
    meaning: Meaning


def documented_keys() -> dict[str, Key]:
    """Every key of Config by its name, in the order of the class."""
    return {
        each.name: Key(name=each.name, type=each.type, default=each.default, meaning=each.metadata["meaning"])
        for each in fields(Config)
    }
