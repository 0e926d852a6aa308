"""The broker.conf keys that Pulsarium honours: name, type, default and meaning, in one place."""

from dataclasses import dataclass, field, fields
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

FRAME_PADDING: Final = 10 * 1024  # what a frame may hold beyond maxMessageSize: Pulsar's MESSAGE_SIZE_FRAME_PADDING
JAVA_INT: Final = (-(2**31), 2**31 - 1)
JAVA_LONG: Final = (-(2**63), 2**63 - 1)
SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")
APPEND_BROKER_TIMESTAMP: Final = "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor"
APPEND_INDEX: Final = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"


class Meaning(NamedTuple):
    """What a key means and takes. `unit` is "" for counts and texts; `low` and `high` bound numbers, both included."""

    doc: str
    unit: str = ""
    low: int | None = None
    high: int | None = None
    one_of: tuple[str, ...] = ()


def key(
    default: T,
    doc: str,
    unit: str = "",
    *,
    low: int | None = None,
    high: int | None = None,
    one_of: tuple[str, ...] = (),
) -> T:
    """A field of Config: its default and its Meaning."""
    meaning = Meaning(doc=doc, unit=unit, low=low, high=high, one_of=one_of)
    made: T = field(default=default, metadata={"meaning": meaning})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of one broker, named as in broker.conf. What is not set is as in a stock standalone.

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
    maxPendingPublishRequestsPerConnection: int = key(1_000, "Sends without a receipt before reading pauses", low=1)
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
    maxProducersPerTopic: int = key(0, "Most producers of a topic; 0 for any number")
    maxConsumersPerTopic: int = key(0, "Most consumers of a topic; 0 for any number")

    # Subscriptions
    allowAutoSubscriptionCreation: bool = key(True, "Create a subscription when a consumer first names it")
    strictlyVerifySubscriptionName: bool = key(False, "Refuse subscription names beyond letters, digits and . : = _ -")
    subscriptionTypesEnabled: frozenset[str] = key(
        frozenset(SUBSCRIPTION_TYPES), "Subscription types that consumers may ask for", one_of=SUBSCRIPTION_TYPES
    )
    maxConsumersPerSubscription: int = key(0, "Most consumers of a subscription; 0 for any number")
    activeConsumerFailoverDelayTimeMillis: int = key(
        1_000, "Pause before a newly active Failover consumer is told so and gets messages", "milliseconds"
    )
    acknowledgmentAtBatchIndexLevelEnabled: bool = key(
        True, "Keep acknowledgements of single messages of a batch (PIP-54)"
    )

    # Dispatch
    dispatcherMaxReadBatchSize: int = key(100, "Most entries of one read for consumers", low=1)
    dispatcherMaxRoundRobinBatchSize: int = key(
        20, "Most messages for one Shared consumer before the next one's turn", low=1
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
    managedLedgerCacheSizeMB: int = key(256, "Memory for entries, of all topics together", "MiB", low=0)

    # Namespaces and tenants
    defaultNumberOfNamespaceBundles: int = key(4, "Bundles of a namespace that is created without a number", low=1)
    forceDeleteTenantAllowed: bool = key(False, "Allow force=true when a tenant is deleted")
    forceDeleteNamespaceAllowed: bool = key(False, "Allow force=true when a namespace is deleted")

    # Patterns
    enableBrokerSideSubscriptionPatternEvaluation: bool = key(True, "Filter topic lists by the client's pattern here")
    subscriptionPatternMaxLength: int = key(50, "Longest pattern that is filtered by here", "characters")
    enableBrokerTopicListWatcher: bool = key(True, "Offer clients to watch topic lists")

    # Statistics
    statsUpdateFrequencyInSecs: int = key(60, "How often rates are computed anew", "seconds", low=1)

    @property
    def max_frame_size(self) -> int:
        """Bytes of the largest frame, its length word included."""
        return self.maxMessageSize + FRAME_PADDING

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
