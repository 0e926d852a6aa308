"""The keys of Pulsar that ask for something that Pulsarium does not have, and what does not work without it.

The log and docs/configuration.md take their texts from these rows. All other keys without effect change nothing that a
client or an operator of an emulator can notice, such as numbers of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple


class Missing(NamedTuple):
    """A key, Pulsar's default of it, and what another value does not do here.

    `also`: a further value that asks for nothing. Case is ignored.
    """

    key: str
    default: str
    lost: str
    also: str = ""

    def asks(self, value: str) -> bool:
        """Return whether a value asks for what is missing. A blank value is the default."""
        return value.strip().lower() not in ("", self.default.lower(), self.also.lower())


_NO_OFFLOAD: Final = "there is no tiered storage: all ledgers stay here"
_NO_FILTERS: Final = "there are no entry filters: every message is delivered"
_NO_PROXY: Final = "the PROXY protocol is not spoken: a proxy that sends its header cannot connect"
_NO_LOOKUP_LIMIT: Final = "lookups are never refused for their number"
_NO_KEY_STORE: Final = "there are no key stores: give PEM files (tlsCertificateFilePath, tlsKeyFilePath)"
_OWN_TLS: Final = "TLS is Python's own, with its ciphers"
_NO_JAVA_TLS: Final = "TLS is Python's own, with the PEM files of tlsCertificateFilePath and tlsKeyFilePath"
_NO_CLIENT: Final = "the broker opens no connections to other brokers"
_NO_LABELS: Final = "/metrics has the metrics and labels of the default"

KEYS: Final = (
    # Programs and plug-ins
    Missing("messagingProtocols", "", "there are no protocol handlers: clients of Kafka, MQTT or AMQP cannot connect"),
    Missing("brokerInterceptors", "", "there are no broker interceptors: their code does not run"),
    Missing("brokerEntryPayloadProcessors", "", "there are no payload processors: their code does not run"),
    Missing("additionalServlets", "", "there are no additional servlets: their paths answer 404"),
    Missing("entryFilterNames", "", _NO_FILTERS),
    Missing("allowOverrideEntryFilters", "false", _NO_FILTERS),
    Missing("functionsWorkerEnabled", "false", "there is no functions worker: functions, sources and sinks cannot run"),
    Missing("enablePackagesManagement", "false", "packages cannot be stored: their routes answer 503"),
    Missing("bootstrapNamespaces", "", "no namespaces are created at the start: create them, or use --seed"),
    # Storage
    Missing("managedLedgerOffloadDriver", "", _NO_OFFLOAD),
    Missing("managedLedgerOffloadAutoTriggerSizeThresholdBytes", "-1", _NO_OFFLOAD),
    Missing("managedLedgerOffloadThresholdInSeconds", "-1", _NO_OFFLOAD),
    Missing("managedLedgerInactiveLedgerRolloverTimeSeconds", "0", "the ledger of an inactive topic stays open"),
    Missing("managedLedgerForceRecovery", "false", "a topic with missing entries is refused: delete the topic"),
    Missing(
        "managedLedgerMaxUnackedRangesToPersistInZooKeeper",
        "-1",
        "set managedLedgerMaxUnackedRangesToPersistInMetadataStore in place of this older name",
        also="1000",
    ),
    Missing(
        "persistentUnackedRangesWithMultipleEntriesEnabled",
        "false",
        "managedLedgerMaxUnackedRangesToPersist limits the stored ranges",
    ),
    # Dispatch
    Missing(
        "dispatcherPauseOnAckStatePersistentEnabled",
        "false",
        "dispatch goes on, and messages whose acknowledgements are not stored are redelivered after a restart",
    ),
    Missing("maxUnackedMessagesPerBroker", "0", "there is no such limit: set maxUnackedMessagesPerSubscription"),
    Missing("subscriptionRedeliveryTrackerEnabled", "true", "redelivery counts are always sent"),
    Missing(
        "subscriptionSharedUseClassicPersistentImplementation", "false", "Shared subscriptions dispatch as in Pulsar 4"
    ),
    Missing(
        "activeConsumerFailoverConsistentHashing",
        "false",
        "the active consumer is chosen as with the default",
    ),
    Missing("brokerCloseInactiveTopicsEnabled", "false", "inactive topics stay loaded until they are deleted"),
    Missing("additionalSystemCursorNames", "", "messages expire for these subscriptions too"),
    # Connections
    Missing("bindAddresses", "", "only bindAddress is bound, with one port of each kind"),
    Missing("haProxyProtocolEnabled", "false", _NO_PROXY),
    Missing("webServiceHaProxyProtocolEnabled", "false", _NO_PROXY),
    Missing("webServiceTrustXForwardedFor", "false", "the client is the other end of the connection"),
    Missing("maxConcurrentLookupRequest", "50000", _NO_LOOKUP_LIMIT),
    Missing("httpMaxRequestSize", "-1", "HTTP bodies are not limited by this key"),
    Missing("httpRequestsFailOnUnknownPropertiesEnabled", "false", "unknown fields of a JSON body are ignored"),
    Missing("clientLibraryVersionCheckEnabled", "false", "HTTP clients of any version are answered"),
    Missing("statusFilePath", "", "/status.html always answers OK"),
    # Security
    Missing("tlsEnabled", "false", "set brokerServicePortTls and webServicePortTls in place of this older name"),
    Missing("tlsEnabledWithKeyStore", "false", _NO_KEY_STORE),
    Missing("tlsCiphers", "", _OWN_TLS),
    Missing("webServiceTlsCiphers", "", _OWN_TLS),
    Missing("webServiceTlsProtocols", "", "tlsProtocols is for both ports"),
    *(
        Missing(key, "", _NO_JAVA_TLS)  # the first four since 5.0 (PIP-478)
        for key in ("tlsFactoryClassName", "tlsFactoryConfig", "jsseProvider", "jcaProvider", "tlsProvider")
    ),
    Missing("webServiceTlsProvider", "Conscrypt", _NO_JAVA_TLS),
    *(
        Missing(f"brokerClient{key}", "", _NO_CLIENT)
        for key in ("TlsFactoryClassName", "TlsFactoryConfig", "JsseProvider", "JcaProvider")
    ),
    Missing("tokenSettingPrefix", "", "keys of tokens are read without a prefix"),
    Missing("authenticationRoleLoggingAnonymizer", "NONE", "roles stay readable in the log"),
    Missing("allowAclChangesOnNonExistentTopics", "false", "permissions on an absent topic are refused with 404"),
    # Schemas
    Missing("schemaJsonAllowLegacyJacksonFormat", "false", "a JSON schema must be an Avro schema"),
    # Stats
    Missing("exposePublisherStats", "true", "stats always show the producers"),
    Missing("exposeTopicLevelMetricsInPrometheus", "true", _NO_LABELS),
    Missing("exposeConsumerLevelMetricsInPrometheus", "false", _NO_LABELS),
    Missing("exposeProducerLevelMetricsInPrometheus", "false", _NO_LABELS),
    Missing("exposeManagedCursorMetricsInPrometheus", "false", _NO_LABELS),
    Missing("exposeBundlesMetricsInPrometheus", "false", _NO_LABELS),
    Missing("exposeSubscriptionBacklogSizeInPrometheus", "false", _NO_LABELS),
    Missing("exposeCustomTopicMetricLabelsEnabled", "false", _NO_LABELS),
    Missing("splitTopicAndPartitionLabelInPrometheus", "false", _NO_LABELS),
)
_BY_NAME: Final = {each.key: each for each in KEYS}
FOREIGN_CLASS: Final = "no Java class runs here: the broker does what Pulsar's own class does"
_NAMING_CLASSES: Final = ("ClassName", "sslFactoryPlugin", "schemaRegistryCompatibilityCheckers")
_PULSARS_OWN: Final = ("org.apache.pulsar.", "org.apache.bookkeeper.")


def missing(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each key of a file that asks for something missing, and what does not work."""
    for key, value in values.items():
        row = _BY_NAME.get(key)
        if row is not None and row.asks(value):
            yield key, row.lost
        elif key.endswith(_NAMING_CLASSES) and _names_foreign_class(value):
            yield key, FOREIGN_CLASS


def _names_foreign_class(value: str) -> bool:
    names = filter(None, (name.strip() for name in value.split(",")))
    return not all(name.startswith(_PULSARS_OWN) for name in names)


def lost_without(key: str) -> str:
    """Return what a key asks for in vain, or "" when nothing is lost."""
    row = _BY_NAME.get(key)
    return row.lost if row else ""
