"""Options of StreamNative's connector that the data source does not use, and what happens to them.

The options that work here have their names in the tables of `options`, `source` and `sink`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_logger = logging.getLogger(__name__)

CLIENT, ADMIN, READER, PRODUCER = "pulsar.client.", "pulsar.admin.", "pulsar.reader.", "pulsar.producer."


class Instead(NamedTuple):
    """Replacement of an option that is refused."""

    text: str
    harmless: str = ""
    """The value, in lower case, that asks for nothing, so that it is accepted."""


_TO_PEM = """a Java key store is not read here. Make PEM files of it:
    keytool -importkeystore -srckeystore {store}.jks -destkeystore {store}.p12 -deststoretype PKCS12
    openssl pkcs12 -in {store}.p12 {parts}
and set {options}"""
_TRUST = _TO_PEM.format(
    store="truststore", parts="-nokeys -out ca.pem", options=f"{CLIENT}tlsTrustCertsFilePath to ca.pem"
)
KEY_STORE = _TO_PEM.format(
    store="keystore",
    parts="-nodes -out client.pem",
    options=f"{CLIENT}authPluginClassName to AuthenticationTls, and {CLIENT}authParams to "
    "tlsCertFile:client.pem,tlsKeyFile:client.pem",
)
"""What to do with a key store of Java's client."""

_THREADS = "a task has one thread for its connections"
_LOOKUPS = "a task opens one topic after another"
_NAMES = "the system resolves names"
_DISCOVERY = "topicDiscoveryIntervalMs says how often to look for new partitions"
_CHUNKS = "a task reads one topic in order, so that few chunks wait"
_ROUTES = "nothing: tasks connect to the brokers, or to Pulsar's proxy at service.url"
_OPENSSL = "nothing: the configuration of OpenSSL on each machine decides (MinProtocol, CipherString)"
_ENCRYPTION = "nothing: the data source has no keys of end-to-end encryption; use pulsarium.client for such a topic"

_OF_CLIENTS: Mapping[str, str] = {
    "numIoThreads": _THREADS,
    "numListenerThreads": _THREADS,
    "connectionsPerBroker": _THREADS,
    "connectionMaxIdleSeconds": "a client lives as long as its task",
    "statsIntervalSeconds": "the progress of a query has its figures",
    "useTcpNoDelay": "it is always on",
    "enableBusyWait": _THREADS,
    "memoryLimitBytes": f"{PRODUCER}maxPendingMessages limits what a task keeps in memory",
    "lookupTimeoutMs": f"{CLIENT}operationTimeoutMs is the limit of lookups, too",
    "requestTimeoutMs": f"{ADMIN}connectionTimeoutMs is the limit of the REST API",
    "readTimeoutMs": f"{ADMIN}connectionTimeoutMs is the limit of the REST API",
    "autoCertRefreshSeconds": "a task reads the files when it starts",
    "concurrentLookupRequest": _LOOKUPS,
    "maxLookupRequest": _LOOKUPS,
    "maxNumberOfRejectedRequestPerConnection": _LOOKUPS,
    "enableTransaction": "the sink writes without transactions",
    "lookupProperties": "brokers get none with a lookup",
    "dnsLookupBindAddress": _NAMES,
    "dnsLookupBindPort": _NAMES,
    "dnsServerAddresses": _NAMES,
    "sslProvider": "Python's ssl is used",
    "tlsKeyStoreType": "key stores are not read",
    "tlsTrustStoreType": "key stores are not read",
}
_OF_ADMIN: Mapping[str, str] = {
    "useTls": "the scheme of admin.url decides",
    "operationTimeoutMs": f"{ADMIN}connectionTimeoutMs is the limit of the REST API",
    **dict.fromkeys(
        ("listenerName", "maxLookupRedirects", "keepAliveIntervalSeconds", "description"),
        "it is about connections to brokers",
    ),
    **dict.fromkeys(
        ("initialBackoffIntervalNanos", "maxBackoffIntervalNanos"), "calls of the REST API are not repeated"
    ),
}
_OF_READERS: Mapping[str, str] = {
    "readerName": "tasks read without a name",
    "subscriptionName": "predefinedSubscription names the subscription of a stream, and tasks read without one",
    "subscriptionMode": "the subscription of a stream is durable, and tasks read without one",
    "subscriptionInitialPosition": "startingOffsets is the start of a stream",
    "resetIncludeHead": "the message that startingOffsets names is always read",
    "poolMessages": "it is about memory of the JVM",
    "autoUpdatePartitions": _DISCOVERY,
    "autoUpdatePartitionsIntervalSeconds": _DISCOVERY,
    "maxPendingChunkedMessage": _CHUNKS,
    "autoAckOldestChunkedMessageOnQueueFull": _CHUNKS,
    "expireTimeOfIncompleteChunkedMessageMillis": _CHUNKS,
}
_OF_PRODUCERS: Mapping[str, str] = {
    "batchingMaxPublishDelayMicros": "a task sends its rows at once",
    "batchingPartitionSwitchFrequencyByPublishDelay": "a task sends its rows at once",
    "autoUpdatePartitions": "a task looks for the partitions when it starts",
    "autoUpdatePartitionsIntervalSeconds": "a task looks for the partitions when it starts",
    "lazyStartPartitionedProducers": "a task opens a producer when a partition gets its first row",
    "multiSchema": "all rows of a query have one schema",
}

NO_EFFECT: Mapping[str, str] = {
    **{CLIENT + name: why for name, why in _OF_CLIENTS.items()},
    **{ADMIN + name: why for name, why in {**_OF_CLIENTS, **_OF_ADMIN}.items()},
    **{READER + name: why for name, why in _OF_READERS.items()},
    **{PRODUCER + name: why for name, why in _OF_PRODUCERS.items()},
}
"""Options that are accepted with a warning, because they have no meaning here, and the reason."""

_CLIENTS_INSTEAD: Mapping[str, Instead] = {
    "useKeyStoreTls": Instead(_TRUST, "false"),
    "tlsTrustStorePath": Instead(_TRUST),
    "tlsTrustStorePassword": Instead(_TRUST),
    "tlsKeyStorePath": Instead(KEY_STORE),
    "tlsKeyStorePassword": Instead(KEY_STORE),
    "sslFactoryPlugin": Instead(f"{CLIENT}tlsTrustCertsFilePath"),
    "sslFactoryPluginParams": Instead(f"{CLIENT}tlsTrustCertsFilePath"),
    "tlsCiphers": Instead(_OPENSSL),
    "tlsProtocols": Instead(_OPENSSL),
    "proxyServiceUrl": Instead(_ROUTES),
    "proxyProtocol": Instead(_ROUTES),
    "socks5ProxyAddress": Instead(_ROUTES),
    "socks5ProxyUsername": Instead(_ROUTES),
    "socks5ProxyPassword": Instead(_ROUTES),
    "originalPrincipal": Instead(f"{CLIENT}authParams with the credentials of that role"),
    "authParamMap": Instead(f"{CLIENT}authParams"),
}

INSTEAD: Mapping[str, Instead] = {
    "maxEntriesPerTrigger": Instead("maxMessagesPerTrigger, or maxBytesPerTrigger"),
    "topic.schema.class": Instead("nothing: the schema of the topic gives the columns"),
    "poolTimeoutMs": Instead("pollTimeoutMs"),
    "subscription.name": Instead("predefinedSubscription"),
    "subscriptionName": Instead("predefinedSubscription"),
    f"{CLIENT}serviceUrl": Instead("service.url"),
    f"{ADMIN}serviceUrl": Instead("admin.url"),
    **{prefix + name: each for prefix in (CLIENT, ADMIN) for name, each in _CLIENTS_INSTEAD.items()},
    f"{READER}topicNames": Instead("topic or topics"),
    f"{READER}startMessageId": Instead("startingOffsets"),
    f"{READER}startMessageFromRollbackDurationInSec": Instead("startingTime"),
    f"{READER}subscriptionRolePrefix": Instead("subscriptionPrefix, for the subscription of a stream"),
    f"{READER}readCompacted": Instead(
        "nothing: every message is read; take the last row of each __key, by __publishTime", "false"
    ),
    f"{READER}keyHashRanges": Instead("nothing: filter the rows by __key"),
    f"{READER}cryptoFailureAction": Instead(_ENCRYPTION, "fail"),
    f"{PRODUCER}topicName": Instead("topic"),
    f"{PRODUCER}producerName": Instead("producerName"),
    f"{PRODUCER}initialSequenceId": Instead("producerName with batchId"),
    f"{PRODUCER}messageRoutingMode": Instead(
        "nothing: rows with a __key go to the partition of the key, others to all in turn", "roundrobinpartition"
    ),
    f"{PRODUCER}accessMode": Instead("nothing: each task has a producer of its own", "shared"),
    f"{PRODUCER}properties": Instead("nothing: the column __messageProperties has those of each message"),
    f"{PRODUCER}initialSubscriptionName": Instead("nothing: create the subscription before the first write"),
    f"{PRODUCER}encryptionKeys": Instead(_ENCRYPTION),
    f"{PRODUCER}cryptoFailureAction": Instead(_ENCRYPTION, "fail"),
}
"""Options that are refused, and what takes their place."""

FAMILIES_INSTEAD: Mapping[str, str] = {
    "pulsar.consumer.": f"{READER}receiverQueueSize, predefinedSubscription or subscriptionPrefix",
    "pulsar.failover.": "nothing: service.url names one cluster; change it when the other one takes over",
}
"""Options of old and of new releases that are refused, by their prefix."""


def warn(given: Iterable[str]) -> None:
    """Log one warning about all options that have no effect."""
    names = {name.lower() for name in given}
    found = [f"{name} ({why})" for name, why in NO_EFFECT.items() if name.lower() in names]
    if found:
        _logger.warning("options of StreamNative's connector without effect here: %s", "; ".join(found))
